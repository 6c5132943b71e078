"""Backward rules that many operators share."""

from __future__ import annotations

from .graph import Node, Tensor
from .recorder import Recorder


def passed(recorder: Recorder, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """The same gradient to every input; the engine reduces and casts it."""
    return [grads[0]] * len(node.edges)


def fresh(recorder: Recorder, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """One tensor of the output's size a wanted input; the engine reduces and casts it. Compiled: in place, if one."""
    g = grads[0]
    assert g is not None
    if recorder.compiled and len(node.edges) == 1:
        return [g]
    return [recorder.new(g.n, g.width) if edge is not None else None for edge in node.edges]


def made(recorder: Recorder, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """One tensor of its own size a wanted input."""
    g = grads[0]
    assert g is not None
    return [recorder.gradient(node, i, g.width) for i in range(len(node.edges))]


def amid(recorder: Recorder, g: Tensor, others: int) -> list[Tensor | None]:
    """One tensor of the output's size, beside which so many others of that size are alive for a moment."""
    _others = [recorder.new(g.n, g.width) for _ in range(others)]
    return [recorder.new(g.n, g.width)]


def spread(recorder: Recorder, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """A reduction's gradient, spread over its input."""
    g = grads[0]
    assert g is not None
    return [recorder.gradient(node, 0, g.width)]

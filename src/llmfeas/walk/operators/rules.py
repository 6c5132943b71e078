"""Backward rules that many operators share."""

from __future__ import annotations

from ..graph import Node, Tensor
from ..tape import Tape


def passed(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """The same gradient to every input; the engine reduces and casts it."""
    return [grads[0]] * len(node.edges)


def fresh(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """One tensor of the output's size a wanted input; the engine reduces and casts it. Compiled: in place, if one."""
    g = grads[0]
    assert g is not None
    if tape.compiled and len(node.edges) == 1:
        return [g]
    return [tape.new(g.n, g.width) if edge is not None else None for edge in node.edges]


def made(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """One tensor of its own size a wanted input."""
    g = grads[0]
    assert g is not None
    return [node.result(tape, i, g.width) for i in range(len(node.edges))]


def spread(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """A reduction's gradient, spread over its input."""
    g = grads[0]
    assert g is not None
    return [node.result(tape, 0, g.width)]

"""Backward rules that many operators share."""

from __future__ import annotations

from .graph import Node, Tensor
from .recorder import Recorder
from .storage import LOGITS


def passed(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """The same gradient to every input; the engine reduces and casts it."""
    return [g] * len(node.edges)


def fresh(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """One tensor of the output's size a wanted input; the engine reduces and casts it. Compiled: in place, if one."""
    if recorder.compiled and len(node.edges) == 1:
        return [g]
    return [recorder.new(g.n, g.width) if edge is not None else None for edge in node.edges]


def made(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """One tensor of its own size a wanted input."""
    return [recorder.gradient(node, i, g.width) for i in range(len(node.edges))]


def gradient_of_logits(recorder: Recorder, node: Node) -> list[Tensor | None]:
    """A gradient as large as the first input and of its type, counted among the logits, in the moment of the loss."""
    recorder.ledger.begin("loss")
    edge = node.edges[0]
    assert edge is not None
    out = recorder.new(edge[2], edge[3], component=LOGITS)
    recorder.ledger.begin("backward")
    return [out]


def amid(recorder: Recorder, g: Tensor, others: int) -> list[Tensor | None]:
    """One tensor of the output's size, beside which so many others of that size are alive for a moment."""
    _others = [recorder.new(g.n, g.width) for _ in range(others)]
    return [recorder.new(g.n, g.width)]

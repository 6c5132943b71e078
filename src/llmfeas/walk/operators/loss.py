"""The language-model loss: fp32 logits, shifted labels, log-softmax, mean negative log-likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ..graph import Leaf, Node, Parameter, Tensor, view
from ..storage import ARRIVING, LOGITS, WORKSPACE, Storage
from ..tape import Tape
from .basic import cast, copied_weight


def _nll_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    tape.ledger.begin("loss")
    edge = node.edges[0]
    assert edge is not None
    return [tape.new(edge[2], 4, component=LOGITS)]


def _log_softmax_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    g = grads[0]
    assert g is not None
    tape.ledger.begin("loss")
    out = tape.new(g.n, 4, component=LOGITS)
    tape.ledger.begin("backward")
    return [out]


def _written_over_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """The gradient is written over what was kept, and is of the logits' type."""
    tape.ledger.begin("loss")
    edge = node.edges[0]
    assert edge is not None
    out = tape.new(edge[2], edge[3], component=LOGITS)
    tape.ledger.begin("backward")
    return [out]


def fused_loss(tape: Tape, logits: Tensor) -> Tensor:
    """Cross entropy in one kernel: an fp32 copy becomes the softmax, and in backward the gradient, in place."""
    tape.ledger.begin("loss")
    node = tape.open(_written_over_back, (logits,))
    scores = tape.new(logits.n, 4, None, LOGITS)
    labels = tape.new(tape.sizes.bs, 8)
    tape.keep(node, scores, labels)
    loss = tape.new(1, 4, node)
    tape.ledger.begin("forward")
    return loss


def loss_in_place(tape: Tape, logits: Tensor) -> Tensor:
    """Cross entropy whose gradient overwrites the logits: they go when forward ends, it comes in their place."""
    return tape.new(1, 4, tape.open(_written_over_back, (logits,)))


def _compiled_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    tape.ledger.begin("loss")
    out = node.overwritten(tape, 0)
    tape.ledger.begin("backward")
    return [out]


def compiled_loss(tape: Tape, logits: Tensor) -> Tensor:
    """Cross entropy that a compiler fused: keeps the logits as the head wrote them, the labels and two fp32 numbers a
    token; the gradient overwrites the logits.
    """
    tape.ledger.begin("loss")
    node = tape.open(_compiled_back, (logits,))
    rows = tape.sizes.bs
    tape.keep(node, logits, tape.new(rows, 8), tape.new(rows, 4), tape.new(rows, 4))
    loss = tape.new(1, 4, node)
    tape.ledger.begin("forward")
    return loss


def _in_pieces_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """For each piece its logits, their gradient in place, and its part of the input's and the weight's."""
    tape.ledger.begin("loss")
    logits = tape.new(node.data[0], node.data[1], component=LOGITS)
    results = [node.result(tape, i, edge[3]) if edge else None for i, edge in enumerate(node.edges)]
    del logits
    tape.ledger.begin("backward")
    return results


def loss_in_pieces(tape: Tape, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """Head and cross entropy of one sequence after the other: keeps the head's input."""
    node = tape.open(_in_pieces_back, (x, weight, bias), (tape.sizes.s * weight.shape[0], weight.width))
    tape.keep(node, x, weight)
    return tape.new(1, 4, node)


CHUNKS: Final = 16
"""Parts of the tokens that a loss in chunks takes one after the other. The software cuts as finely as half of the free
memory asks, so that they never make the peak; in so many they do not here either."""


def _in_chunks_back(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[Tensor | None]:
    """What forward made, times the incoming number in place."""
    saved = iter(node.saved)
    results: list[Tensor | None] = []
    for edge in node.edges:
        kept = next(saved) if edge is not None else None
        results.append(view(kept, edge[2], edge[3]) if edge is not None and isinstance(kept, Storage) else None)
    return results


def loss_in_chunks(tape: Tape, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """Head, cross entropy and their gradients, one chunk of tokens after the other, in forward: keeps the gradients."""
    tape.ledger.begin("loss")
    inputs = (x, weight, bias)
    node = tape.open(_in_chunks_back, inputs)
    wanted = [each for each in inputs if each is not None and each.node is not None]
    tape.keep(node, *(tape.new(w.n, w.width, None, ARRIVING if type(w.node) is Leaf else -1) for w in wanted))
    logits = tape.new(tape.sizes.bs * -(-weight.shape[0] // CHUNKS), 4, None, LOGITS)
    loss = tape.new(1, 4, node)
    del logits
    tape.ledger.begin("forward")
    return loss


def loss_in_parts(tape: Tape, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """As in chunks, of as many tokens each that their logits are about as large as x; logits come in the product's type
    and their gradient overwrites them.

    Autocast shares its copy of the weight with the product for x's gradient, and makes another for that of the logits.
    Each part's gradient of the weight comes from a product in 2 bytes and through a copy in fp32, but is added by the
    product itself to one that is kept in fp32.
    """
    tape.ledger.begin("loss")
    inputs = (x, weight, bias)
    node = tape.open(_in_chunks_back, inputs)
    wanted = [each for each in inputs if each is not None and each.node is not None]
    tape.keep(node, *(tape.new(w.n, w.width, None, ARRIVING if type(w.node) is Leaf else -1) for w in wanted))
    width = 2 if tape.autocast else x.width
    logits = tape.new(_part_logits(tape.sizes.bs, *weight.shape), width, None, LOGITS)
    _part_passes(tape, weight)
    loss = tape.new(1, 4, node)
    del logits
    tape.ledger.begin("forward")
    return loss


def _part_logits(rows: int, vocab: int, width: int) -> int:
    """Logits of a part of rows / (vocab / width, rounded up) rows, rounded up to a power of two (as `rows` is one)."""
    parts: int = 1 << (-(-vocab // width)).bit_length() - 1
    return rows * (vocab // parts)


def _part_passes(tape: Tape, weight: Parameter) -> None:
    """What a part makes for a moment beside its logits: copies of the weight, its gradient."""
    recording, tape.recording = tape.recording, False
    if tape.autocast and weight.width == 4:
        copied_weight(tape, weight)
        tape.new(weight.n, 2, None, WORKSPACE)
    tape.recording = recording
    if weight.node is not None and weight.width == 2:
        product = tape.new(weight.n, 2, None, WORKSPACE)
        wide = tape.new(weight.n, 4, None, WORKSPACE)
        del product, wide


def causal_loss(tape: Tape, logits: Tensor) -> Tensor:
    """Cross entropy of shifted labels; keeps the log-softmax and the labels."""
    sizes = tape.sizes
    wide = cast_logits(tape, logits)
    padded = tape.new(sizes.bs + sizes.b, 8)
    labels = padded if sizes.single else tape.new(sizes.bs, 8)
    tape.ledger.begin("loss")
    node = tape.open(_log_softmax_back, (wide,))
    scores = tape.new(wide.n, 4, node, LOGITS)
    tape.keep(node, scores)
    node = tape.open(_nll_back, (scores,))
    tape.keep(node, scores, labels)
    loss = tape.new(1, 4, node)
    total = tape.new(1, 4)
    tape.keep(node, total)
    tape.ledger.begin("forward")
    del padded
    return loss


def cast_logits(tape: Tape, logits: Tensor) -> Tensor:
    """The fp32 copy of 2-byte logits."""
    before = tape.component
    tape.component = LOGITS
    wide = cast(tape, logits, 4)
    tape.component = before
    return wide


LOSSES: Final[Mapping[str, Callable[[Tape, Tensor], Tensor]]] = {
    "written": causal_loss,
    "kernel": fused_loss,
    "in-place": loss_in_place,
    "compiled": compiled_loss,
}
"""Losses over the logits of all tokens, by the trait that names them."""

LOSSES_WITH_HEAD: Final[Mapping[str, Callable[[Tape, Tensor, Parameter, Parameter | None], Tensor]]] = {
    "in-pieces": loss_in_pieces,
    "in-chunks": loss_in_chunks,
    "in-parts": loss_in_parts,
}
"""Losses that run the head themselves, a part of the tokens after the other."""

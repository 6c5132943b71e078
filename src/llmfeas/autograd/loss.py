"""The language-model loss: fp32 logits, shifted labels, log-softmax, mean negative log-likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from .basic import cast, copied_weight
from .graph import AccumulateGrad, Node, Parameter, Tensor, view
from .products import linear
from .recorder import Recorder
from .rules import gradient_of_logits, made, passed
from .storage import ARRIVING, LOGITS, WORKSPACE, Storage
from .trainer_losses import (
    loss_in_each_rows,
    loss_in_rows,
    loss_in_shifted_rows,
    loss_of_last_token,
    loss_of_pairs,
    loss_of_pairs_and_text,
)


def _nll_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    recorder.ledger.begin("loss")
    edge = node.edges[0]
    assert edge is not None
    return [recorder.new(edge[2], edge[3], component=LOGITS)]


def _log_softmax_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    recorder.ledger.begin("loss")
    out = recorder.new(g.n, g.width, component=LOGITS)
    recorder.ledger.begin("backward")
    return [out]


def _written_over_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """The gradient is written over what was kept, and is of the logits' type."""
    return gradient_of_logits(recorder, node)


def fused_loss(recorder: Recorder, logits: Tensor) -> Tensor:
    """Cross entropy in one kernel: an fp32 copy becomes the softmax, and in backward the gradient, in place."""
    recorder.ledger.begin("loss")
    node = recorder.open(_written_over_back, (logits,))
    scores = recorder.new(logits.n, 4, None, LOGITS)
    labels = recorder.new(recorder.sizes.bs, 8)
    recorder.keep(node, scores, labels)
    loss = recorder.new(1, 4, node)
    recorder.ledger.begin("forward")
    return loss


def loss_in_place(recorder: Recorder, logits: Tensor) -> Tensor:
    """Cross entropy whose gradient overwrites the logits: they go when forward ends, it comes in their place."""
    return recorder.new(1, 4, recorder.open(_written_over_back, (logits,)))


def _compiled_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    recorder.ledger.begin("loss")
    out = recorder.overwritten(node, 0)
    recorder.ledger.begin("backward")
    return [out]


def compiled_loss(recorder: Recorder, logits: Tensor) -> Tensor:
    """Cross entropy that a compiler fused: keeps the logits as the head wrote them, the labels and two fp32 numbers a
    token; the gradient overwrites the logits.
    """
    recorder.ledger.begin("loss")
    node = recorder.open(_compiled_back, (logits,))
    rows = recorder.sizes.bs
    recorder.keep(node, logits, recorder.new(rows, 8), recorder.new(rows, 4), recorder.new(rows, 4))
    loss = recorder.new(1, 4, node)
    recorder.ledger.begin("forward")
    return loss


def _in_pieces_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """For each piece its logits, their gradient in place, and its part of the input's and the weight's."""
    recorder.ledger.begin("loss")
    _logits = recorder.new(node.data[0], node.data[1], component=LOGITS)
    results = [recorder.gradient(node, i, edge[3]) if edge else None for i, edge in enumerate(node.edges)]
    recorder.ledger.begin("backward")
    return results


def loss_in_pieces(recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """Head and cross entropy of one sequence after the other: keeps the head's input."""
    node = recorder.open(_in_pieces_back, (x, weight, bias), (recorder.sizes.s * weight.shape[0], weight.width))
    recorder.keep(node, x, weight)
    return recorder.new(1, 4, node)


CHUNKS: Final = 16
"""Parts of the tokens that a loss in chunks takes one after the other. The software cuts as finely as half of the free
memory asks, so that they never make the peak; in so many they do not here either."""


def _in_chunks_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """What forward made, times the incoming number in place."""
    saved = iter(node.saved)
    results: list[Tensor | None] = []
    for edge in node.edges:
        kept = next(saved) if edge is not None else None
        results.append(view(kept, edge[2], edge[3]) if edge is not None and isinstance(kept, Storage) else None)
    return results


def _with_gradients(recorder: Recorder, inputs: tuple[Tensor | None, ...]) -> Node | None:
    """A node that keeps the gradients of its inputs, which forward makes."""
    node = recorder.open(_in_chunks_back, inputs)
    wanted = [x for x in inputs if x is not None and x.node is not None]
    components = [ARRIVING if type(x.node) is AccumulateGrad else -1 for x in wanted]
    recorder.keep(node, *(recorder.new(x.n, x.width, None, c) for x, c in zip(wanted, components, strict=True)))
    return node


def loss_in_chunks(recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """Head, cross entropy and their gradients, one chunk of tokens after the other, in forward: keeps the gradients."""
    recorder.ledger.begin("loss")
    node = _with_gradients(recorder, (x, weight, bias))
    _logits = recorder.new(recorder.sizes.bs * -(-weight.shape[0] // CHUNKS), 4, None, LOGITS)
    loss = recorder.new(1, 4, node)
    recorder.ledger.begin("forward")
    return loss


def loss_in_parts(recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """As in chunks, of as many tokens each that their logits are about as large as x; logits come in the product's type
    and their gradient overwrites them.

    Autocast shares its copy of the weight with the product for x's gradient, and makes another for that of the logits.
    Each part's gradient of the weight comes from a product in 2 bytes and through a copy in fp32, but is added by the
    product itself to one that is kept in fp32.
    """
    recorder.ledger.begin("loss")
    node = _with_gradients(recorder, (x, weight, bias))
    width = 2 if recorder.autocast else x.width
    _logits = recorder.new(_part_logits(recorder.sizes.bs, *weight.shape), width, None, LOGITS)
    _part_passes(recorder, weight)
    loss = recorder.new(1, 4, node)
    recorder.ledger.begin("forward")
    return loss


def parts_of(vocab: int, width: int) -> int:
    """Parts of rows / (vocab / width, rounded up) rows, rounded up to a power of two (as the number of rows is one)."""
    return 1 << (-(-vocab // width)).bit_length() - 1


def _part_logits(rows: int, vocab: int, width: int) -> int:
    """Logits of a part."""
    return rows * (vocab // parts_of(vocab, width))


def _part_passes(recorder: Recorder, weight: Parameter) -> None:
    """What a part makes for a moment beside its logits: copies of the weight, its gradient."""
    recording, recorder.recording = recorder.recording, False
    if recorder.autocast and weight.width == 4:
        copied_weight(recorder, weight)
        recorder.new(weight.n, 2, None, WORKSPACE)
    recorder.recording = recording
    if weight.node is not None and weight.width == 2:
        _product = recorder.new(weight.n, 2, None, WORKSPACE)
        _wide = recorder.new(weight.n, 4, None, WORKSPACE)


EIGHTHS: Final = 8
"""Parts of the tokens whose logits torchtune widens one after the other (CEWithChunkedOutputLoss, torchtune 0.6.1)."""


def _in_eighths_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """One part's two fp32 gradients and its narrow one at a time; what a part kept goes with it."""
    recorder.ledger.begin("loss")
    n, width = node.data
    _passing = [recorder.new(n, each, component=LOGITS) for each in (4, 4, width)]
    recorder.ledger.begin("backward")
    edge, kept = node.edges[0], node.saved[0]
    return [view(kept, edge[2], edge[3]) if edge is not None and isinstance(kept, Storage) else None]


def _scored(recorder: Recorder, n: int) -> Tensor:
    """A part's log-softmax, made of an fp32 copy of its logits."""
    _wide = recorder.new(n, 4, None, LOGITS)
    return recorder.new(n, 4, None, LOGITS)


def loss_in_eighths(recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """Logits of all tokens in the product's type, widened a part after the other; keeps each part's log-softmax."""
    logits = linear(recorder, x, weight, bias, logits=True)
    recorder.ledger.begin("loss")
    n = recorder.sizes.bs * -(-weight.shape[0] // EIGHTHS)
    node = recorder.open(_in_eighths_back, (logits,), (n, logits.width))
    for _ in range(EIGHTHS):
        recorder.keep(node, _scored(recorder, n))
    recorder.keep(node, recorder.new(recorder.sizes.bs, 8))
    loss = recorder.new(1, 4, node)
    recorder.ledger.begin("forward")
    return loss


TILE_ROWS: Final = 4096
TILE_COLUMNS: Final = 32768
"""Tokens and entries of the vocabulary that trl's fused head takes at once (trl 1.16, kernels/chunked_logprob.py)."""


def _in_tiles_back(recorder: Recorder, node: Node, g: Tensor) -> list[Tensor | None]:
    """Each tile is made again; gradients are added up in fp32 and come in their own type at the end."""
    recorder.ledger.begin("loss")
    tile, folded, width, columns, again, rows, several, parts = node.data
    wide = [None if edge is None else recorder.new(edge[2], 4) for edge in node.edges]
    _tiles = _tiles_of(recorder, tile, width, several)
    if recorder.folds_tiles and several == 1:
        _fold(recorder, folded, FOLDED_BACK)
    _gradient = _gradient_of_tile(recorder, tile, width, again=parts > 1) if several > 1 else None
    # The copy of a tile's part of the weight stands until the next one is made.
    _passing = [recorder.new(n, width, component=WORKSPACE) for n in (columns, again, rows) if n]
    results: list[Tensor | None] = []
    for edge, sum_of in zip(node.edges, wide, strict=True):
        same = edge is None or edge[3] == 4
        results.append(sum_of if same else recorder.gradient(node, len(results), edge[3]))  # type: ignore[index]
    recorder.ledger.begin("backward")
    return results


def _gradient_of_tile(recorder: Recorder, tile: int, width: int, *, again: bool) -> Tensor:
    """A tile's gradient, made while that of the one before is still named."""
    before = recorder.new(tile, width, component=LOGITS) if again else None
    gradient = recorder.new(tile, width, component=LOGITS)
    del before
    return gradient


def _tiles_of(recorder: Recorder, tile: int, width: int, several: int) -> list[Tensor]:
    """A tile of logits, or those of two models, in fp32 then (trl 1.16, kernels/chunked_divergence.py)."""
    return [recorder.new(tile, 4 if several > 1 else width, component=LOGITS) for _ in range(several)]


def _tiled(
    recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None, rows: int, several: int = 1
) -> Tensor:
    """Log-probabilities of the labels and what is logged beside them, a tile of tokens and vocabulary after the other.

    Keeps the rows that are scored, which are copied, and two fp32 numbers of each; all tokens count as scored.
    `several`: 2 where another model's logits stand beside each tile.
    """
    recorder.ledger.begin("loss")
    tokens = recorder.sizes.bs
    vocab, n_in = weight.shape
    scored = recorder.new(x.n, x.width, recorder.open(passed, (x,)))
    labels = recorder.new(tokens, 8)
    width = 2 if recorder.autocast else x.width
    columns = min(vocab, TILE_COLUMNS) * n_in if weight.width != width else 0
    narrowed = rows * n_in if x.width != width else 0
    again = min(TILE_COLUMNS, max(0, vocab - TILE_COLUMNS)) * n_in if columns else 0
    tile, folded = rows * TILE_COLUMNS, rows * min(vocab, TILE_COLUMNS)
    parts = -(-vocab // TILE_COLUMNS)
    node = recorder.open(
        _in_tiles_back, (scored, weight, bias), (tile, folded, width, columns, again, narrowed, several, parts)
    )
    _statistics = [recorder.new(tokens, 4) for _ in range(STATISTICS)]
    _tiles = _tiles_of(recorder, tile, width, several)
    if recorder.folds_tiles and several == 1:
        _fold(recorder, folded, FOLDED)
    _passing = [recorder.new(n, width, component=WORKSPACE) for n in (columns, narrowed) if n]
    recorder.keep(node, scored, labels, *_statistics[:2])
    loss = recorder.new(1, 4, node)
    recorder.ledger.begin("forward")
    return loss


FOLDED: Final = (4, 4, 4, 1)
FOLDED_BACK: Final = (4, 4, 4, 4, 4, 4, 4, 1)
"""Bytes an element of what stands beside a tile that is folded in torch, at its fullest moment. _forward_tile: scores,
their distances, an exponential, places before the label. _backward_tile: scores twice, logarithm and exponential of the
probabilities, the gradient, labels as truth values and as numbers, and what comes of them."""


def _fold(recorder: Recorder, tile: int, widths: tuple[int, ...]) -> None:
    _beside = [recorder.new(tile, width, component=LOGITS) for width in widths]


STATISTICS: Final = 7
"""fp32 numbers of a token that the tiles are folded into."""


def loss_in_tiles(recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """Log-probabilities in tiles of as many tokens as trl takes at once."""
    return _tiled(recorder, x, weight, bias, TILE_ROWS)


def loss_in_one_tile(recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """The same where there are not more tokens than that."""
    return _tiled(recorder, x, weight, bias, recorder.sizes.bs)


def loss_in_tiles_of_two(recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """Divergence from what another model expects, in tiles of both; what the other one keeps is counted elsewhere."""
    return _tiled(recorder, x, weight, bias, TILE_ROWS, 2)


def loss_in_one_tile_of_two(recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """The same where there are not more tokens than in a tile."""
    return _tiled(recorder, x, weight, bias, recorder.sizes.bs, 2)


def causal_loss(recorder: Recorder, logits: Tensor) -> Tensor:
    """Cross entropy of shifted labels; keeps the log-softmax and the labels."""
    sizes = recorder.sizes
    wide = cast_logits(recorder, logits)
    padded = recorder.new(sizes.bs + sizes.b, 8)
    return _of_logits(recorder, wide, padded if sizes.single else recorder.new(sizes.bs, 8))


def shifted_loss(recorder: Recorder, logits: Tensor) -> Tensor:
    """The same as it was written before: all logits but each sequence's last, copied in fp32 (transformers 4.48 and
    earlier, loss_utils.py, ForCausalLMLoss). A batch of one is no copy.
    """
    wide = cast_logits(recorder, logits)
    shifted = recorder.new(wide.n, wide.width, recorder.open(made, (wide,)), LOGITS)
    return _of_logits(recorder, shifted, recorder.new(recorder.sizes.bs, 8))


def plain_loss(recorder: Recorder, logits: Tensor) -> Tensor:
    """Cross entropy of labels as they are, in the type of the logits, whose log-softmax is widened under autocast
    (encoders, encoder-decoders)."""
    return _of_logits(recorder, logits, recorder.new(recorder.sizes.bs, 8))


def _of_logits(recorder: Recorder, logits: Tensor, labels: Tensor) -> Tensor:
    recorder.ledger.begin("loss")
    node = recorder.open(_log_softmax_back, (logits,))
    scores = recorder.new(logits.n, logits.width, node, LOGITS)
    recorder.keep(node, scores)
    wide = cast_logits(recorder, scores) if recorder.autocast else scores
    node = recorder.open(_nll_back, (wide,))
    recorder.keep(node, wide, labels)
    loss = recorder.new(1, 4, node)
    total = recorder.new(1, 4)
    recorder.keep(node, total)
    recorder.ledger.begin("forward")
    return loss


def cast_logits(recorder: Recorder, logits: Tensor) -> Tensor:
    """The fp32 copy of 2-byte logits."""
    before = recorder.component
    recorder.component = LOGITS
    wide = cast(recorder, logits, 4)
    recorder.component = before
    return wide


def cut_loss(recorder: Recorder, x: Tensor, weight: Parameter, bias: Parameter | None) -> Tensor:
    """Head and cross entropy in one kernel that writes no logits: keeps the head's input and a number a token."""
    w = copied_weight(recorder, weight) if recorder.autocast else weight
    x = cast(recorder, x, w.width)
    node = recorder.open(made, (x, w, bias))
    recorder.keep(node, x, w, recorder.new(recorder.sizes.bs, 4))
    return recorder.new(1, 4, node)


LOSSES: Final[Mapping[str, Callable[[Recorder, Tensor], Tensor]]] = {
    "written": causal_loss,
    "shifted": shifted_loss,
    "plain": plain_loss,
    "kernel": fused_loss,
    "in-place": loss_in_place,
    "compiled": compiled_loss,
    "of-pairs": loss_of_pairs,
    "of-pairs-and-text": loss_of_pairs_and_text,
}
"""Losses over the logits of all tokens, by the trait that names them."""

WIDENED: Final = ("of-pairs", "of-pairs-and-text")
"""Losses outside of the model, which get what accelerate makes of its output under autocast: fp32."""

LOSSES_WITH_HEAD: Final[Mapping[str, Callable[[Recorder, Tensor, Parameter, Parameter | None], Tensor]]] = {
    "of-last-token": loss_of_last_token,
    "in-pieces": loss_in_pieces,
    "in-chunks": loss_in_chunks,
    "in-parts": loss_in_parts,
    "in-eighths": loss_in_eighths,
    "in-rows": loss_in_rows,
    "in-shifted-rows": loss_in_shifted_rows,
    "in-rows-of-each": loss_in_each_rows,
    "cut": cut_loss,
    "in-tiles": loss_in_tiles,
    "in-one-tile": loss_in_one_tile,
    "in-tiles-of-two": loss_in_tiles_of_two,
    "in-one-tile-of-two": loss_in_one_tile_of_two,
}
"""Losses that run the head themselves, a part of the tokens after the other."""

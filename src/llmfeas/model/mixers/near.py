"""Attention in blocks to the tokens of a window around each one, and to a few that see all and that all see.

Longformer's code: queries and keys are copied as blocks of a window, each half over the one before, and multiplied
whole; the scores of each token's own window are cut out of that, the values summed in blocks of three halves. The few
tokens (here one a sequence, which its classes take for classification and its authors advise for summaries) have
projections of their own, whose keys and values are made of every token.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ...autograd.basic import add, cast, dropout, filled, scaled_in_place, softmax
from ...autograd.graph import Tensor, view
from ...autograd.products import matmul
from ...autograd.rules import made
from ...autograd.storage import FIELD_MASK
from ...autograd.views import copy, gathered, joined, overlapping, overwritten, padded, sliced
from ...catalog.architecture import Architecture, LayerKind
from ...record import dataclass, replace
from ..context import Context, Linear
from ..operator import Operator
from ..weight import Weight, column_linear, row_linear
from .rotation import Around

EVERYWHERE: Final = 1
"""Tokens of a sequence that see all and that all see."""

_GLOBAL: Final = ("q_global", "k_global", "v_global")


@dataclass(frozen=True, slots=True)
class NearAttention(Operator):
    """Queries, keys and values twice, scores within half a window on both sides, the output projection."""

    title: ClassVar[str] = "attention in blocks around each token"
    is_common: ClassVar[bool] = False
    divided: ClassVar[tuple[str, ...]] = ("heads",)
    hidden: int
    heads: int
    head_dim: int
    seen: int
    """Tokens of a window, half of them on each side."""

    @property
    def width(self) -> int:
        """Width of all heads together."""
        return self.heads * self.head_dim

    @property
    def half(self) -> int:
        """Tokens on one side."""
        return self.seen // 2

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Projections with biases; the second ones of keys and values read every token, that of queries a few."""
        found = [
            weight
            for name in ("q", "k", "v", *_GLOBAL)
            for weight in column_linear(name, self.hidden, self.width, bias=True, adapter="attention")
        ]
        few = [replace(weight, uses=0.0) if weight.name == _GLOBAL[0] else weight for weight in found]
        return (*few, *row_linear("o", self.width, self.hidden, bias=True, adapter="attention"))

    @property
    def whole_tokens(self) -> int:
        """A window: sequences are filled up to a multiple of it."""
        return self.seen

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence: scores of blocks and values, and those of the few tokens, with their queries."""
        n, half = -(-tokens // self.seen) * self.seen, self.half
        blocks = n // half - 1
        near = (2.0 * self.seen**2 * blocks + 6.0 * half * n) * self.width
        return near + EVERYWHERE * (8.0 * n * self.width + 2.0 * self.hidden * self.width)

    @property
    def window(self) -> int | None:
        """Its window."""
        return self.seen

    @property
    def span(self) -> tuple[float, int, int | None]:
        """All heads over the window; nothing is cached."""
        return self.width, 0, self.seen

    def decode_flop(self, cached: float) -> float:
        """FLOPs of a token's scores; no token is ever written."""
        return 4.0 * self.width * min(cached + 1, self.seen)

    def pass_bytes(self, tokens: int, seen: int, sequences: int, width: float) -> float:
        """Queries, keys, values and their copies in blocks, scores of two windows and what they become in 32 bits."""
        scores = self.heads * (2 * self.seen * width + self.seen * 4)
        return tokens * sequences * (7 * self.width * width + scores)

    @property
    def stream_width(self) -> float:
        """2 of all heads, copies in blocks and scores of a window."""
        return 2.0 * (3 + 4) * self.width + 6.0 * self.heads * self.seen

    def program(self, context: Context) -> NearProgram:
        """Attention in blocks, in whatever kernels are asked for."""
        return NearProgram(context, self)


class NearProgram:
    """The code of Longformer, operator by operator."""

    __slots__ = ("context", "names", "operator")

    def __init__(self, context: Context, operator: NearAttention) -> None:
        self.context, self.operator = context, operator
        self.names = context.made(operator.weights).projections

    @property
    def _tokens(self) -> int:
        return self.context.sizes.bs

    @property
    def _in_blocks(self) -> int:
        """Tokens of all blocks, where each overlaps the one before by half; of lengths that are no numbers yet as many
        as twice the sequence has.
        """
        sizes = self.context.sizes
        known = sizes.s <= FIELD_MASK
        return 2 * sizes.bs - (self.operator.seen * sizes.b if known else 0)

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
        """What it attends to; no scores are returned."""
        recorder, operator, b = self.context.recorder, self.operator, self.context.sizes.b
        query, key, value = (self._projected(self.names[name], x) for name in ("q", "k", "v"))
        query = scaled_in_place(recorder, query)
        scores = self._scores(query, key)
        few = gathered(recorder, key, b * operator.width)
        beside = matmul(recorder, query, few, self._tokens * operator.heads * EVERYWHERE)
        scores = joined(recorder, beside, scores)
        del beside, few
        narrow = scores.width
        weights = softmax(recorder, scores, 4)
        weights = filled(recorder, weights, recorder.new(1, 1))
        weights = cast(recorder, weights, narrow)
        del scores
        weights = dropout(recorder, weights, self.context.recipe.drop_attention)
        out = self._summed(weights, value)
        out = copy(recorder, out)
        out = overwritten(recorder, out, self._of_all(x))
        return self._projected(self.names["o"], out), None

    def _projected(self, layer: Linear, x: Tensor) -> Tensor:
        """A projection of a stream that lies the other way round: of a copy, to which the bias is added in place."""
        recorder = self.context.recorder
        x = cast(recorder, x, 2) if recorder.autocast else x
        return self.context.apply(layer, copy(recorder, x))

    def _scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Scores of each token's window, cut out of those of whole blocks."""
        recorder, operator = self.context.recorder, self.operator
        heads, half, blocks = operator.heads, operator.half, self._in_blocks
        q, k = (overlapping(recorder, x, blocks * operator.width) for x in (query, key))
        whole = matmul(recorder, q, k, blocks * heads * 2 * half)
        del q, k
        whole = padded(recorder, whole, blocks * heads * (2 * half + 1))
        scores = recorder.new(self._tokens * heads * (2 * half + 1), whole.width)
        part = blocks // 2 * heads * (half + 1)
        scores = overwritten(recorder, scores, sliced(recorder, whole, part))
        return overwritten(recorder, scores, sliced(recorder, whole, part))

    def _summed(self, weights: Tensor, value: Tensor) -> Tensor:
        """Values of each token's window, and those of the few, times their weights."""
        recorder, operator, sizes = self.context.recorder, self.operator, self.context.sizes
        tokens, heads, half, width = self._tokens, operator.heads, operator.half, operator.width
        first = copy(recorder, sliced(recorder, weights, tokens * heads * EVERYWHERE))
        few = copy(recorder, gathered(recorder, value, sizes.b * width))
        beside = matmul(recorder, first, few, tokens * width)
        del first, few
        near = copy(recorder, sliced(recorder, weights, tokens * heads * (2 * half + 1)))
        cut = copy(recorder, near)
        longer = padded(recorder, value, (tokens + operator.seen * sizes.b) * width)
        longer = overlapping(recorder, longer, 3 * tokens * width)
        cut = padded(recorder, cut, tokens * heads * (3 * half + 2))
        shifted = sliced(recorder, sliced(recorder, cut, tokens * heads * (3 * half + 1)), tokens * heads * 3 * half)
        out = matmul(recorder, shifted, longer, tokens * width)
        del near, cut, shifted, longer
        return add(recorder, beside, out)

    def _of_all(self, x: Tensor) -> Tensor:
        """What the few tokens make of all others."""
        recorder, operator, b = self.context.recorder, self.operator, self.context.sizes.b
        few = gathered(recorder, x, b * operator.hidden * EVERYWHERE)
        query = self.context.apply(self.names[_GLOBAL[0]], few)
        key, value = (self._projected(self.names[name], x) for name in _GLOBAL[1:])
        scores = matmul(recorder, query, key, self._tokens * operator.heads * EVERYWHERE)
        weights = cast(recorder, softmax(recorder, scores, 4), scores.width)
        weights = dropout(recorder, weights, self.context.recipe.drop_attention)
        out = matmul(recorder, weights, value, b * operator.width * EVERYWHERE)
        return view(out.storage, out.n, out.width, recorder.open(made, (out,)))


def near_attention(architecture: Architecture, kind: LayerKind) -> NearAttention:
    """The attention of a layer whose window is computed in blocks."""
    a = architecture
    assert a.window is not None
    return NearAttention(a.hidden, a.heads, a.head_dim, a.window.size)

"""Attention of a kind that few models have: queries of low rank (Step 3), the difference of two maps over values twice
as wide (Differential Transformer, SambaY), a window and every so manyth block before it (Phi-3 small).
"""

from __future__ import annotations

from typing import ClassVar

from ...autograd.graph import Tensor
from ...record import dataclass
from ..context import Context, Made
from ..norm import NormProgram, norm_program
from ..operator import AttentionKernel, Operator, SpanShape
from ..weight import Weight, column_linear, row_linear, vector
from .attention import Attention, AttentionProgram
from .scores import softmax_backward_flop, softmax_flop


@dataclass(frozen=True, slots=True)
class FactoredAttention(Attention):
    """Multi-matrix factorization attention: the product to the low rank is whole on every rank."""

    title: ClassVar[str] = "attention with factored queries"
    is_common: ClassVar[bool] = False
    q_rank: int = 0

    @property
    def weights(self) -> tuple[Weight, ...]:
        """As attention, queries in two products."""
        output = row_linear("o", self.out_width, self.hidden, adapter="attention")
        return (
            *column_linear("q_a", self.hidden, self.q_rank, adapter="attention", split="none"),
            vector("q_low_norm", self.q_rank),
            *column_linear("q", self.q_rank, self.q_width, adapter="attention", inner=True),
            *column_linear("k", self.hidden, self.kv_width, adapter="attention", split="none"),
            *column_linear("v", self.hidden, self.kv_width, adapter="attention", split="none"),
            *output,
        )

    def program(self, context: Context) -> FactoredProgram:
        """Attention, its queries in two products."""
        return FactoredProgram(context, self)


class FactoredProgram(AttentionProgram):
    """As attention, with what makes the queries out of the stream."""

    __slots__ = ("low_norm",)

    def _norm(self, made: Made, name: str, heads: int) -> NormProgram | None:
        if name == "q_norm":
            weight = made.parameters["q_low_norm"]
            self.low_norm = NormProgram(weight.n, weight, None, norm_program(self.context, "rms"))
        return None

    def _queries(self, x: Tensor) -> Tensor:
        low = self.low_norm(self.context.recorder, self.context.apply(self.projections["q_a"], x))
        return self.context.apply(self.projections["q"], low)


@dataclass(frozen=True, slots=True)
class DifferentialAttention(Attention):
    """Half of the heads are subtracted from the others. Public code runs each map over each half of the values, so that
    scores are formed twice.
    """

    title: ClassVar[str] = "differential attention"
    is_common: ClassVar[bool] = False

    def _small(self) -> tuple[Weight, ...]:
        """Four vectors that make the factor of the second map, and the norm of a pair of heads."""
        return (vector("lambdas", 4 * self.head_dim), vector("pair_norm", 2 * self.head_dim))

    def score_flop(self, tokens: int) -> float:
        """Twice that of attention."""
        return 2 * Attention.score_flop(self, tokens)

    def score_backward_flop(self, tokens: int, kernel: AttentionKernel) -> float:
        """Twice that of attention."""
        return 2 * Attention.score_backward_flop(self, tokens, kernel)

    def decode_flop(self, cached: float) -> float:
        """Twice that of attention."""
        return 2 * Attention.decode_flop(self, cached)


@dataclass(frozen=True, slots=True)
class BlockAttention(Attention):
    """The part within the window, without the share that `Strided` counts. FLOPs of a sequence count, together with
    those, the full square.
    """

    title: ClassVar[str] = "block-sparse attention"
    is_common: ClassVar[bool] = False
    every: int = 1

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence, less a share."""
        return Attention.score_flop(self, tokens) * (self.every - 1) / self.every

    def score_backward_flop(self, tokens: int, kernel: AttentionKernel) -> float:
        """FLOPs of its backward pass, less a share."""
        return Attention.score_backward_flop(self, tokens, kernel) * (self.every - 1) / self.every

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token against its window, less a share."""
        return Attention.decode_flop(self, cached) * (self.every - 1) / self.every

    @property
    def span(self) -> SpanShape:
        """All heads over keys and values of the window, less a share."""
        values = self.kv_heads * (self.head_dim + self.v_dim)
        width = (self.q_width + self.out_width) / 2
        return width * (self.every - 1) / self.every, values - values // self.every, self.window


@dataclass(frozen=True, slots=True)
class Strided(Operator):
    """Every so manyth block of all that went before: a share of it, within the window too, where it sees the rest."""

    is_common: ClassVar[bool] = False
    heads: int
    kv_heads: int
    head_dim: int
    every: int

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence: a share of the square."""
        return softmax_flop(float(tokens) * tokens / self.every, self.heads, self.head_dim, self.head_dim)

    def score_backward_flop(self, tokens: int, kernel: AttentionKernel) -> float:
        """FLOPs of its backward pass."""
        pairs = float(tokens) * tokens / self.every
        return softmax_backward_flop(pairs, self.heads, self.head_dim, self.head_dim, kernel)

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token against a share of those before it."""
        return softmax_flop((cached + 1) / self.every, self.heads, self.head_dim, self.head_dim)

    @property
    def cache_parts(self) -> int:
        """Key-value heads."""
        return self.kv_heads

    @property
    def span(self) -> SpanShape:
        """All heads over a share of keys and values."""
        return self.heads * self.head_dim / self.every, 2 * self.kv_heads * self.head_dim // self.every, None

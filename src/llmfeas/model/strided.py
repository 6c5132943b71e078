"""Attention to a window and to every so manyth block before it, whose cache keeps all (Phi-3 small)."""

from __future__ import annotations

from typing import ClassVar

from ..record import dataclass
from .attention import Attention
from .operator import AttentionKernel, Operator, SpanShape
from .scores import softmax_backward_flop, softmax_flop


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

"""Attention as the difference of two maps over values twice as wide (Differential Transformer, SambaY)."""

from __future__ import annotations

from typing import ClassVar

from ..record import dataclass
from .attention import Attention
from .operator import AttentionKernel
from .weight import Weight, vector


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

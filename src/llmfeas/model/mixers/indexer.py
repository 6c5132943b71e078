"""The indexer of sparse attention, held beside it: training over the whole sequence keeps none of its scores."""

from __future__ import annotations

from typing import ClassVar

from ...catalog.architecture import Architecture, LayerKind
from ...record import dataclass
from ..operator import Operator, SpanShape
from ..weight import Weight, column_linear, vector


@dataclass(frozen=True, slots=True)
class TokenIndexer(Operator):
    """Picks the cached tokens that sparse attention reads, by keys of its own beside the cache."""

    title: ClassVar[str] = "an indexer of sparse attention"
    learns: ClassVar[bool] = False
    hidden: int
    q_rank: int
    heads: int
    head_dim: int

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Query and key projections, the key's norm, and the weight of each head."""
        return (
            *column_linear("index_q", self.q_rank, self.heads * self.head_dim, adapter="attention", inner=True),
            *column_linear("index_k", self.hidden, self.head_dim, adapter="attention", split="none"),
            vector("index_norm", self.head_dim),
            vector("index_norm.bias", self.head_dim),
            *column_linear("index_weights", self.hidden, self.heads, adapter="attention"),
        )

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence's index scores, over the full square."""
        return 2.0 * tokens * tokens * self.heads * self.head_dim

    def cached_values(self, tokens: int) -> int:
        """One key a token."""
        return self.head_dim * tokens

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token's index scores."""
        return 2.0 * (cached + 1) * self.heads * self.head_dim

    @property
    def span(self) -> SpanShape:
        """All heads over one key a token; it has no values."""
        return self.heads * self.head_dim / 2, self.head_dim, None


@dataclass(frozen=True, slots=True)
class BlockIndexer(Operator):
    """Scores of each token against the mean keys of blocks of those before it (Qwen4-Exp)."""

    title: ClassVar[str] = "sparse-attention indexer"
    learns: ClassVar[bool] = False
    hidden: int
    heads: int
    head_dim: int
    block: int

    @property
    def weights(self) -> tuple[Weight, ...]:
        """One projection to queries and a key, and a norm of each."""
        width = (self.heads + 1) * self.head_dim
        joint = column_linear("index_qk", self.hidden, width, adapter="attention", split="none")
        return (*joint, vector("index_q_norm", self.head_dim), vector("index_norm", self.head_dim))

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence's scores, over the full square."""
        return 2.0 * tokens * (tokens // self.block) * self.heads * self.head_dim

    def cached_values(self, tokens: int) -> int:
        """One key a token, as it is before the mean."""
        return self.head_dim * tokens

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token's scores."""
        return 2.0 * ((cached + 1) // self.block) * self.heads * self.head_dim


def indexer(architecture: Architecture, kind: LayerKind) -> tuple[Operator, ...]:
    """The indexer of an architecture's attention, if it has one."""
    found = architecture.indexer
    if found is None or not kind.indexes or kind.mixer != "attention":
        return ()
    if architecture.mla is None:
        return (BlockIndexer(architecture.hidden, found.heads, found.head_dim, found.block),)
    rank = architecture.mla.q_lora_rank or architecture.hidden
    return (TokenIndexer(architecture.hidden, rank, found.heads, found.head_dim),)

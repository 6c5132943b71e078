"""Multi-head latent attention: keys and values are rebuilt from one small cached vector a token."""

from __future__ import annotations

from ..catalog.architecture import Architecture, LayerKind
from ..record import dataclass
from .attention import softmax_backward_flop, softmax_flop
from .operator import AttentionKernel, Operator, SpanShape
from .weight import Weight, column_linear, row_linear, vector


@dataclass(frozen=True, slots=True)
class LatentAttention(Operator):
    """DeepSeek-V2's attention. The cache holds the latent and the shared rotated key, whole on every rank."""

    hidden: int
    heads: int
    q_rank: int | None
    kv_rank: int
    nope: int
    rope: int
    v_dim: int
    qkv_bias: bool = False
    out_bias: bool = False

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Down-projections are whole on every tensor-parallel rank, up-projections divide by heads."""
        latent = (
            *column_linear(
                "kv_a", self.hidden, self.kv_rank + self.rope, bias=self.qkv_bias, adapter="attention", split="none"
            ),
            vector("kv_norm", self.kv_rank),
            *column_linear(
                "kv_b", self.kv_rank, self.heads * (self.nope + self.v_dim), adapter="attention", inner=True
            ),
        )
        output = row_linear("o", self.heads * self.v_dim, self.hidden, bias=self.out_bias, adapter="attention")
        return self._queries() + latent + output

    def _queries(self) -> tuple[Weight, ...]:
        width = self.heads * (self.nope + self.rope)
        if self.q_rank is None:
            return column_linear("q", self.hidden, width, adapter="attention")
        return (
            *column_linear("q_a", self.hidden, self.q_rank, bias=self.qkv_bias, adapter="attention", split="none"),
            vector("q_norm", self.q_rank),
            *column_linear("q_b", self.q_rank, width, adapter="attention", inner=True),
        )

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence with keys and values written out, as training and prefill do it."""
        return softmax_flop(float(tokens) * tokens, self.heads, self.nope + self.rope, self.v_dim)

    def score_backward_flop(self, tokens: int, kernel: AttentionKernel) -> float:
        """FLOPs of one sequence's backward pass through the scores."""
        return softmax_backward_flop(float(tokens) * tokens, self.heads, self.nope + self.rope, self.v_dim, kernel)

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token in the absorbed form: scores and sums in the latent space."""
        return softmax_flop(cached + 1, self.heads, self.kv_rank + self.rope, self.kv_rank)

    def cached_values(self, tokens: int) -> int:
        """The latent and the rotated key."""
        return (self.kv_rank + self.rope) * tokens

    @property
    def span(self) -> SpanShape:
        """All heads, written out, over the latent."""
        return self.heads * (self.nope + self.rope + self.v_dim) / 2, self.kv_rank + self.rope, None

    @property
    def stream_width(self) -> float:
        """3 of all heads."""
        return 3 * self.heads * (self.nope + self.rope + self.v_dim)


@dataclass(frozen=True, slots=True)
class TokenIndexer(Operator):
    """Picks the cached tokens that sparse attention reads; its own keys are not counted in the cache."""

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
            *column_linear("index_weights", self.hidden, self.heads, adapter="attention"),
        )

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence's index scores, over the full square."""
        return 2.0 * tokens * tokens * self.heads * self.head_dim

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token's index scores."""
        return 2.0 * (cached + 1) * self.heads * self.head_dim


def latent_attention(architecture: Architecture, kind: LayerKind) -> LatentAttention:
    """The latent attention of an architecture."""
    mla = architecture.mla
    assert mla is not None
    return LatentAttention(
        architecture.hidden,
        architecture.heads,
        mla.q_lora_rank,
        mla.kv_lora_rank,
        mla.nope_head_dim,
        mla.rope_head_dim,
        mla.v_head_dim,
        architecture.qkv_bias,
        architecture.out_bias,
    )


def indexer(architecture: Architecture) -> tuple[TokenIndexer, ...]:
    """The indexer of an architecture's latent attention, if it has one."""
    if architecture.indexer is None or architecture.mla is None:
        return ()
    rank = architecture.mla.q_lora_rank or architecture.hidden
    return (TokenIndexer(architecture.hidden, rank, architecture.indexer.heads, architecture.indexer.head_dim),)

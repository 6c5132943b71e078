"""What the time model needs of an architecture: a dozen totals over the tape, taken once and kept."""

from __future__ import annotations

from functools import lru_cache

from ..catalog.architecture import Architecture
from ..record import dataclass
from .attention import Attention
from .build import Block, build
from .delta import DeltaRule
from .experts import RoutedExperts
from .feedforward import FeedForward
from .head import Head
from .latent import LatentAttention
from .operator import Operator

STREAM_READS = 14
"""Times that one attention block with its feed-forward moves the residual stream (norms, sums, projections' ends)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Equal softmax attention blocks: how many, how wide their heads, how far back they look (None: to the start)."""

    blocks: int
    width: float
    """Elements of all heads together, the mean of queries and values (they differ under MLA)."""
    cached: int
    """Values that a block caches for a token."""
    window: int | None

    def seen(self, tokens: float) -> float:
        """Mean number of earlier tokens that a causal block sees, over a sequence of `tokens`."""
        if self.window is None or self.window >= tokens:
            return tokens / 2
        return self.window * (1 - self.window / (2 * tokens))

    def cached_values(self, tokens: float) -> float:
        """Values that the blocks read from their caches when `tokens` went before."""
        return self.blocks * self.cached * (tokens if self.window is None else min(tokens, self.window))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Totals over the tape, in elements and counts; a multiply-add with one weight is two FLOP."""

    layers: int
    moe_layers: int
    blocks: int
    """Attention blocks: more than `layers` where a layer holds two."""
    hidden: int
    heads: int
    vocab: int
    ffn_matrices: int
    parameters: int
    dense_weights: int
    """Matrix weights of all layers outside routed experts, without the output head."""
    head_weights: int
    """The output head, also where it is tied to the embedding."""
    routed_weights: int
    experts: int
    experts_per_token: float
    stream_width: float
    """Elements a token that the pointwise operators of one forward move, summed over the layers."""
    spans: tuple[Span, ...]
    linear_flop: float
    """Forward FLOP of a token in linear attention, outside its matrices."""
    state_bytes: int
    """Bytes of the recurrent state of one sequence, over all linear layers."""

    @property
    def routed_active(self) -> float:
        """Weights of the routed experts that one token meets."""
        return self.routed_weights * self.experts_per_token / self.experts if self.experts else 0.0

    @property
    def active(self) -> float:
        """Matrix weights that one token meets, without the head."""
        return self.dense_weights + self.routed_active

    def attention_flop(self, tokens: float) -> float:
        """Forward FLOP of scores and values for one token of a sequence of `tokens`, causal and within windows."""
        return 4 * sum(span.blocks * span.width * span.seen(tokens) for span in self.spans) + self.linear_flop

    def attention_square_flop(self, tokens: float) -> float:
        """The same over the full square, as FLOP counters and most published MFU count it."""
        return 4 * tokens * sum(span.blocks * span.width for span in self.spans) + self.linear_flop

    def cached_values(self, tokens: float) -> float:
        """Values that decoding one token reads from the cache after `tokens` tokens, without a recurrent state."""
        return sum(span.cached_values(tokens) for span in self.spans)


@lru_cache(maxsize=1024)
def architecture_sums(architecture: Architecture) -> Sums:
    """Add up an architecture for the time model."""
    tape = build(architecture)
    moe = [(operator, repeat) for operator, repeat in tape.operators if isinstance(operator, RoutedExperts)]
    routed = sum(repeat * sum(w.elements for w in operator.routed if w.is_matrix) for operator, repeat in moe)
    linear = [(operator, repeat) for operator, repeat in tape.operators if isinstance(operator, DeltaRule)]
    spans = tuple(_span(operator, repeat) for operator, repeat in tape.operators if _is_softmax(operator))
    return Sums(
        layers=architecture.layers,
        moe_layers=sum(repeat for _, repeat in moe),
        blocks=architecture.layers * architecture.attention_blocks,
        hidden=architecture.hidden,
        heads=architecture.heads,
        vocab=architecture.vocab,
        ffn_matrices=architecture.ffn_matrices,
        parameters=sum(repeat * w.elements for operator, repeat in tape.operators for w in operator.weights),
        dense_weights=_matrix_weights(tape.operators) - routed,
        head_weights=architecture.vocab * (architecture.embedding_dim or architecture.hidden),
        routed_weights=routed,
        experts=moe[0][0].count if moe else 0,
        experts_per_token=float(moe[0][0].real) if moe else 0.0,
        stream_width=sum(block.repeat * _stream_width(architecture, block) for block in tape.blocks),
        spans=spans,
        linear_flop=sum(repeat * operator.score_flop(1 << 16) for operator, repeat in linear) / (1 << 16),
        state_bytes=sum(repeat * operator.state_bytes for operator, repeat in linear),
    )


def _matrix_weights(operators: tuple[tuple[Operator, int], ...]) -> int:
    return sum(
        repeat * weight.elements
        for operator, repeat in operators
        for weight in operator.weights
        if weight.is_matrix and weight.uses and not (isinstance(operator, Head) and weight.name == "head")
    )


def _is_softmax(operator: Operator) -> bool:
    return isinstance(operator, Attention | LatentAttention)


def _span(operator: Operator, repeat: int) -> Span:
    if isinstance(operator, LatentAttention):
        width = operator.heads * (operator.nope + operator.rope + operator.v_dim) / 2
        return Span(blocks=repeat, width=width, cached=operator.kv_rank + operator.rope, window=None)
    assert isinstance(operator, Attention)
    width = float(operator.heads * operator.head_dim)
    cached = 2 * operator.kv_heads * operator.head_dim
    return Span(blocks=repeat, width=width, cached=cached, window=operator.window)


def _stream_width(architecture: Architecture, block: Block) -> float:
    """Elements a token that norms, residuals, rotation and activation of one layer read and write.

    14 of the stream's width for each attention block, 2 of all its heads, 3 of each feed-forward tensor that a token
    passes through.
    """
    total = float(STREAM_READS * architecture.hidden * architecture.attention_blocks)
    for operator in block.operators:
        if isinstance(operator, Attention):
            total += 2 * operator.head_dim * (operator.heads + 2 * operator.kv_heads)
        elif isinstance(operator, LatentAttention):
            total += 3 * operator.heads * (operator.nope + operator.rope + operator.v_dim)
        elif isinstance(operator, DeltaRule):
            total += 2 * (operator.key_heads * 2 * operator.key_dim + operator.value_heads * operator.value_dim)
        elif isinstance(operator, FeedForward):
            total += 3 * (architecture.ffn_matrices - 1) * operator.width
        elif isinstance(operator, RoutedExperts):
            total += 3 * (architecture.ffn_matrices - 1) * (operator.real * operator.width + operator.shared_width)
    return total

"""Attention to a window and to older tokens pressed together, through one key-value head whose keys are its values."""

from __future__ import annotations

from typing import ClassVar

from ...autograd.graph import Tensor
from ...autograd.products import linear
from ...catalog.architecture import Architecture, LayerKind
from ...record import dataclass
from ..context import Context
from ..norm import NormProgram, norm_program
from ..operator import AttentionKernel, Operator, SpanShape
from ..weight import Weight, column_linear, row_linear, vector
from .rotation import Around, rotated
from .scores import eager, fused, softmax_backward_flop, softmax_flop, turned


@dataclass(frozen=True, slots=True)
class SharedKeyAttention(Operator):
    """The part of it that sees the window. FLOPs count the full square, as of every windowed attention here."""

    is_common: ClassVar[bool] = False
    divided: ClassVar[tuple[str, ...]] = ("heads",)  # the key is whole
    dealt_out: ClassVar[tuple[str, ...]] = ("groups",)
    hidden: int
    heads: int
    head_dim: int
    q_rank: int
    rope: int
    seen: int
    groups: int
    out_rank: int

    @property
    def _width(self) -> int:
        return self.heads * self.head_dim

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Queries through a low rank, one key that is the value, sinks, and an output of groups of heads."""
        inner = self._width // self.groups
        return (
            *column_linear("q_a", self.hidden, self.q_rank, adapter="attention", split="none"),
            vector("q_norm", self.q_rank),
            *column_linear("q_b", self.q_rank, self._width, adapter="attention", inner=True),
            *column_linear("kv", self.hidden, self.head_dim, adapter="attention", split="none"),
            vector("kv_norm", self.head_dim),
            vector("sinks", self.heads, split="tensor"),
            Weight("o_a", (self.groups * self.out_rank, inner), adapter="never", inner=True),
            *row_linear("o_b", self.groups * self.out_rank, self.hidden, adapter="attention"),
        )

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence over the full square."""
        return softmax_flop(float(tokens) * tokens, self.heads, self.head_dim, self.head_dim)

    def score_backward_flop(self, tokens: int, kernel: AttentionKernel) -> float:
        """FLOPs of one sequence's backward pass through the scores."""
        return softmax_backward_flop(float(tokens) * tokens, self.heads, self.head_dim, self.head_dim, kernel)

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token against its window."""
        return softmax_flop(min(cached + 1, self.seen), self.heads, self.head_dim, self.head_dim)

    def cached_values(self, tokens: int) -> int:
        """One vector a token of the window, the newest of which brings its own."""
        return self.head_dim * min(tokens, self.seen - 1)

    def pass_bytes(self, tokens: int, seen: int, sequences: int, width: float) -> float:
        """Queries before and behind their rotation, and what they attend to."""
        return 3 * tokens * sequences * self._width * width

    @property
    def span(self) -> SpanShape:
        """All heads over one vector a token of the window."""
        return self._width, self.head_dim, self.seen

    @property
    def window(self) -> int | None:
        """Its window."""
        return self.seen

    @property
    def stream_width(self) -> float:
        """2 of all heads and of the key."""
        return 2 * (self._width + self.head_dim)

    @property
    def rotary_width(self) -> int:
        """The part of a head that rotates."""
        return self.rope

    def program(self, context: Context) -> SharedKeyProgram:
        """Attention with one key for all heads."""
        return SharedKeyProgram(context, self)


class SharedKeyProgram:
    """Projections, norms, rotation, the core, the output in groups."""

    __slots__ = ("context", "kv_norm", "names", "operator", "q_norm", "sinks")

    def __init__(self, context: Context, operator: SharedKeyAttention) -> None:
        made = context.made(operator.weights, streams=True)
        norms, kind = made.parameters, norm_program(context, "rms")
        self.context, self.operator, self.names = context, operator, made.projections
        self.sinks = norms["sinks"]
        self.q_norm = NormProgram(operator.q_rank, norms["q_norm"], None, kind)
        self.kv_norm = NormProgram(operator.head_dim, norms["kv_norm"], None, kind)

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
        """What it attends to, and the scores that eager code returns."""
        context, recorder, operator = self.context, self.context.recorder, self.operator
        low = self.q_norm(recorder, context.apply(self.names["q_a"], x))
        query = turned(recorder, context.apply(self.names["q_b"], low))
        key = self.kv_norm(recorder, context.apply(self.names["kv"], x))
        if around.rotation is not None:
            query, key = (self._turned(part, around) for part in (query, key))
        key = context.cached(key)
        weights: Tensor | None = None
        heads = operator.heads
        if context.recipe.eager:
            out, weights = eager(context, query, key, key, groups=heads, heads=heads, around=around, sinks=self.sinks)
        else:
            out = fused(context, query, key, key, groups=heads, heads=heads, mask=around.mask)
        wide = context.sizes.bs * operator.groups * operator.out_rank
        out = linear(recorder, out, self.names["o_a"].weight, out=wide)
        return context.apply(self.names["o_b"], out), weights

    def _turned(self, x: Tensor, around: Around) -> Tensor:
        recorder, operator, traits = self.context.recorder, self.operator, self.context.traits
        assert around.rotation is not None
        turning = x.n // operator.head_dim * operator.rope
        return rotated(recorder, x, around.rotation, traits.rotation, turning, traits.rotation_joins)


@dataclass(frozen=True, slots=True)
class Compressor(Operator):
    """Presses `rate` tokens into one entry; with `index_heads` an indexer picks the entries that a token sees."""

    title: ClassVar[str] = "attention to compressed tokens"
    hidden: int
    heads: int
    head_dim: int
    rate: int
    q_rank: int
    index_heads: int = 0
    index_dim: int = 0
    top_k: int = 0
    apart: bool = False
    reads: bool = False
    """The entries are those of an earlier layer."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Entries and their gates (twice as wide where entries overlap) and places; the same for an indexer."""
        found = () if self.reads else self._pressing("press", self.head_dim)
        if self.index_heads:
            if not self.reads and self.apart:
                found += column_linear("index_k", self.head_dim, self.index_dim, split="none", inner=True)
                found += (vector("index_norm", self.index_dim),)
            elif not self.reads:
                found += self._pressing("index", self.index_dim)
            found += column_linear("index_q", self.q_rank, self.index_heads * self.index_dim, split="none", inner=True)
            found += column_linear("index_weights", self.hidden, self.index_heads, split="none")
        return found

    def _pressing(self, name: str, width: int) -> tuple[Weight, ...]:
        wide = width * self._overlap
        entries = column_linear(f"{name}_kv", self.hidden, wide, split="none")
        if self.rate > 1:
            entries += (
                *column_linear(f"{name}_gate", self.hidden, wide, split="none"),
                vector(f"{name}_places", self.rate * wide),
            )
        return (*entries, vector(f"{name}_norm", width))

    @property
    def _overlap(self) -> int:
        return 2 if self.index_heads and not self.apart else 1

    @property
    def state_bytes(self) -> int:
        """Tokens that wait for the next entry, and with overlap those of the last: each with its gate, in 32 bits."""
        if self.reads or self.rate == 1:
            return 0
        width = self.head_dim + (0 if self.apart else self.index_dim)
        return 4 * 2 * self.rate * self._overlap * width * self._overlap

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence against all entries, and of its index scores."""
        pairs = float(tokens) * (tokens // self.rate)
        return softmax_flop(pairs, self.heads, self.head_dim, self.head_dim) + 2 * pairs * self._index_width

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token against the entries that it sees, and of its index scores."""
        entries = cached / self.rate
        seen = min(entries, self.top_k) if self.top_k else entries
        return softmax_flop(seen, self.heads, self.head_dim, self.head_dim) + 2 * entries * self._index_width

    @property
    def _index_width(self) -> int:
        return self.index_heads * self.index_dim

    def cached_values(self, tokens: int) -> int:
        """Entries and keys of the indexer; none of another layer's."""
        return 0 if self.reads else (self.head_dim + self.index_dim) * (tokens // self.rate)

    @property
    def span(self) -> SpanShape:
        """All heads over one entry in `rate` tokens, as far back as the indexer's choice reaches."""
        return self.heads * self.head_dim / self.rate, self.head_dim // self.rate, self.top_k * self.rate or None


def compressed_attention(architecture: Architecture, kind: LayerKind) -> SharedKeyAttention:
    """The attention of a layer to its window."""
    parts = architecture.compressed_attention
    assert parts is not None
    return SharedKeyAttention(
        architecture.hidden,
        architecture.heads,
        architecture.head_dim,
        parts.q_rank,
        parts.rope_head_dim,
        parts.window,
        parts.out_groups,
        parts.out_rank,
    )


def compressor(architecture: Architecture, kind: LayerKind) -> tuple[Compressor, ...]:
    """What presses the older tokens of a layer together, if it has such attention and sees beyond its window."""
    a, parts = architecture, architecture.compressed_attention
    if parts is None or kind.mixer != "compressed_attention" or kind.windowed:
        return ()
    shape = a.hidden, a.heads, a.head_dim
    index = (parts.index_heads, parts.index_head_dim) if kind.indexes else (0, 0)
    if kind.shares_cache or parts.apart:
        # Whoever reads entries of another layer sees as many of them, whether it chose them or not.
        rate, top_k = kind.own_rate or parts.rate, parts.top_k
        return (Compressor(*shape, rate, parts.q_rank, *index, top_k, parts.apart, kind.shares_cache),)
    rate, top_k = (parts.rate, parts.top_k) if kind.indexes else (parts.heavy_rate, 0)
    return (Compressor(*shape, rate, parts.q_rank, *index, top_k),)

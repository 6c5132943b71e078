"""Softmax attention with multi-, grouped- or single-query heads, windows included."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

from ...autograd.basic import cast, clipped_in_place, mul, scaled, unary_of_output
from ...autograd.graph import Tensor
from ...autograd.views import copy, repeated, sliced, split
from ...catalog.architecture import Architecture, LayerKind, QkNorm
from ...catalog.implementation import Implementation
from ...catalog.parts import HeadShape
from ...record import dataclass, replace
from ..context import Context, Made
from ..norm import NormProgram
from ..operator import AttentionKernel, Operator, SpanShape
from ..weight import Weight, column_linear, row_linear, vector
from .rotation import Around, Rotation, respread, rotated
from .scores import eager, fused, fused_alike, picked_apart, softmax_backward_flop, softmax_flop, turned

_COUNTER_BYTES = 8
"""A windowed cache layer holds its window as one 64-bit number."""


@dataclass(frozen=True, slots=True)
class Attention(Operator):
    """Queries, keys and values, `softmax(q k) v`, and the output projection.

    FLOPs count the full square: kernels that skip what the causal mask or a window hides do less.
    """

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    qkv_bias: bool = False
    out_bias: bool = False
    key_bias: bool = True
    qk_norm: QkNorm = "none"
    gate: bool = False
    sinks: bool = False
    fused_qkv: bool = False
    relative: bool = False
    alibi: bool = False
    distances: bool = False
    """Scores get a bias by distance from a small table, which fused kernels take as a mask."""
    rotates: bool = True
    rope_fraction: float = 1.0
    window: int | None = None
    window_in_cache: bool = True
    value_dim: int = 0
    """Width of a head of values where it differs."""
    shares_cache: bool = False
    """Keys and values are those of an earlier layer."""
    keys_are_values: bool = False
    """Values are the keys before their norm."""
    head_gate: bool = False
    reads: int = 0
    """Width of what it reads, 0: of the stream."""
    both_sides: bool = False
    """Tokens see those behind them too; nothing is cached."""

    @property
    def v_dim(self) -> int:
        """Width of a head of values."""
        return self.value_dim or self.head_dim

    @property
    def out_width(self) -> int:
        """Width of what is attended to, all heads together."""
        return self.heads * self.v_dim

    @property
    def q_width(self) -> int:
        """Width of all query heads together (need not equal `hidden`)."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all key (or value) heads together."""
        return self.kv_heads * self.head_dim

    @property
    def rotary_width(self) -> int:
        """The part of a head that rotates."""
        return int(self.head_dim * self.rope_fraction) if self.rotates else 0

    @property
    def biased_heads(self) -> int:
        """All heads, where positions are ALiBi or distances."""
        return self.heads if self.alibi or self.distances else 0

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Projections (heads divide over tensor-parallel ranks) and the small vectors beside them."""
        output = row_linear("o", self.out_width, self.hidden, bias=self.out_bias, adapter="attention")
        return self._projections() + self._small() + output

    def _projections(self) -> tuple[Weight, ...]:
        q_out, kv = 2 * self.q_width if self.gate else self.q_width, self.kv_width
        v = self.kv_heads * self.v_dim
        read = self.reads or self.hidden
        parts: tuple[tuple[str, int], ...] = (("q", q_out), ("k", kv), ("v", v))
        if self.fused_qkv:
            parts = (("qkv", q_out + kv + v),)
        elif self.shares_cache or self.keys_are_values:
            parts = parts[:1] if self.shares_cache else parts[:2]
        return tuple(
            weight
            for name, outputs in parts
            for weight in column_linear(name, read, outputs, bias=self._biases(name), adapter="attention")
        )

    def _biases(self, name: str) -> bool:
        return self.qkv_bias and (self.key_bias or name != "k")

    def _small(self) -> tuple[Weight, ...]:
        q_width, kv_width = self.q_width, self.kv_width
        found: list[Weight] = []
        if self.qk_norm in ("head", "full"):
            widths = (self.head_dim, self.head_dim) if self.qk_norm == "head" else (q_width, kv_width)
            found += [vector("q_norm", widths[0])]
            if not self.shares_cache:
                found += [vector("k_norm", widths[1])]
        if self.sinks:
            found.append(vector("sinks", self.heads, split="tensor"))
        if self.head_gate:
            found += column_linear("head_gate", self.hidden, self.heads, adapter="attention")
        if self.relative:
            # Applied to the positions of one sequence, not to every token: its products are in score_flop.
            found.append(Weight("relative", (q_width, self.hidden), uses=0.0, inner=True))
            found.append(vector("relative_bias", 2 * q_width, split="tensor"))
        return tuple(found)

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence: `4 heads head_dim s^2`; relative positions add a third product and a projection."""
        pairs = float(tokens) * tokens
        flop = softmax_flop(pairs, self.heads, self.head_dim, self.v_dim)
        if self.relative:
            sides = 2 if self.both_sides else 1
            flop += sides * (2 * pairs * self.q_width + 2.0 * tokens * self.hidden * self.q_width)
        return flop

    def score_backward_flop(self, tokens: int, kernel: AttentionKernel) -> float:
        """FLOPs of one sequence's backward pass through the scores."""
        pairs = float(tokens) * tokens
        plain = softmax_flop(pairs, self.heads, self.head_dim, self.v_dim)
        positions = self.score_flop(tokens) - plain
        return softmax_backward_flop(pairs, self.heads, self.head_dim, self.v_dim, kernel) + 2 * positions

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token against the tokens that this layer still holds."""
        seen = cached + 1 if self.window is None else min(cached + 1, self.window)
        return softmax_flop(seen, self.heads, self.head_dim, self.v_dim)

    def cached_values(self, tokens: int) -> int:
        """Keys and values; a windowed layer keeps `window - 1` tokens, the newest one brings its own."""
        if self.shares_cache or self.both_sides:
            return 0
        held = min(tokens, self.window - 1) if self.window is not None and self.window_in_cache else tokens
        return self.kv_heads * (self.head_dim + self.v_dim) * held

    @property
    def cache_parts(self) -> int:
        """Key-value heads."""
        return self.kv_heads

    def pass_bytes(self, tokens: int, seen: int, sequences: int, width: float) -> float:
        """Queries and keys before and behind their rotation."""
        return 2 * tokens * sequences * (self.q_width + self.kv_width) * width

    @property
    def span(self) -> SpanShape:
        """All heads over keys and values of the window."""
        cached = 0 if self.both_sides else self.kv_heads * (self.head_dim + self.v_dim)
        return (self.q_width + self.out_width) / 2, cached, self.window

    @property
    def stream_width(self) -> float:
        """2 of all heads."""
        return 2 * self.head_dim * (self.heads + 2 * self.kv_heads)

    def without_window(self) -> Self:
        """The same without its window."""
        return self if self.window is None else replace(self, window=None)

    @property
    def counter_bytes(self) -> int:
        """The window's size as PyTorch keeps it beside the keys and values of a windowed layer."""
        caches = self.window_in_cache and not (self.shares_cache or self.both_sides)
        return _COUNTER_BYTES if self.window is not None and caches else 0

    def on_rank(self, tp: int, expert_tp: int) -> Self:
        """Its query heads, and as many key-value heads as divide them, at least one."""
        heads, kv_heads = -(-self.heads // tp), max(1, self.kv_heads // tp)
        return replace(self, heads=heads, kv_heads=kv_heads if heads % kv_heads == 0 else heads)

    def laid_out(self, traits: Implementation) -> Self:
        """With one projection for queries, keys and values, or three; a gate comes with those of the queries."""
        return replace(self, fused_qkv=traits.qkv != "separate" and not (self.gate or self.shares_cache))

    def program(self, context: Context) -> AttentionProgram:
        """Attention of every token to those before it, in a fused kernel or written out."""
        return AttentionProgram(context, self)


class AttentionProgram:
    """Projections, norms of heads, rotation, the core, the output projection."""

    __slots__ = ("context", "groups", "k_norm", "learned", "lends", "o", "operator", "projections", "q_norm", "sinks")

    def __init__(self, context: Context, operator: Attention) -> None:
        made = context.made(operator.weights, streams=True)
        self.context, self.operator, self.lends = context, operator, context.lends
        self.projections, self.o = made.projections, made.projections["o"]
        self.groups = operator.heads // operator.kv_heads
        self.sinks = made.parameters.get("sinks")
        self.learned = context.learned_keys(operator.cached_values(1))
        self.q_norm = self._norm(made, "q_norm", operator.heads)
        self.k_norm = self._norm(made, "k_norm", operator.kv_heads)

    def _norm(self, made: Made, name: str, heads: int) -> NormProgram | None:
        weight, operator, traits = made.parameters.get(name), self.operator, self.context.traits
        if weight is not None:
            parts = heads if operator.qk_norm == "full" and traits.norms_each_head else 1
            return NormProgram(weight.n // parts, weight, None, traits.norm)
        late = operator.qk_norm == "l2" and operator.rotates
        return NormProgram(operator.head_dim, None, None, "plain") if late else None

    def _projected(self, x: Tensor, joint: Tensor | None, around: Around) -> tuple[Tensor, Tensor, Tensor]:
        context, recorder = self.context, self.context.recorder
        operator, traits = self.operator, context.traits
        bs = context.sizes.bs
        if joint is not None:
            widths = operator.q_width * bs, operator.kv_width * bs, operator.kv_width * bs
            if traits.qkv == "selected":
                q, k, v = (sliced(recorder, joint, n) for n in widths)
                return q, k, v
            if traits.qkv == "picked":
                return picked_apart(recorder, joint, widths[0], widths[1], operator.kv_heads == 1)
            if traits.qkv == "interleaved":
                joint = turned(recorder, joint)
            if traits.qkv == "sliced":
                q, k, v = (sliced(recorder, joint, n) for n in widths)
                q, k, v = (turned(recorder, part) if self._copies(i) else part for i, part in enumerate((q, k, v)))
                return q, k, v
            q, k, v = split(recorder, joint, *widths)
            return q, k, v
        q = self._queries(x)
        if traits.scales_query:
            q = scaled(recorder, q)
        if traits.copies_query and not context.recipe.eager:
            q = copy(recorder, q)
            q.heads_first = True
        q = self._seen(q, self.q_norm, self._copies(0))
        return q, *self._keys_values(x, around)

    def _queries(self, x: Tensor) -> Tensor:
        return self.context.apply(self.projections["q"], x)

    def _keys_values(self, x: Tensor, around: Around) -> tuple[Tensor, Tensor]:
        """Keys and values, each from its projection; the same one where values are keys, none where they are shared."""
        context, recorder, operator, parts = self.context, self.context.recorder, self.operator, self.projections
        if operator.shares_cache:
            bs = context.sizes.bs * operator.kv_heads
            lent = (around.lent or {}).get(operator.window is not None)
            return lent or (recorder.new(bs * operator.head_dim, x.width), recorder.new(bs * operator.v_dim, x.width))
        key = context.apply(parts["k"], x)
        value = key if operator.keys_are_values else context.apply(parts["v"], x)
        key = scaled(recorder, key) if context.traits.scales_parts else key
        norm = NormProgram(operator.v_dim, None, None, "plain") if context.traits.norms_values else None
        return self._seen(key, self.k_norm, self._copies(1)), self._seen(value, norm, self._copies(2))

    def _copies(self, which: int) -> bool:
        """Whether the gradient of q, k or v (0, 1, 2) arrives as [b, heads, s, d]."""
        late = self.context.traits.rotation in ("complex", "in-place")
        return (self.operator.rotates and which < 2 and not late) or self.context.recipe.eager

    def _seen(self, x: Tensor, norm: NormProgram | None, copied: bool) -> Tensor:
        recorder = self.context.recorder
        whole, late = self.operator.qk_norm == "full", self.operator.qk_norm == "l2"
        if self.context.traits.clips_qkv:
            x = clipped_in_place(recorder, x)
        if norm is not None and whole:
            x = norm(recorder, x)
        if copied:
            x = turned(recorder, x)
        if norm is not None and not (whole or late):
            x = norm(recorder, x)
        return x

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
        """What it attends to, and the scores that eager code returns."""
        context, recorder, operator = self.context, self.context.recorder, self.operator
        gate: Tensor | None = None
        joint = context.apply(self.projections["qkv"], x) if operator.fused_qkv else None  # named until the end
        if operator.gate:
            query, key, value, gate = self._gated(x, around)
        else:
            query, key, value = self._projected(x, joint, around)
        if around.rotation is not None and operator.rotates:
            query, key = self._rotated(query, key, around.rotation)
        if operator.qk_norm == "l2":
            query, key = self._normed_late(query, key)
        if not operator.shares_cache:
            key, value = (context.behind_learned(context.cached(each), self.learned) for each in (key, value))
        if self.lends and around.lent is not None:
            around.lent[operator.window is not None] = key, value
        weights: Tensor | None = None
        picked = context.traits.qkv == "picked"
        if context.recipe.checkpointing == "core":
            out = context.recorder.checkpoint(partial(self._core, query, key, value, around))
        elif context.recipe.eager:
            groups = 1 if picked and key.n == query.n else self.groups
            key = cast(context.recorder, key, 2) if picked and context.recorder.autocast else key
            out, weights = eager(
                context, query, key, value, groups=groups, heads=operator.heads, around=around, sinks=self.sinks
            )
        elif operator.distances:
            out = fused_alike(context, query, key, value, operator.heads, around.bias, causal=not operator.both_sides)
        else:
            groups = 1 if picked or context.traits.repeats_heads else self.groups
            if context.traits.repeats_heads:
                key, value = (repeated(context.recorder, each, self.groups) for each in (key, value))
            out = fused(context, query, key, value, groups=groups, heads=operator.heads, mask=around.mask)
        if operator.head_gate:
            out = mul(recorder, out, unary_of_output(recorder, context.apply(self.projections["head_gate"], x)))
        if gate is not None:
            out = mul(context.recorder, out, unary_of_output(context.recorder, gate))
        return context.apply(self.o, context.given(out)), weights

    def _core(self, query: Tensor, key: Tensor, value: Tensor, around: Around) -> Tensor:
        """Scores, softmax and values, to be run again in backward (Korthikanti 2022)."""
        groups = self.groups if key.n * self.groups == query.n else 1
        heads = self.operator.heads
        out, _ = eager(self.context, query, key, value, groups=groups, heads=heads, around=around, sinks=self.sinks)
        return out

    def _gated(self, x: Tensor, around: Around) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries and a gate as wide as they are from one projection, then keys and values (Qwen3-Next)."""
        context, recorder, parts = self.context, self.context.recorder, self.projections
        n = self.operator.q_width * context.sizes.bs
        query, gate = split(recorder, context.apply(parts["q"], x), n, n)
        gate = copy(recorder, gate)
        query = self._seen(query, self.q_norm, self._copies(0))
        return query, *self._keys_values(x, around), gate

    def _normed_late(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Norms after the rotation; a temperature where nothing rotates (Llama 4)."""
        recorder = self.context.recorder
        if self.q_norm is not None and self.k_norm is not None:
            query = self.q_norm(recorder, query)
            return query, self.k_norm(recorder, key)
        if self.context.traits.tempers_query:
            wide = mul(recorder, query, recorder.new(self.context.sizes.s, 4))
            query = cast(recorder, wide, query.width)
        return query, key

    def _rotated(self, query: Tensor, key: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor]:
        operator, recorder, traits = self.operator, self.context.recorder, self.context.traits
        kind, joins = traits.rotation, traits.rotation_joins
        if traits.respreads_tables:
            rotation = respread(recorder, rotation)
        q, k = (x.n // operator.head_dim * operator.rotary_width for x in (query, key))
        query = rotated(recorder, query, rotation, kind, q, joins)
        return query, key if operator.shares_cache else rotated(recorder, key, rotation, kind, k, joins)


def attention(architecture: Architecture, kind: LayerKind, made: type[Attention] = Attention, **more: Any) -> Attention:
    """The softmax attention of a layer, or a kind of it with `more` fields."""
    window = architecture.window
    whole = architecture.whole_heads if not kind.windowed else None
    shape: Architecture | HeadShape = architecture if whole is None else whole
    return made(
        architecture.hidden,
        kind.own_heads or shape.heads,
        kind.own_kv_heads or shape.kv_heads,
        shape.head_dim,
        qkv_bias=architecture.qkv_bias,
        out_bias=architecture.out_bias,
        key_bias=architecture.key_bias,
        qk_norm=architecture.qk_norm,
        gate=architecture.output_gate,
        sinks=shape.sinks,
        fused_qkv=architecture.fused_qkv and not kind.shares_cache,
        relative=architecture.positions == "relative-xl",
        alibi=architecture.positions == "alibi",
        distances=architecture.positions == "distances",
        rotates=architecture.positions == "rope" and kind.rotates,
        rope_fraction=architecture.rope_fraction,
        window=window.size if window is not None and kind.windowed else None,
        window_in_cache=window is None or window.in_cache,
        value_dim=architecture.v_head_dim if architecture.v_head_dim != shape.head_dim else 0,
        shares_cache=kind.shares_cache,
        keys_are_values=whole is not None and whole.keys_are_values,
        head_gate=architecture.head_gate,
        both_sides=architecture.encoder,
        **more,
    )

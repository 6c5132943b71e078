"""Attention blocks: projections, norms of heads, rotation, the core, the output projection."""

from __future__ import annotations

from functools import partial

from ...autograd.basic import cast, clipped_in_place, mul, scaled, unary_of_output
from ...autograd.graph import Tensor
from ...autograd.recorder import Recorder
from ...autograd.views import copy, gathered, repeated, sliced, split
from ...model.context import Context, Linear
from ...model.rotation import Around, Rotation, respread, rotated
from ...model.scores import eager, fused, turned
from .norms import Norm


class Attention:
    """Softmax attention with any number of key-value heads."""

    __slots__ = ("context", "groups", "heads", "k", "k_norm", "o", "q", "q_norm", "qkv", "rotates", "sinks", "v")

    def __init__(self, context: Context, index: int) -> None:
        a, traits = context.setup.architecture, context.traits
        self.context = context
        self.heads = a.heads
        self.groups = a.heads // a.kv_heads
        every = a.no_rope_every
        self.rotates = a.positions == "rope" and not (every and (index + 1) % every == 0)
        self.qkv: Linear | None = None
        if traits.qkv == "separate" or a.output_gate:
            self.q = context.linear(a.hidden, a.q_width * (2 if a.output_gate else 1), bias=a.qkv_bias, stream="reads")
            self.k = context.linear(a.hidden, a.kv_width, bias=a.qkv_bias, stream="reads")
            self.v = context.linear(a.hidden, a.kv_width, bias=a.qkv_bias, stream="reads")
        else:
            self.qkv = context.linear(a.hidden, a.q_width + 2 * a.kv_width, bias=a.qkv_bias, stream="reads")
        self.o = context.linear(a.q_width, a.hidden, bias=a.out_bias, stream="writes")
        if a.positions == "relative-xl":
            # A projection of relative positions and two biases; what they make is taken to be nothing.
            context.linear(a.hidden, a.q_width)
            context.parameter(2 * a.q_width)
        self.sinks = context.parameter(a.heads) if a.sinks else None
        self.q_norm, self.k_norm = self._head_norms()

    def _head_norms(self) -> tuple[Norm | None, Norm | None]:
        context = self.context
        a, traits = context.setup.architecture, context.traits
        kind = traits.norm
        if a.qk_norm == "head":
            return Norm(context, a.head_dim, kind=kind), Norm(context, a.head_dim, kind=kind)
        if a.qk_norm == "full":
            q_parts, k_parts = (a.heads, a.kv_heads) if traits.norms_each_head else (1, 1)
            return (
                Norm(context, a.q_width, kind=kind, heads=q_parts),
                Norm(context, a.kv_width, kind=kind, heads=k_parts),
            )
        if a.qk_norm == "l2" and self.rotates:
            norm = Norm(context, a.head_dim, kind="plain")
            return norm, norm
        return None, None

    def _projected(self, x: Tensor, joint: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        context, recorder = self.context, self.context.recorder
        a, traits = context.setup.architecture, context.traits
        bs = context.sizes.bs
        if joint is not None:
            widths = a.q_width * bs, a.kv_width * bs, a.kv_width * bs
            if traits.qkv == "selected":
                q, k, v = (sliced(recorder, joint, n) for n in widths)
                return q, k, v
            if traits.qkv == "picked":
                return _picked(recorder, joint, widths[0], widths[1], a.kv_heads == 1)
            if traits.qkv == "interleaved":
                joint = turned(recorder, joint)
            if traits.qkv == "sliced":
                q, k, v = (sliced(recorder, joint, n) for n in widths)
                q, k, v = (turned(recorder, part) if self._copies(i) else part for i, part in enumerate((q, k, v)))
                return q, k, v
            q, k, v = split(recorder, joint, *widths)
            return q, k, v
        q = context.apply(self.q, x)
        if traits.scales_query:
            q = scaled(recorder, q)
        q = self._seen(q, self.q_norm, self._copies(0))
        k = self._seen(context.apply(self.k, x), self.k_norm, self._copies(1))
        return q, k, self._seen(context.apply(self.v, x), None, self._copies(2))

    def _copies(self, which: int) -> bool:
        """Tell whether the gradient of q, k or v (0, 1, 2) arrives as [b, heads, s, d]."""
        late = self.context.traits.rotation in ("complex", "in-place")
        return (self.rotates and which < 2 and not late) or self.context.recipe.eager

    def _seen(self, x: Tensor, norm: Norm | None, copied: bool) -> Tensor:
        recorder = self.context.recorder
        whole = self.context.setup.architecture.qk_norm == "full"
        late = self.context.setup.architecture.qk_norm == "l2"
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
        """Attend; also gives the scores that eager code returns."""
        context = self.context
        gate: Tensor | None = None
        # The joint projection has a name until the end.
        joint = context.apply(self.qkv, x) if self.qkv is not None else None
        if context.setup.architecture.output_gate:
            query, key, value, gate = self._gated(x)
        else:
            query, key, value = self._projected(x, joint)
        if around.rotation is not None and self.rotates:
            query, key = self._rotated(query, key, around.rotation)
        if context.setup.architecture.qk_norm == "l2":
            query, key = self._normed_late(query, key)
        key, value = context.cached(key), context.cached(value)
        weights: Tensor | None = None
        picked = context.traits.qkv == "picked"
        if context.recipe.checkpointing == "core":
            out = context.recorder.checkpoint(partial(self._core, query, key, value, around))
        elif context.recipe.eager:
            groups = 1 if picked and key.n == query.n else self.groups
            if picked and context.recorder.autocast:
                key = cast(context.recorder, key, 2)
            out, weights = eager(
                context, query, key, value, groups=groups, heads=self.heads, around=around, sinks=self.sinks
            )
        else:
            groups = 1 if picked else self.groups
            out = fused(context, query, key, value, groups=groups, heads=self.heads, mask=around.mask)
        if gate is not None:
            out = mul(context.recorder, out, unary_of_output(context.recorder, gate))
        return context.apply(self.o, out), weights

    def _core(self, query: Tensor, key: Tensor, value: Tensor, around: Around) -> Tensor:
        """Scores, softmax and values, to be run again in backward (Korthikanti 2022)."""
        groups = self.groups if key.n * self.groups == query.n else 1
        out, _ = eager(
            self.context, query, key, value, groups=groups, heads=self.heads, around=around, sinks=self.sinks
        )
        return out

    def _gated(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries and a gate as wide as they are from one projection, then keys and values (Qwen3-Next)."""
        context, recorder = self.context, self.context.recorder
        n = context.setup.architecture.q_width * context.sizes.bs
        query, gate = split(recorder, context.apply(self.q, x), n, n)
        gate = copy(recorder, gate)
        query = self._seen(query, self.q_norm, self._copies(0))
        key = self._seen(context.apply(self.k, x), self.k_norm, self._copies(1))
        return query, key, self._seen(context.apply(self.v, x), None, self._copies(2)), gate

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
        a, recorder = self.context.setup.architecture, self.context.recorder
        traits = self.context.traits
        kind, joins = traits.rotation, traits.rotation_joins
        if traits.respreads_tables:
            rotation = respread(recorder, rotation)
        width = rotary_width(a.head_dim, a.rope_fraction)
        q, k = (x.n // a.head_dim * width for x in (query, key))
        return rotated(recorder, query, rotation, kind, q, joins), rotated(recorder, key, rotation, kind, k, joins)


def _picked(recorder: Recorder, joint: Tensor, q: int, k: int, one_head: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Falcon: keys and values picked by index; one head as it is, more written out for every query head."""
    query, key, value = sliced(recorder, joint, q), gathered(recorder, joint, k), gathered(recorder, joint, k)
    if one_head:
        return query, key, value
    return copy(recorder, query), repeated(recorder, key, q // k), repeated(recorder, value, q // k)


def rotary_width(head_dim: int, fraction: float) -> int:
    """Elements of a head that are rotated."""
    return int(head_dim * fraction)

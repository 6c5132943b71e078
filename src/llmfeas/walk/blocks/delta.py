"""Gated delta rule (Qwen3-Next): linear attention in chunks of 64 tokens, as the public fallback writes it."""

from __future__ import annotations

from typing import Final

from ...autograd.basic import (
    add,
    cast,
    filled,
    less,
    mul,
    rsqrt,
    scaled,
    shifted,
    silu,
    unary_of_input,
    unary_of_output,
)
from ...autograd.graph import Tensor, view
from ...autograd.products import matmul
from ...autograd.recurrent import chunk_loop, decays, delta_kernel, gated_norm, short_convolution, solved
from ...autograd.routing import summed
from ...autograd.views import copy, joined, recast, repeated, sliced, split
from ...model.context import Context
from ...model.rotation import Around
from ...model.scores import turned
from .norms import Norm

CHUNK: Final = 64


class DeltaNet:
    """A linear-attention block with a fixed state."""

    __slots__ = ("a_log", "context", "convolution", "dt_bias", "gates", "norm", "o", "projections")

    def __init__(self, context: Context, index: int) -> None:
        a = context.setup.architecture
        linear = a.linear_attention
        assert linear is not None
        keys, values = linear.key_heads * linear.key_head_dim, linear.value_heads * linear.value_head_dim
        self.context = context
        self.convolution = context.parameter(2 * keys + values, 1, linear.conv_kernel)
        apart = linear.apart
        first = (2 * keys + values, values) if apart else (2 * keys + 2 * values,)
        self.projections = [context.linear(a.hidden, width, stream="reads") for width in first]
        gates = (linear.value_heads,) * 2 if apart else (2 * linear.value_heads,)
        self.gates = [context.linear(a.hidden, width, stream="reads") for width in gates]
        self.dt_bias = context.parameter(linear.value_heads)
        self.a_log = context.parameter(linear.value_heads)
        self.norm = Norm(context, linear.value_head_dim, kind="cast-scale")
        self.o = context.linear(values, a.hidden, stream="writes")

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, None]:
        """Run it on x; there are no scores to return."""
        context, recorder = self.context, self.context.recorder
        linear = context.setup.architecture.linear_attention
        assert linear is not None
        rows = context.sizes.bs
        keys, values = linear.key_heads * linear.key_head_dim, linear.value_heads * linear.value_head_dim
        mixed, z, b, a = self._apart(x) if len(self.gates) == 2 else self._joint(x)
        if context.traits.gate_up == "kernel":
            return self._in_kernels(mixed, z, b, a), None
        mixed = self._convolved(mixed)
        q, k, v = split(recorder, mixed, rows * keys, rows * keys, rows * values)
        beta = unary_of_output(recorder, b)
        decay = unary_of_output(recorder, self.a_log)
        decay = mul(
            recorder,
            scaled(recorder, decay),
            unary_of_input(recorder, add(recorder, cast(recorder, a, 4), self.dt_bias)),
        )
        out = self._attended(q, k, v, beta, decay)
        return context.apply(self.o, self._gated(out, z)), None

    def _in_kernels(self, mixed: Tensor, z: Tensor, b: Tensor, a: Tensor) -> Tensor:
        """Convolution, decays, recurrence and gated norm as one kernel each."""
        context, recorder = self.context, self.context.recorder
        linear = context.setup.architecture.linear_attention
        assert linear is not None
        bs, heads, times = context.sizes.bs, linear.value_heads, linear.value_heads // linear.key_heads
        keys, values = linear.key_heads * linear.key_head_dim, heads * linear.value_head_dim
        mixed = short_convolution(recorder, mixed, self.convolution, mixed.n)
        q, k, v = split(recorder, mixed, bs * keys, bs * keys, bs * values)
        q, k = repeated(recorder, q, times), repeated(recorder, k, times)
        parts = [q, k, v, unary_of_output(recorder, b), decays(recorder, a, self.a_log, self.dt_bias)]
        states = bs * -(-heads * linear.key_head_dim * linear.value_head_dim // CHUNK)
        out = delta_kernel(recorder, parts, bs * heads * CHUNK, states, v.n)
        return context.apply(self.o, gated_norm(recorder, out, z, self.norm.weight))

    def _apart(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries, keys, values from one projection; gate, step and decay from their own (Qwen3.5)."""
        apply = self.context.apply
        mixed, z = (apply(projection, x) for projection in self.projections)
        b, a = (apply(projection, x) for projection in self.gates)
        return turned(self.context.recorder, mixed), z, b, a

    def _joint(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """All of it cut out of two projections, head by head (Qwen3-Next)."""
        context, recorder = self.context, self.context.recorder
        linear = context.setup.architecture.linear_attention
        assert linear is not None
        rows = context.sizes.bs
        keys, values = linear.key_heads * linear.key_head_dim, linear.value_heads * linear.value_head_dim
        joint, gates = context.apply(self.projections[0], x), context.apply(self.gates[0], x)
        q, k, v, z = split(recorder, joint, rows * keys, rows * keys, rows * values, rows * values)
        b, a = split(recorder, gates, rows * linear.value_heads, rows * linear.value_heads)
        v, z, b, a = copy(recorder, v), copy(recorder, z), copy(recorder, b), copy(recorder, a)
        return joined(recorder, copy(recorder, q), copy(recorder, k), v), z, b, a

    def _convolved(self, mixed: Tensor) -> Tensor:
        context, recorder = self.context, self.context.recorder
        channels = self.convolution.shape[0]
        n = channels * (context.sizes.bs + (self.convolution.shape[2] - 1) * context.sizes.b)
        wide = short_convolution(recorder, cast(recorder, mixed, self.convolution.width), self.convolution, n)
        return cast(recorder, silu(recorder, sliced(recorder, wide, channels * context.sizes.bs)), mixed.width)

    def _gated(self, x: Tensor, gate: Tensor) -> Tensor:
        recorder = self.context.recorder
        out = self.norm(recorder, x)
        out = mul(recorder, out, silu(recorder, cast(recorder, gate, 4)))
        return cast(recorder, out, x.width)

    def _unit(self, x: Tensor, heads: int) -> Tensor:
        """x by the root of its sum of squares."""
        recorder = self.context.recorder
        total = summed(recorder, mul(recorder, x, x), self.context.sizes.bs * heads)
        return mul(recorder, x, rsqrt(recorder, shifted(recorder, total)))

    def _attended(self, q: Tensor, k: Tensor, v: Tensor, beta: Tensor, decay: Tensor) -> Tensor:
        """Scores within chunks, triangular systems, and the state carried from chunk to chunk; all in fp32."""
        context, recorder = self.context, self.context.recorder
        linear = context.setup.architecture.linear_attention
        assert linear is not None
        heads, width = linear.value_heads, q.width
        times = heads // linear.key_heads
        q, k = repeated(recorder, q, times), repeated(recorder, k, times)
        q, k, v, beta, decay = (recast(recorder, x, 4) for x in (q, k, v, beta, decay))
        q, k = self._unit(q, heads), self._unit(k, heads)
        q = scaled(recorder, q)
        q, k, v = copy(recorder, q), copy(recorder, k), copy(recorder, v)
        beta, decay = copy(recorder, beta), copy(recorder, decay)
        v_beta, k_beta = mul(recorder, v, beta), mul(recorder, k, beta)
        total = copy(recorder, decay)
        pairs = context.sizes.bs * heads * CHUNK
        pairwise = less(recorder, view(total.storage, pairs, 4, total.node), total)
        pairwise = unary_of_output(recorder, filled(recorder, pairwise, recorder.new(CHUNK * CHUNK, 1)))
        # A change of type puts heads before tokens; without one each product copies what it reads.
        ordered = width != 4 or recorder.autocast
        q_read, k_read, k_beta_read = (x if ordered else copy(recorder, x) for x in (q, k, k_beta))
        system = mul(recorder, matmul(recorder, k_beta_read, k_read, pairs), pairwise)
        within = mul(recorder, matmul(recorder, q_read, k_read if ordered else copy(recorder, k), pairs), pairwise)
        del q_read, k_read, k_beta_read
        decayed = mul(recorder, k_beta, unary_of_output(recorder, total))
        values, decayed_keys = solved(recorder, system, v_beta), solved(recorder, system, decayed)
        q = mul(recorder, q, unary_of_output(recorder, total))
        k = mul(recorder, k, unary_of_output(recorder, shifted(recorder, total)))
        chunk_decay = unary_of_output(recorder, sliced(recorder, total, context.sizes.bs * -(-heads // CHUNK)))
        states = context.sizes.bs * -(-heads * linear.key_head_dim * linear.value_head_dim // CHUNK)
        out = chunk_loop(recorder, [values, decayed_keys, q, within, k, chunk_decay], states, v.n)
        return recast(recorder, out, width)

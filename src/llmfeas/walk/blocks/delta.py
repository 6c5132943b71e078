"""Gated delta rule (Qwen3-Next): linear attention in chunks of 64 tokens, as the public fallback writes it."""

from __future__ import annotations

from typing import Final

from ..graph import Tensor, view
from ..operators.basic import (
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
from ..operators.products import matmul
from ..operators.recurrent import chunk_loop, decays, delta_kernel, gated_norm, short_convolution, solved
from ..operators.routing import summed
from ..operators.views import copy, joined, recast, repeated, sliced, split
from .attend import turned
from .context import Context
from .norms import Norm
from .rotation import Around

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
        self.projections = [context.linear(a.hidden, width, reads=True) for width in first]
        gates = (linear.value_heads,) * 2 if apart else (2 * linear.value_heads,)
        self.gates = [context.linear(a.hidden, width, reads=True) for width in gates]
        self.dt_bias = context.parameter(linear.value_heads)
        self.a_log = context.parameter(linear.value_heads)
        self.norm = Norm(context, linear.value_head_dim, kind="cast-scale")
        self.o = context.linear(values, a.hidden, writes=True)

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, None]:
        """Run it on x; there are no scores to return."""
        context, tape = self.context, self.context.tape
        linear = context.setup.architecture.linear_attention
        assert linear is not None
        rows = context.sizes.bs
        keys, values = linear.key_heads * linear.key_head_dim, linear.value_heads * linear.value_head_dim
        mixed, z, b, a = self._apart(x) if len(self.gates) == 2 else self._joint(x)
        if context.setup.implementation.gate_up == "kernel":
            return self._in_kernels(mixed, z, b, a), None
        mixed = self._convolved(mixed)
        q, k, v = split(tape, mixed, rows * keys, rows * keys, rows * values)
        beta = unary_of_output(tape, b)
        decay = unary_of_output(tape, self.a_log)
        decay = mul(tape, scaled(tape, decay), unary_of_input(tape, add(tape, cast(tape, a, 4), self.dt_bias)))
        out = self._attended(q, k, v, beta, decay)
        return context.apply(self.o, self._gated(out, z)), None

    def _in_kernels(self, mixed: Tensor, z: Tensor, b: Tensor, a: Tensor) -> Tensor:
        """Convolution, decays, recurrence and gated norm as one kernel each."""
        context, tape = self.context, self.context.tape
        linear = context.setup.architecture.linear_attention
        assert linear is not None
        bs, heads, times = context.sizes.bs, linear.value_heads, linear.value_heads // linear.key_heads
        keys, values = linear.key_heads * linear.key_head_dim, heads * linear.value_head_dim
        mixed = short_convolution(tape, mixed, self.convolution, mixed.n)
        q, k, v = split(tape, mixed, bs * keys, bs * keys, bs * values)
        q, k = repeated(tape, q, times), repeated(tape, k, times)
        parts = [q, k, v, unary_of_output(tape, b), decays(tape, a, self.a_log, self.dt_bias)]
        states = bs * -(-heads * linear.key_head_dim * linear.value_head_dim // CHUNK)
        out = delta_kernel(tape, parts, bs * heads * CHUNK, states, v.n)
        return context.apply(self.o, gated_norm(tape, out, z, self.norm.weight))

    def _apart(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries, keys, values from one projection; gate, step and decay from their own (Qwen3.5)."""
        apply = self.context.apply
        mixed, z = (apply(projection, x) for projection in self.projections)
        b, a = (apply(projection, x) for projection in self.gates)
        return turned(self.context.tape, mixed), z, b, a

    def _joint(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """All of it cut out of two projections, head by head (Qwen3-Next)."""
        context, tape = self.context, self.context.tape
        linear = context.setup.architecture.linear_attention
        assert linear is not None
        rows = context.sizes.bs
        keys, values = linear.key_heads * linear.key_head_dim, linear.value_heads * linear.value_head_dim
        joint, gates = context.apply(self.projections[0], x), context.apply(self.gates[0], x)
        q, k, v, z = split(tape, joint, rows * keys, rows * keys, rows * values, rows * values)
        b, a = split(tape, gates, rows * linear.value_heads, rows * linear.value_heads)
        v, z, b, a = copy(tape, v), copy(tape, z), copy(tape, b), copy(tape, a)
        return joined(tape, copy(tape, q), copy(tape, k), v), z, b, a

    def _convolved(self, mixed: Tensor) -> Tensor:
        context, tape = self.context, self.context.tape
        channels = self.convolution.shape[0]
        n = channels * (context.sizes.bs + (self.convolution.shape[2] - 1) * context.sizes.b)
        wide = short_convolution(tape, cast(tape, mixed, self.convolution.width), self.convolution, n)
        return cast(tape, silu(tape, sliced(tape, wide, channels * context.sizes.bs)), mixed.width)

    def _gated(self, x: Tensor, gate: Tensor) -> Tensor:
        tape = self.context.tape
        out = self.norm(tape, x)
        out = mul(tape, out, silu(tape, cast(tape, gate, 4)))
        return cast(tape, out, x.width)

    def _unit(self, x: Tensor, heads: int) -> Tensor:
        """x by the root of its sum of squares."""
        tape = self.context.tape
        total = summed(tape, mul(tape, x, x), self.context.sizes.bs * heads)
        return mul(tape, x, rsqrt(tape, shifted(tape, total)))

    def _attended(self, q: Tensor, k: Tensor, v: Tensor, beta: Tensor, decay: Tensor) -> Tensor:
        """Scores within chunks, triangular systems, and the state carried from chunk to chunk; all in fp32."""
        context, tape = self.context, self.context.tape
        linear = context.setup.architecture.linear_attention
        assert linear is not None
        heads, width = linear.value_heads, q.width
        times = heads // linear.key_heads
        q, k = repeated(tape, q, times), repeated(tape, k, times)
        q, k, v, beta, decay = (recast(tape, x, 4) for x in (q, k, v, beta, decay))
        q, k = self._unit(q, heads), self._unit(k, heads)
        q = scaled(tape, q)
        q, k, v = copy(tape, q), copy(tape, k), copy(tape, v)
        beta, decay = copy(tape, beta), copy(tape, decay)
        v_beta, k_beta = mul(tape, v, beta), mul(tape, k, beta)
        total = copy(tape, decay)
        pairs = context.sizes.bs * heads * CHUNK
        pairwise = less(tape, view(total.storage, pairs, 4, total.node), total)
        pairwise = unary_of_output(tape, filled(tape, pairwise, tape.new(CHUNK * CHUNK, 1)))
        # A change of type puts heads before tokens; without one each product copies what it reads.
        ordered = width != 4 or tape.autocast
        q_read, k_read, k_beta_read = (x if ordered else copy(tape, x) for x in (q, k, k_beta))
        system = mul(tape, matmul(tape, k_beta_read, k_read, pairs), pairwise)
        within = mul(tape, matmul(tape, q_read, k_read if ordered else copy(tape, k), pairs), pairwise)
        del q_read, k_read, k_beta_read
        decayed = mul(tape, k_beta, unary_of_output(tape, total))
        values, decayed_keys = solved(tape, system, v_beta), solved(tape, system, decayed)
        q = mul(tape, q, unary_of_output(tape, total))
        k = mul(tape, k, unary_of_output(tape, shifted(tape, total)))
        chunk_decay = unary_of_output(tape, sliced(tape, total, context.sizes.bs * -(-heads // CHUNK)))
        states = context.sizes.bs * -(-heads * linear.key_head_dim * linear.value_head_dim // CHUNK)
        out = chunk_loop(tape, [values, decayed_keys, q, within, k, chunk_decay], states, v.n)
        return recast(tape, out, width)

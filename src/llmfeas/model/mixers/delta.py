"""Gated delta-rule attention: a state of fixed size in place of a cache."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

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
from ...autograd.views import copy, joined, padded, repeated, sliced, split
from ...catalog.architecture import Architecture, LayerKind
from ...record import dataclass
from ..context import Context
from ..norm import NormProgram
from ..operator import AttentionKernel, Operator, Program
from ..weight import Weight, column_linear, row_linear, vector
from .rotation import Around
from .scores import turned

_CHUNK = 64
_LOOP_LAUNCHES = 21
"""A profile of Qwen3.5 4B on an H100 had some 84 a chunk and layer, two forward passes and a backward one of two."""
_LONG = 1 << 16
_FP32_BYTES = 4


@dataclass(frozen=True, slots=True)
class DeltaRule(Operator):
    """Qwen3-Next's linear attention, computed in chunks of 64 tokens when training, token by token when decoding."""

    title: ClassVar[str] = "linear attention"
    is_common: ClassVar[bool] = False
    packages: ClassVar[str] = "flash-linear-attention and causal-conv1d"
    dealt_out: ClassVar[tuple[str, ...]] = ("key_heads", "value_heads")
    hidden: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int
    apart: bool = False
    channel_rank: int = 0
    lightning: bool = False
    by_channel: bool = False
    whole_gate: bool = False

    @property
    def keys(self) -> int:
        """Width of all keys, and of all queries."""
        return self.key_heads * self.key_dim

    @property
    def values(self) -> int:
        """Width of all values."""
        return self.value_heads * self.value_dim

    @property
    def chunk_states(self) -> int:
        """Elements of the states of all chunks, a token."""
        return -(-self.values * self.key_dim // _CHUNK)

    @property
    def _gates_channels(self) -> bool:
        return self.channel_rank > 0 or self.by_channel

    @property
    def _mixed(self) -> int:
        return 2 * self.keys + self.values

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Projections, a short convolution a channel, decay, and the gated norm of the output."""
        out = row_linear("o", self.values, self.hidden, adapter="attention")
        if self.lightning:
            return (*self._projections(), vector("out_norm", self.values, split="tensor"), *out)
        return (
            *self._projections(),
            Weight("conv", (self._mixed, 1, self.kernel)),
            vector("dt_bias", self.keys if self._gates_channels else self.value_heads, split="tensor"),
            vector("decay", self.value_heads, split="tensor"),
            vector("out_norm", self.value_dim),
            *out,
        )

    def _projections(self) -> tuple[Weight, ...]:
        if self.lightning:
            joint = column_linear("qkv", self.hidden, self._mixed, adapter="attention")
            return joint + column_linear("z", self.hidden, self.values, adapter="attention")
        if self._gates_channels:
            return self._by_channel()
        if not self.apart:
            joint = column_linear("qkvz", self.hidden, self._mixed + self.values, adapter="attention")
            return joint + column_linear("ba", self.hidden, 2 * self.value_heads, adapter="attention")
        widths = {"qkv": self._mixed, "z": self.values, "b": self.value_heads, "a": self.value_heads}
        return tuple(
            weight for name, n in widths.items() for weight in column_linear(name, self.hidden, n, adapter="attention")
        )

    def _by_channel(self) -> tuple[Weight, ...]:
        """Queries, keys, values, steps, and decays and gates, through a low rank or whole."""
        widths = {"q": self.keys, "k": self.keys, "v": self.values, "b": self.value_heads}
        found = [w for name, n in widths.items() for w in column_linear(name, self.hidden, n, adapter="attention")]
        for name, n in (("f", self.keys), ("g", self.values)):
            if self._is_whole(name):
                found += column_linear(f"{name}_b", self.hidden, n, adapter="attention")
                continue
            found += column_linear(f"{name}_a", self.hidden, self.channel_rank, adapter="attention", split="none")
            found += column_linear(f"{name}_b", self.channel_rank, n, adapter="attention", inner=True)
        return tuple(found)

    def _is_whole(self, name: str) -> bool:
        """Whether decays (`f`) or gates (`g`) come out of a whole projection, not through a low rank."""
        return self.by_channel or (self.whole_gate and name == "g")

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence: products within a chunk, and with the state between chunks.

        A chunk of c tokens multiplies keys and queries with keys (2 c^2 k), the scores with the values (c^2 v), and
        three times with the state of k x v (3 c k v); a triangular solve is no product. The convolution is computed
        over `kernel - 1` tokens of padding more.
        """
        inside = _CHUNK * _CHUNK * (2 * self.key_dim + self.value_dim)
        chunked = 2.0 * self._chunks(tokens) * self.value_heads * (inside + 3 * self._state_product)
        return chunked + 2.0 * self._mixed * self.kernel * (self.kernel - 1)

    @property
    def _state_product(self) -> int:
        return _CHUNK * self.key_dim * self.value_dim

    def _chunks(self, tokens: int) -> int:
        return -(-tokens // _CHUNK)

    def score_backward_flop(self, tokens: int, kernel: AttentionKernel) -> float:
        """FLOPs of its backward pass, whatever the kernel of the full layers.

        Twice the forward pass; the triangular solves add a product each (c^2 k, c^2 v a chunk). Nothing flows into the
        state before the first chunk (two products) nor out of the one behind the last (two).
        """
        solves = self._chunks(tokens) * _CHUNK * _CHUNK * (self.key_dim + self.value_dim)
        return 2 * self.score_flop(tokens) + 2.0 * self.value_heads * (solves - 4 * self._state_product)

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token: read, correct and query the state."""
        return 2.0 * 3 * self.value_heads * self.key_dim * self.value_dim

    def cached_values(self, tokens: int) -> int:
        """The convolution's last inputs, in the type of the stream."""
        return self._mixed * self.kernel if tokens and not self.lightning else 0

    @property
    def state_flop(self) -> float:
        """Of a long sequence, whose last chunk and padding no longer show."""
        return self.score_flop(_LONG) / _LONG

    @property
    def stream_width(self) -> float:
        """2 of queries, keys and values."""
        return 2 * self._mixed

    @property
    def chunk_tokens(self) -> int:
        """A chunk; kernels need none."""
        return 1 if self._gates_channels or self.lightning else _CHUNK

    @property
    def loop_tokens(self) -> int:
        """A chunk, where transformers writes the rule out."""
        return 0 if self._gates_channels or self.lightning else _CHUNK

    @property
    def loop_launches(self) -> int:
        """Nine operators on the state and what is read of it, casts of the four products' inputs and results."""
        return _LOOP_LAUNCHES if self.loop_tokens else 0

    @property
    def loop_width(self) -> float:
        """Values, keys as they decay, queries, keys and the scores within chunks, for each head of values."""
        return self.value_heads * (self.value_dim + 3 * self.key_dim + _CHUNK) if self.loop_tokens else 0.0

    @property
    def state_bytes(self) -> int:
        """The recurrent state, kept in 32 bits."""
        return _FP32_BYTES * self.value_heads * self.key_dim * self.value_dim

    def program(self, context: Context) -> Program:
        """The rule over chunks of the whole sequence."""
        in_kernels = self._gates_channels or self.lightning
        return KernelProgram(context, self) if in_kernels else DeltaProgram(context, self)


class DeltaProgram:
    """The delta rule as the public fallback writes it, in chunks, or in kernels."""

    __slots__ = ("a_log", "context", "convolution", "dt_bias", "norm", "o", "operator", "projections")

    def __init__(self, context: Context, operator: DeltaRule) -> None:
        made = context.made(operator.weights, streams=True)
        self.context = context
        self.operator = operator
        self.projections = made.projections
        self.o = made.projections["o"]
        self.convolution, self.dt_bias = made.parameters["conv"], made.parameters["dt_bias"]
        self.a_log = made.parameters["decay"]
        self.norm = NormProgram(operator.value_dim, made.parameters["out_norm"], None, "cast-scale")

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, None]:
        """Run it on x; there are no scores to return."""
        context, recorder = self.context, self.context.recorder
        rows, keys, values = context.sizes.bs, self.operator.keys, self.operator.values
        mixed, z, b, a = self._apart(x) if self.operator.apart else self._joint(x)
        if context.traits.recurrence == "kernel":
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
        operator = self.operator
        bs, heads, times = context.sizes.bs, operator.value_heads, operator.value_heads // operator.key_heads
        keys, values = operator.keys, operator.values
        mixed = short_convolution(recorder, mixed, self.convolution, mixed.n)
        q, k, v = split(recorder, mixed, bs * keys, bs * keys, bs * values)
        q, k = repeated(recorder, q, times), repeated(recorder, k, times)
        parts = [q, k, v, unary_of_output(recorder, b), decays(recorder, a, self.a_log, self.dt_bias)]
        states = bs * operator.chunk_states
        out = delta_kernel(recorder, parts, bs * heads * _CHUNK, states, v.n)
        return context.apply(self.o, gated_norm(recorder, out, z, self.norm.weight))

    def _apart(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries, keys, values from one projection; gate, step and decay from their own (Qwen3.5)."""
        mixed, z, b, a = (self.context.apply(self.projections[name], x) for name in ("qkv", "z", "b", "a"))
        return turned(self.context.recorder, mixed), z, b, a

    def _joint(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """All of it cut out of two projections, head by head (Qwen3-Next)."""
        context, recorder = self.context, self.context.recorder
        rows, heads = context.sizes.bs, context.sizes.bs * self.operator.value_heads
        keys, values = self.operator.keys, self.operator.values
        joint, gates = context.apply(self.projections["qkvz"], x), context.apply(self.projections["ba"], x)
        q, k, v, z = split(recorder, joint, rows * keys, rows * keys, rows * values, rows * values)
        b, a = split(recorder, gates, heads, heads)
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
        heads, width = self.operator.value_heads, q.width
        times = heads // self.operator.key_heads
        q, k = repeated(recorder, q, times), repeated(recorder, k, times)
        q, k, v, beta, decay = (copy(recorder, x, 4) for x in (q, k, v, beta, decay))
        q, k = self._unit(q, heads), self._unit(k, heads)
        q = scaled(recorder, q)
        whole, n = context.whole_chunks, v.n
        wide = (whole * heads * self.operator.key_dim,) * 2 + (whole * self.operator.values, *(whole * heads,) * 2)
        q, k, v, beta, decay = map(partial(padded, recorder), (q, k, v, beta, decay), wide)
        v_beta, k_beta = mul(recorder, v, beta), mul(recorder, k, beta)
        total = copy(recorder, decay)
        pairs = whole * heads * _CHUNK
        pairwise = less(recorder, view(total.storage, pairs, 4, total.node), total)
        pairwise = unary_of_output(recorder, filled(recorder, pairwise, recorder.new(_CHUNK * _CHUNK, 1)))
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
        chunk_decay = unary_of_output(recorder, sliced(recorder, total, whole * -(-heads // _CHUNK)))
        states = whole * self.operator.chunk_states
        out = chunk_loop(recorder, [values, decayed_keys, q, within, k, chunk_decay], states, v.n)
        return copy(recorder, out if out.n == n else sliced(recorder, out, n), width)


class KernelProgram:
    """Linear attention whose recurrence, convolution and gate are kernels (Kimi Linear, MiniMax)."""

    __slots__ = ("context", "convolution", "norm", "operator", "projections")

    def __init__(self, context: Context, operator: DeltaRule) -> None:
        made = context.made(operator.weights, streams=True)
        self.context, self.operator = context, operator
        self.projections, self.norm = made.projections, made.parameters["out_norm"]
        self.convolution = made.parameters.get("conv")

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, None]:
        """Run it on x; there are no scores to return."""
        context, recorder, operator = self.context, self.context.recorder, self.operator
        bs, names = context.sizes.bs, self.projections
        if operator.lightning:
            mixed, gate, extra = context.apply(names["qkv"], x), context.apply(names["z"], x), list[Tensor]()
        else:
            mixed = joined(recorder, *(context.apply(names[name], x) for name in ("q", "k", "v")))
            decay, gate = (self._by_channel(name, x) for name in ("f", "g"))
            extra = [unary_of_output(recorder, context.apply(names["b"], x)), unary_of_input(recorder, decay)]
        if self.convolution is not None:
            mixed = silu(recorder, short_convolution(recorder, mixed, self.convolution, mixed.n))
        states = bs * operator.chunk_states
        out = delta_kernel(recorder, [mixed, *extra], bs * operator.value_heads * _CHUNK, states, bs * operator.values)
        return context.apply(self.projections["o"], gated_norm(recorder, out, gate, self.norm)), None

    def _by_channel(self, name: str, x: Tensor) -> Tensor:
        """A number a channel, through a low rank or whole."""
        down = self.projections.get(f"{name}_a")
        return self.context.apply(self.projections[f"{name}_b"], x if down is None else self.context.apply(down, x))


def delta_rule(architecture: Architecture, kind: LayerKind) -> DeltaRule:
    """The linear attention of an architecture."""
    linear_attention = architecture.linear_attention
    assert linear_attention is not None
    return DeltaRule(
        architecture.hidden,
        linear_attention.key_heads,
        linear_attention.value_heads,
        linear_attention.key_head_dim,
        linear_attention.value_head_dim,
        linear_attention.conv_kernel,
        linear_attention.apart,
        linear_attention.channel_rank,
        linear_attention.lightning,
        linear_attention.by_channel,
        linear_attention.whole_gate,
    )

"""Selective state spaces (Mamba 1 and 2): a convolution and a state of fixed size in place of a cache."""

from __future__ import annotations

from typing import ClassVar, Self

from ..autograd.basic import (
    add,
    cast,
    clamped,
    copied,
    filled,
    less,
    mul,
    scaled,
    silu,
    unary_of_input,
    unary_of_output,
)
from ..autograd.graph import Parameter, Tensor
from ..autograd.products import matmul
from ..autograd.recurrent import delta_kernel, gated_norm, padded, running_sum, short_convolution
from ..autograd.views import copy, joined, repeated, sliced, split, spread_heads
from ..catalog.architecture import Architecture, LayerKind
from ..record import dataclass, replace
from .context import Context
from .norm import NormProgram
from .operator import AttentionKernel, Operator, Program
from .rotation import Around
from .weight import Adapter, Weight, column_linear, row_linear, vector

_FP32_BYTES = 4


@dataclass(frozen=True, slots=True)
class SelectiveStateSpace(Operator):
    """Mamba 2 (heads with one decay each, in chunks) or, with a `step_rank`, Mamba 1 (a decay a channel and state)."""

    title: ClassVar[str] = "state-space layers"
    is_common: ClassVar[bool] = False
    packages: ClassVar[str] = "mamba-ssm and causal-conv1d"
    hidden: int
    heads: int
    head_dim: int
    groups: int
    state: int
    kernel: int
    conv_bias: bool = True
    bias: bool = False
    step_rank: int = 0
    norm: bool = True
    stacked_steps: bool = False
    chunk: int = 256

    @property
    def inner(self) -> int:
        """Channels."""
        return self.heads * self.head_dim

    @property
    def written(self) -> int:
        """Width of what writes to the state, and of what reads it."""
        return self.groups * self.state

    @property
    def channels(self) -> int:
        """What the convolution runs over."""
        return self.inner if self.step_rank else self.inner + 2 * self.written

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Projections, convolution, decays; norms where the architecture has them."""
        return (*self._entering(), *self._convolution(), *self._recurrence(), *self._leaving())

    @property
    def outputs(self) -> int:
        """Of the first projection."""
        return 2 * self.inner if self.step_rank else self.inner + self.channels + self.heads

    def _entering(self) -> tuple[Weight, ...]:
        return column_linear("state_in", self.hidden, self.outputs, bias=self.bias)

    def _convolution(self) -> tuple[Weight, ...]:
        conv = Weight("conv", (self.channels, 1, self.kernel))
        return (conv, vector("conv.bias", self.channels, split="tensor")) if self.conv_bias else (conv,)

    def _recurrence(self) -> tuple[Weight, ...]:
        if not self.step_rank:
            return tuple(vector(name, self.heads, split="tensor") for name in ("dt_bias", "decay", "skip"))
        decay = Weight("decay", (self.inner, self.state), uses=0.0)
        reach: Adapter = "never" if self.stacked_steps else "linear"
        steps = column_linear("state_x", self.inner, self.step_rank + 2 * self.state, inner=True, adapter=reach)
        wide = column_linear("state_dt", self.step_rank, self.inner, bias=True, inner=True, adapter=reach)
        return (*steps, *wide, decay, vector("skip", self.inner, split="tensor"))

    def _leaving(self) -> tuple[Weight, ...]:
        out = row_linear("state_out", self.inner, self.hidden, bias=self.bias)
        if not self.norm:
            return out
        if not self.step_rank:
            return (vector("out_norm", self.inner, split="tensor"), *out)
        return (vector("dt_norm", self.step_rank), vector("b_norm", self.state), vector("c_norm", self.state), *out)

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence without weights: within chunks the scores of each head's inputs and their product with
        the values, and the states between chunks, read and written; Mamba 1 only reads and writes its states. As the
        code without kernels counts them (transformers 5.23); a kernel forms the scores once a group.
        """
        states = 4.0 * tokens * self.inner * self.state
        if self.step_rank:
            return states
        chunk = min(self.chunk, tokens)
        return states + 2.0 * tokens * chunk * (self.heads * self.state + self.inner)

    def score_backward_flop(self, tokens: int, kernel: AttentionKernel) -> float:
        """Twice the forward pass."""
        return 2 * self.score_flop(tokens)

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token: write the state and read it."""
        return 4.0 * self.inner * self.state

    def cached_values(self, tokens: int) -> int:
        """The convolution's last inputs, in the type of the stream."""
        return self.channels * self.kernel if tokens else 0

    @property
    def state_bytes(self) -> int:
        """The states, kept in 32 bits."""
        return _FP32_BYTES * self.inner * self.state

    @property
    def state_flop(self) -> float:
        """Of a long sequence."""
        return self.score_flop(self.chunk) / self.chunk

    @property
    def stream_width(self) -> float:
        """3 of what is projected."""
        return 3 * (self.inner + self.channels)

    def on_rank(self, tp: int, expert_tp: int) -> Self:
        """Its heads and groups, at least one of each."""
        return replace(self, heads=max(1, self.heads // tp), groups=max(1, self.groups // tp))

    @property
    def chunk_states(self) -> int:
        """Elements of all chunks' states, a token."""
        return -(-self.inner * self.state // self.chunk)

    def program(self, context: Context) -> Program:
        """The recurrence over the whole sequence: in kernels, or over chunks as PyTorch's own operators do it."""
        written = not self.step_rank and context.traits.gate_up != "kernel"
        return (WrittenProgram if written else StateSpaceProgram)(context, self)


class StateSpaceProgram:
    """Projection, convolution, the recurrence in one kernel (mamba_ssm), gate and norm, projection."""

    __slots__ = ("context", "made", "operator", "projections")

    def __init__(self, context: Context, operator: SelectiveStateSpace) -> None:
        made = context.made(operator.weights, streams=True)
        self.context = context
        self.operator = operator
        self.projections, self.made = made.projections, made.parameters

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, None]:
        """Run it on x; there are no scores to return."""
        context, recorder, operator = self.context, self.context.recorder, self.operator
        bs = context.sizes.bs
        joint = context.apply(self.projections["state_in"], x)
        widths = [bs * operator.inner, bs * operator.channels]
        if not operator.step_rank:
            widths.append(bs * operator.heads)
        gate, mixed, *steps = split(recorder, joint, *widths)
        mixed = silu(recorder, short_convolution(recorder, mixed, self.made["conv"], mixed.n))
        if operator.step_rank:
            steps = [context.apply(self.projections["state_x"], mixed)]
            steps = [
                context.apply(
                    self.projections["state_dt"],
                    split(recorder, steps[0], bs * operator.step_rank, 2 * bs * operator.state)[0],
                )
            ]
        steps = [unary_of_input(recorder, steps[0])]
        out = delta_kernel(recorder, [mixed, *steps], bs, bs * operator.chunk_states, bs * operator.inner)
        out = self._gated(out, gate)
        return context.apply(self.projections["state_out"], out), None

    def _gated(self, out: Tensor, gate: Tensor) -> Tensor:
        norm: Parameter | None = self.made.get("out_norm")
        if norm is not None:
            return gated_norm(self.context.recorder, out, gate, norm)
        return mul(self.context.recorder, out, silu(self.context.recorder, gate))


class WrittenProgram:
    """Mamba 2 as transformers writes it where mamba_ssm is not installed: over chunks of tokens, in fp32."""

    __slots__ = ("context", "made", "norm", "operator", "projections")

    def __init__(self, context: Context, operator: SelectiveStateSpace) -> None:
        made = context.made(operator.weights, streams=True)
        self.context, self.operator = context, operator
        self.projections, self.made = made.projections, made.parameters
        weight = self.made.get("out_norm")
        group = operator.inner // operator.groups
        self.norm = NormProgram(group, weight, None, "cast-scale") if weight is not None else None

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, None]:
        """Run it on x; there are no scores to return."""
        context, recorder, operator = self.context, self.context.recorder, self.operator
        bs = context.sizes.bs
        joint = self._entered(x)
        rates = scaled(recorder, unary_of_output(recorder, cast(recorder, self.made["decay"], 4)))
        gate, mixed, steps = split(recorder, joint, bs * operator.inner, bs * operator.channels, bs * operator.heads)
        mixed = self._convolved(mixed)
        written = bs * operator.written
        values, enters, leaves = split(recorder, mixed, bs * operator.inner, written, written)
        out = self._scanned(values, steps, rates, enters, leaves)
        out = self._gated(out, gate)
        return context.apply(self.projections["state_out"], cast(recorder, out, x.width)), None

    def _entered(self, x: Tensor) -> Tensor:
        """What the first projection gives; each channel times a number of its own where parts are scaled."""
        context, recorder = self.context, self.context.recorder
        if not context.traits.scales_parts:
            return context.apply(self.projections["state_in"], x)
        joint = context.apply(self.projections["state_in"], scaled(recorder, x))
        return mul(recorder, joint, recorder.new(self.operator.outputs, context.recipe.weight_bytes))

    def _convolved(self, mixed: Tensor) -> Tensor:
        context, recorder, weight = self.context, self.context.recorder, self.made["conv"]
        wide = self.operator.channels * (context.sizes.bs + (self.operator.kernel - 1) * context.sizes.b)
        bias: Parameter | None = self.made.get("conv.bias")
        out = short_convolution(recorder, cast(recorder, mixed, weight.width), weight, wide, bias)
        out = silu(recorder, sliced(recorder, out, mixed.n))
        return cast(recorder, out, mixed.width)

    def _gated(self, out: Tensor, gate: Tensor) -> Tensor:
        recorder = self.context.recorder
        if self.norm is None:
            return mul(recorder, out, silu(recorder, gate))
        return self.norm(recorder, mul(recorder, out, silu(recorder, cast(recorder, gate, 4))))

    def _stepped(self, steps: Tensor) -> Tensor:
        recorder = self.context.recorder
        steps = add(recorder, steps, cast(recorder, self.made["dt_bias"], steps.width))
        steps = unary_of_input(recorder, cast(recorder, steps, 4) if recorder.autocast else steps)
        return clamped(recorder, steps, 2)

    def _scanned(self, values: Tensor, steps: Tensor, rates: Tensor, enters: Tensor, leaves: Tensor) -> Tensor:
        """mamba2_chunk_scan: scores within chunks, and the states that chunks hand on."""
        recorder, operator = self.context.recorder, self.operator
        bs, times = self.context.sizes.bs, operator.heads // operator.groups
        steps = self._stepped(steps)
        values = cast(recorder, values, 4)
        enters = repeated(recorder, cast(recorder, enters, 4), times)
        leaves = repeated(recorder, cast(recorder, leaves, 4), times)
        passed_by = mul(recorder, padded(recorder, values), self.made["skip"])
        values = mul(recorder, values, cast(recorder, steps, 4))
        decay = mul(recorder, rates, cast(recorder, steps, 4))
        values, decay, enters, leaves = (padded(recorder, x) for x in (values, decay, enters, leaves))
        total = running_sum(recorder, decay)
        pairs = bs * operator.heads * operator.chunk
        pairwise = unary_of_output(recorder, self._segments(decay))
        scores = self._product(leaves, enters, pairs)
        weights = mul(recorder, scores, pairwise)
        within = self._product(weights, values, values.n, turned=False)
        left = unary_of_output(recorder, less(recorder, sliced(recorder, total, self._each_chunk), total))
        decayed = mul(recorder, enters, left)
        states = self._product(decayed, values, bs * operator.chunk_states)
        first = recorder.new(self.context.sizes.b * operator.inner * operator.state, states.width)
        states = joined(recorder, first, states)
        handed = unary_of_output(recorder, sliced(recorder, total, self._each_chunk))
        handed_on = self._product(handed, states, states.n, turned=False)
        states = sliced(recorder, handed_on, bs * operator.chunk_states)
        since = unary_of_output(recorder, total)
        read = self._product(leaves, states, values.n)
        across = mul(recorder, read, since)
        out = copied(recorder, add(recorder, within, across))
        return add(recorder, out, passed_by)

    @property
    def _each_chunk(self) -> int:
        return self.context.sizes.bs * -(-self.operator.heads // self.operator.chunk)

    def _segments(self, decay: Tensor) -> Tensor:
        """Sums of decays between each two tokens of a chunk."""
        recorder, chunk = self.context.recorder, self.operator.chunk
        wide = spread_heads(recorder, decay, chunk)
        wide = filled(recorder, wide, recorder.new(chunk * chunk, 1))
        total = running_sum(recorder, wide)
        return filled(recorder, total, recorder.new(chunk * chunk, 1))

    def _product(self, a: Tensor, b: Tensor, n: int, *, turned: bool = True) -> Tensor:
        """A product of two activations, which are copied heads before tokens; of the first only if it is `turned`."""
        recorder = self.context.recorder
        if recorder.autocast:
            a, b = cast(recorder, a, 2), cast(recorder, b, 2)
        left = copy(recorder, a) if turned else a
        right = copy(recorder, b)
        return matmul(recorder, left, right, n)


def state_space(architecture: Architecture, kind: LayerKind) -> SelectiveStateSpace:
    """The state space of an architecture."""
    space = architecture.state_space
    assert space is not None
    return SelectiveStateSpace(
        architecture.hidden,
        space.heads,
        space.head_dim,
        space.groups,
        space.state,
        space.conv_kernel,
        space.conv_bias,
        space.bias,
        space.step_rank,
        space.norm,
        space.stacked_steps,
        space.chunk,
    )

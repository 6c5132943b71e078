"""Selective state spaces (Mamba 1 and 2): a convolution and a state of fixed size in place of a cache."""

from __future__ import annotations

from typing import ClassVar

from ...autograd.basic import mul, silu, unary_of_input
from ...autograd.graph import Parameter, Tensor
from ...autograd.recurrent import delta_kernel, gated_norm, short_convolution
from ...autograd.views import split
from ...catalog.architecture import Architecture, LayerKind
from ...record import dataclass
from ..context import Context
from ..operator import Operator, Program
from ..weight import Adapter, Weight, column_linear, row_linear, vector
from .rotation import Around

_FP32_BYTES = 4
_LOOP_LAUNCHES = 7
"""A profile of Mamba 130M on an H200 had 21 a token and layer, a forward pass and a backward one of two."""


@dataclass(frozen=True, slots=True)
class SelectiveStateSpace(Operator):
    """Mamba 2 (heads with one decay each, in chunks) or, with a `step_rank`, Mamba 1 (a decay a channel and state)."""

    title: ClassVar[str] = "state-space layers"
    is_common: ClassVar[bool] = False
    packages: ClassVar[str] = "mamba-ssm and causal-conv1d"
    dealt_out: ClassVar[tuple[str, ...]] = ("heads", "groups")
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
    scans: int = 1

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
    def chunk_tokens(self) -> int:
        """A chunk; one token after the other needs none."""
        return 1 if self.step_rank else self.chunk

    @property
    def loop_tokens(self) -> int:
        """One, where transformers writes Mamba 1 out."""
        return 1 if self.step_rank else 0

    @property
    def loop_launches(self) -> int:
        """The state times its decay, what enters added, its cast, the product that reads it; parts picked of each."""
        return _LOOP_LAUNCHES * self.scans if self.step_rank else 0

    @property
    def loop_width(self) -> float:
        """Decays and what enters, for each channel and number of state."""
        return 2.0 * self.inner * self.state if self.step_rank else 0.0

    @property
    def broadcast_width(self) -> float:
        """Scores of a chunk for each number of state, these times the values, states as they are written and read."""
        if self.step_rank:
            return 0.0
        return self.chunk * (self.heads * self.state + self.inner) + 2.0 * self.inner * self.state

    @property
    def stream_width(self) -> float:
        """3 of what is projected, and what a scan in chunks hands from kernel to kernel."""
        return 3 * (self.inner + self.channels) + self._handed

    @property
    def _handed(self) -> float:
        """Elements of 2 bytes a token that the kernels of a scan in chunks write for each other and read again.

        mamba_ssm, ssd_combined.py: the states of all chunks are written and read in fp32 (4), passed on they are
        written and read in 16 bits (2); so are in fp32 the products of what reads and what writes to the state, a
        square of a chunk for each group (4). Backward makes both again, and gradients of both: about twice as much.
        Mamba 1 keeps its state on the chip.
        """
        return 0.0 if self.step_rank else 6.0 * self.chunk_states + 4.0 * self.groups * self.chunk

    @property
    def chunk_states(self) -> int:
        """Elements of all chunks' states, a token."""
        return -(-self.inner * self.state // self.chunk)

    def program(self, context: Context) -> Program:
        """The recurrence over the whole sequence: in kernels, or over chunks as PyTorch's own operators do it."""
        if context.traits.recurrence == "kernel":
            return StateSpaceProgram(context, self)
        from .written_scan import ChunkScanProgram, TokenScanProgram

        return (TokenScanProgram if self.step_rank else ChunkScanProgram)(context, self)


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
        space.scans,
    )

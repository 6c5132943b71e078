"""Gated linear recurrences (Griffin, RecurrentGemma): one number of state a channel, and a convolution before it."""

from __future__ import annotations

from typing import ClassVar, Self

from ...autograd.basic import (
    cast,
    less,
    mul,
    scaled,
    shifted,
    unary_of_input,
    unary_of_output,
)
from ...autograd.graph import Parameter, Tensor
from ...autograd.products import stacked_product
from ...autograd.recurrent import short_convolution, token_loop
from ...autograd.views import copy, sliced
from ...catalog.architecture import Activation, Architecture, LayerKind
from ...record import dataclass, replace
from ..activations import activated, activation_kind
from ..context import Context
from ..operator import Operator
from ..weight import Weight, column_linear, row_linear, vector
from .rotation import Around

_FP32_BYTES = 4


@dataclass(frozen=True, slots=True)
class LinearRecurrence(Operator):
    """`out(act(y x) * scan(conv(x x)))`; gates of decay and input come out of square blocks of channels."""

    title: ClassVar[str] = "gated linear recurrences"
    is_common: ClassVar[bool] = False
    hidden: int
    width: int
    blocks: int
    kernel: int
    activation: Activation

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Projections, convolution, two gates by blocks, decays."""
        block = self.width // self.blocks
        gates = tuple(
            weight
            for name in ("input_gate", "decay_gate")
            for weight in (
                Weight(name, (self.blocks, block, block), inner=True),
                vector(f"{name}.bias", self.width, split="tensor"),
            )
        )
        return (
            *column_linear("branch_y", self.hidden, self.width, bias=True),
            *column_linear("branch_x", self.hidden, self.width, bias=True),
            Weight("conv", (self.width, 1, self.kernel)),
            vector("conv.bias", self.width, split="tensor"),
            *gates,
            vector("decay", self.width, split="tensor"),
            *row_linear("branch_out", self.width, self.hidden, bias=True),
        )

    def score_flop(self, tokens: int) -> float:
        """The convolution is computed over `kernel - 1` tokens of padding more; the recurrence is no product."""
        return 2.0 * self.width * self.kernel * (self.kernel - 1)

    def cached_values(self, tokens: int) -> int:
        """The convolution's last inputs, in the type of the stream."""
        return self.width * (self.kernel - 1) if tokens else 0

    @property
    def state_bytes(self) -> int:
        """A number a channel, kept in 32 bits."""
        return _FP32_BYTES * self.width

    @property
    def stream_width(self) -> float:
        """3 of both branches, 2 of each of both gates."""
        return 10 * self.width

    def on_rank(self, tp: int, expert_tp: int) -> Self:
        """Its blocks, at least one."""
        blocks = max(1, self.blocks // tp)
        return replace(self, width=self.width // self.blocks * blocks, blocks=blocks)

    def program(self, context: Context) -> LinearRecurrenceProgram:
        """Both branches, and the recurrence a token after the other."""
        return LinearRecurrenceProgram(context, self)


class LinearRecurrenceProgram:
    """The block as transformers writes it: without a kernel, in a loop over tokens."""

    __slots__ = ("context", "made", "operator", "place", "projections")

    def __init__(self, context: Context, operator: LinearRecurrence) -> None:
        made = context.made(operator.weights, streams=True)
        self.context, self.operator = context, operator
        self.projections, self.made = made.projections, made.parameters
        self.place = context.place

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, None]:
        """Run it on x; there are no scores to return."""
        context, recorder, operator = self.context, self.context.recorder, self.operator
        sizes = context.sizes
        gate = context.apply(self.projections["branch_y"], x)
        before = recorder.kept_in_replay
        gate = activated(recorder, gate, activation_kind(context.traits.activation, operator.activation))
        beside = recorder.kept_in_replay.keys() - before.keys()
        branch = context.apply(self.projections["branch_x"], x)
        wide = operator.width * (sizes.bs + (operator.kernel - 1) * sizes.b)
        branch = short_convolution(recorder, branch, self.made["conv"], wide, self.made["conv.bias"])
        branch = sliced(recorder, branch, operator.width * sizes.bs)
        branch = self._recurrence(branch)
        # The module names its last state until its next pass, and so all that the state's graph keeps.
        kept = recorder.kept_in_replay
        recorder.outliving[self.place] = {number: kept[number] for number in kept.keys() - beside}
        return context.apply(self.projections["branch_out"], mul(recorder, branch, gate)), None

    def _gate(self, blocks: Tensor, name: str) -> Tensor:
        """A gate of each channel; its product is named until the next one is made."""
        recorder = self.context.recorder
        made = stacked_product(recorder, blocks, self.made[name], self.made[f"{name}.bias"])
        return unary_of_output(recorder, copy(recorder, made))

    def _recurrence(self, x: Tensor) -> Tensor:
        recorder = self.context.recorder
        blocks = x if self.context.sizes.single else copy(recorder, x)
        enters, decay = self._gate(blocks, "input_gate"), self._gate(blocks, "decay_gate")
        rates: Parameter = self.made["decay"]
        rate = unary_of_input(recorder, cast(recorder, rates, 4 if recorder.autocast else rates.width))
        log = mul(recorder, scaled(recorder, decay), rate)
        decay = unary_of_output(recorder, log)
        square = unary_of_output(recorder, scaled(recorder, log))
        entering = mul(recorder, x, enters)
        starts = recorder.new(self.context.sizes.s, 1)
        root = unary_of_input(recorder, less(recorder, recorder.new(1, square.width), square))
        norm = shifted(recorder, mul(recorder, root, starts))
        entering = mul(recorder, entering, cast(recorder, norm, x.width))
        return token_loop(recorder, mul(recorder, decay, starts), entering)


def gated_recurrence(architecture: Architecture, kind: LayerKind) -> LinearRecurrence:
    """The gated recurrence of an architecture."""
    recurrence = architecture.gated_recurrence
    assert recurrence is not None
    return LinearRecurrence(
        architecture.hidden,
        recurrence.width,
        recurrence.blocks,
        recurrence.conv_kernel,
        architecture.activation,
    )

"""Gated memory units (SambaY): what an earlier state space made of each token, gated by the stream."""

from __future__ import annotations

from typing import ClassVar

from ...autograd.basic import mul, silu
from ...autograd.graph import Tensor
from ...catalog.architecture import Architecture, LayerKind
from ...record import dataclass
from ..context import Context
from ..operator import Operator
from ..weight import Weight, column_linear, row_linear
from .rotation import Around


@dataclass(frozen=True, slots=True)
class GatedMemory(Operator):
    """`out(silu(in x) * memory)`: no state, no scores."""

    title: ClassVar[str] = "gated memory units"
    is_common: ClassVar[bool] = False
    divided: ClassVar[tuple[str, ...]] = ("width",)
    hidden: int
    width: int

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Gate and output."""
        return (
            *column_linear("memory_in", self.hidden, self.width),
            *row_linear("memory_out", self.width, self.hidden),
        )

    @property
    def stream_width(self) -> float:
        """3 of gate and memory."""
        return 6.0 * self.width

    def program(self, context: Context) -> GatedMemoryProgram:
        """Gate what was remembered."""
        return GatedMemoryProgram(context, self)


class GatedMemoryProgram:
    """Two projections; what is remembered is taken as made for each layer anew."""

    __slots__ = ("context", "operator", "projections")

    def __init__(self, context: Context, operator: GatedMemory) -> None:
        self.context, self.operator = context, operator
        self.projections = context.made(operator.weights, streams=True).projections

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, None]:
        """Run it on x; there are no scores to return."""
        context, recorder = self.context, self.context.recorder
        gate = context.apply(self.projections["memory_in"], x)
        memory = recorder.new(gate.n, gate.width)
        return context.apply(self.projections["memory_out"], mul(recorder, silu(recorder, gate), memory)), None


def gated_memory(architecture: Architecture, kind: LayerKind) -> GatedMemory:
    """The memory unit of an architecture."""
    unit = architecture.memory_unit
    assert unit is not None
    return GatedMemory(architecture.hidden, unit.width)

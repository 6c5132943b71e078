"""Gated short convolutions (LFM2): two gates around a convolution over the last few tokens, which is all its memory."""

from __future__ import annotations

from typing import ClassVar

from ...autograd.basic import mul
from ...autograd.graph import Tensor
from ...autograd.recurrent import short_convolution
from ...autograd.views import split
from ...catalog.architecture import Architecture, LayerKind
from ...record import dataclass
from ..context import Context
from ..operator import Operator
from ..weight import Weight, column_linear, row_linear, vector
from .rotation import Around


@dataclass(frozen=True, slots=True)
class GatedConvolution(Operator):
    """`out(c * conv(b * x))` of three parts of one projection."""

    title: ClassVar[str] = "short convolutions"
    is_common: ClassVar[bool] = False
    divided: ClassVar[tuple[str, ...]] = ("width",)
    hidden: int
    width: int
    kernel: int
    bias: bool = False

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Projections and the convolution, a channel at a time."""
        conv = [Weight("conv", (self.width, 1, self.kernel))]
        if self.bias:
            conv.append(vector("conv.bias", self.width, split="tensor"))
        return (
            *column_linear("conv_in", self.hidden, 3 * self.width, bias=self.bias),
            *conv,
            *row_linear("conv_out", self.width, self.hidden, bias=self.bias),
        )

    def cached_values(self, tokens: int) -> int:
        """The convolution's last inputs."""
        return self.width * self.kernel if tokens else 0

    @property
    def stream_width(self) -> float:
        """3 of the three parts."""
        return 9 * self.width

    def program(self, context: Context) -> GatedConvolutionProgram:
        """Gate, convolve, gate."""
        return GatedConvolutionProgram(context, self)


class GatedConvolutionProgram:
    """The convolution as the public code writes it."""

    __slots__ = ("context", "conv", "operator", "projections")

    def __init__(self, context: Context, operator: GatedConvolution) -> None:
        made = context.made(operator.weights, streams=True)
        self.context, self.operator = context, operator
        self.projections, self.conv = made.projections, made.parameters["conv"]

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, None]:
        """Run it on x; there are no scores to return."""
        context, recorder = self.context, self.context.recorder
        n = context.sizes.bs * self.operator.width
        before, after, inner = split(recorder, context.apply(self.projections["conv_in"], x), n, n, n)
        mixed = short_convolution(recorder, mul(recorder, before, inner), self.conv, n)
        return context.apply(self.projections["conv_out"], mul(recorder, after, mixed)), None


def gated_convolution(architecture: Architecture, kind: LayerKind) -> GatedConvolution:
    """The short convolution of an architecture."""
    convolution = architecture.short_convolution
    assert convolution is not None
    return GatedConvolution(architecture.hidden, architecture.hidden, convolution.kernel, convolution.bias)

"""Norms: their weights, and how public code writes them: fused kernels, or powers, means and products."""

from __future__ import annotations

from collections.abc import Callable

from ..autograd.basic import cast, less, mean, mul, power, rsqrt, shifted
from ..autograd.graph import Parameter, Tensor
from ..autograd.products import compiled_norm, layer_norm, patched_norm
from ..autograd.recorder import Recorder
from ..catalog.architecture import Architecture
from ..record import dataclass
from .context import Context
from .operator import Operator
from .weight import NormKind, Weight, vector


@dataclass(frozen=True, slots=True)
class Norm(Operator):
    """A norm over the width of the stream, whole on every rank."""

    width: int
    kind: NormKind = "rms"
    biased: bool = False
    streams: bool = True
    """Its input is the residual stream between layers, which sequence parallelism divides."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Scale and shift."""
        scale = () if self.kind == "layer-plain" else (vector("norm", self.width),)
        return (*scale, vector("norm.bias", self.width)) if self.biased else scale

    def program(self, context: Context) -> NormProgram:
        """The norm as the implementation writes it."""
        made = context.made(self.weights).parameters
        width = self.width // context.ranks if self.streams else self.width
        kind = norm_program(context, self.kind, self.streams)
        return NormProgram(width, made.get("norm"), made.get("norm.bias"), kind, self.streams)


class NormProgram:
    """A norm of each `width` elements."""

    __slots__ = ("bias", "run", "streams", "weight", "width")

    def __init__(
        self, width: int, weight: Parameter | None, bias: Parameter | None, kind: str, streams: bool = False
    ) -> None:
        self.width = width
        self.weight = weight
        self.bias = bias
        self.streams = streams
        # A written-out layer norm without weights is the kernel.
        self.run = NORMS["kernel" if weight is None and kind == "centred" else kind]

    def __call__(self, recorder: Recorder, x: Tensor) -> Tensor:
        """Normalise x."""
        return self.run(recorder, self, x)


def norm_program(context: Context, norm: NormKind, streams: bool = False) -> str:
    """The implementation's norm, or the plainest of the architecture's where the two differ (an imported model)."""
    kind = context.traits.norm
    if kind in ("fused", "compiled"):
        return kind
    if norm == "rms" and streams and context.traits.patched:
        return "patched"
    if norm == "rms":
        return "cast-scale" if kind in LAYER_NORMS else kind
    return kind if kind in LAYER_NORMS else "kernel"


def norm(architecture: Architecture, *, streams: bool = True) -> Norm:
    """The norm of an architecture's stream."""
    return Norm(architecture.hidden, architecture.norm, architecture.norm_bias, streams)


def _kernel(recorder: Recorder, norm: NormProgram, x: Tensor) -> Tensor:
    return layer_norm(recorder, x, norm.weight, norm.bias, x.n // norm.width)


def _compiled(recorder: Recorder, norm: NormProgram, x: Tensor) -> Tensor:
    """One generated kernel, which writes the type that the products read; a norm of the embedding writes the stream."""
    width = 2 if recorder.autocast and norm.streams else x.width
    return compiled_norm(recorder, x, norm.weight, norm.bias, x.n // norm.width, width)


def _patched(recorder: Recorder, norm: NormProgram, x: Tensor) -> Tensor:
    """One kernel in the stream's type."""
    return patched_norm(recorder, x, norm.weight, x.n // norm.width)


def _kernel_fp32(recorder: Recorder, norm: NormProgram, x: Tensor) -> Tensor:
    """OLMo: a kernel without weights, on an fp32 copy."""
    out = layer_norm(recorder, cast(recorder, x, 4), norm.weight, norm.bias, x.n // norm.width)
    return cast(recorder, out, x.width)


def _kernel_narrow(recorder: Recorder, norm: NormProgram, x: Tensor) -> Tensor:
    """Nemotron: a kernel in 16 bits under autocast, too."""
    return layer_norm(recorder, x, norm.weight, norm.bias, x.n // norm.width, 2)


def _normalised(recorder: Recorder, norm: NormProgram, x: Tensor) -> Tensor:
    """x times the inverse root of its mean square, in fp32."""
    rows = x.n // norm.width
    wide = cast(recorder, x, 4)
    variance = mean(recorder, power(recorder, wide), rows)
    return mul(recorder, wide, rsqrt(recorder, shifted(recorder, variance)))


def _weight(norm: NormProgram) -> Parameter:
    assert norm.weight is not None
    return norm.weight


def _written(finish: Callable[[Recorder, Parameter, Tensor, int], Tensor]) -> Callable[..., Tensor]:
    """A norm by the root of the mean square in fp32; `finish` makes the weight and the stream's type of it."""

    def run(recorder: Recorder, norm: NormProgram, x: Tensor) -> Tensor:
        rows = x.n // norm.width
        wide = cast(recorder, x, 4)
        variance = mean(recorder, power(recorder, wide), rows)
        wide = mul(recorder, wide, rsqrt(recorder, shifted(recorder, variance)))
        return finish(recorder, _weight(norm), wide, x.width)

    return run


def _plain(recorder: Recorder, norm: NormProgram, x: Tensor) -> Tensor:
    """Llama 4's norm of heads: no weight, back to the type it came in."""
    return cast(recorder, _normalised(recorder, norm, cast(recorder, x, 4)), x.width)


def _centred(recorder: Recorder, norm: NormProgram, x: Tensor) -> Tensor:
    """Cohere: a layer norm written out, times the weight in fp32, back to the stream's type."""
    rows = x.n // norm.width
    wide = cast(recorder, x, 4)
    average = mean(recorder, wide, rows)
    variance = mean(recorder, power(recorder, less(recorder, wide, average)), rows)
    wide = mul(recorder, less(recorder, wide, average), rsqrt(recorder, shifted(recorder, variance)))
    wide = mul(recorder, cast(recorder, _weight(norm), 4), wide)
    return cast(recorder, wide, x.width)


def _one_plus(recorder: Recorder, norm: NormProgram, x: Tensor) -> Tensor:
    """Gemma: times (1 + weight) in fp32, then back to the stream's type."""
    out = _normalised(recorder, norm, x)
    out = mul(recorder, out, shifted(recorder, cast(recorder, _weight(norm), 4)))
    return cast(recorder, out, x.width)


LAYER_NORMS = ("kernel", "kernel-fp32", "kernel-narrow", "centred")
NORMS: dict[str, Callable[[Recorder, NormProgram, Tensor], Tensor]] = {
    "fused": _kernel,
    "compiled": _compiled,
    "patched": _patched,
    "kernel": _kernel,
    "kernel-fp32": _kernel_fp32,
    "kernel-narrow": _kernel_narrow,
    # Llama: back to the stream's type, then times the weight.
    "cast-scale": _written(lambda recorder, weight, x, width: mul(recorder, weight, cast(recorder, x, width))),
    # OLMo-2: times the weight in fp32, then back to the stream's type.
    "scale-cast": _written(lambda recorder, weight, x, width: cast(recorder, mul(recorder, weight, x), width)),
    "plain": _plain,
    "centred": _centred,
    # Helium: times an fp32 copy of the weight, then back to the stream's type.
    "wide-scale-cast": _written(
        lambda recorder, weight, x, width: cast(recorder, mul(recorder, cast(recorder, weight, 4), x), width)
    ),
    "one-plus": _one_plus,
}

"""Norms as public code writes them: fused kernels, or powers, means and products."""

from __future__ import annotations

from collections.abc import Callable

from ...autograd.basic import cast, less, mean, mul, power, rsqrt, shifted
from ...autograd.graph import Parameter, Tensor
from ...autograd.products import compiled_norm, layer_norm, patched_norm
from ...autograd.recorder import Recorder
from ...model.context import Context


class Norm:
    """A norm's weights and program."""

    __slots__ = ("bias", "run", "streams", "weight", "width")

    def __init__(
        self,
        context: Context,
        width: int,
        *,
        bias: bool = False,
        kind: str = "",
        heads: int = 1,
        streams: bool = False,
    ) -> None:
        """With `heads`, each of so many parts has its own weights and its own mean; `streams`: it reads the stream."""
        self.width = width // heads
        self.streams = streams
        if streams:
            self.width //= context.ranks
        self.weight = context.parameter(width) if _has_weight(context, kind) else None
        self.bias = context.parameter(width) if bias else None
        kind = kind or _kind(context, streams)
        # A written-out layer norm without weights is the kernel.
        self.run = NORMS["kernel" if self.weight is None and kind == "centred" else kind]

    def __call__(self, recorder: Recorder, x: Tensor) -> Tensor:
        """Normalise x over its last `width` elements."""
        return self.run(recorder, self, x)


def _kind(context: Context, streams: bool) -> str:
    """The program's norm, or the plainest of the architecture's kind where the two differ (an imported model)."""
    kind, norm = context.traits.norm, context.setup.architecture.norm
    if kind in ("fused", "compiled"):
        return kind
    if norm == "rms" and streams and context.traits.patched:
        return "patched"
    if norm == "rms":
        return "cast-scale" if kind in LAYER_NORMS else kind
    return kind if kind in LAYER_NORMS else "kernel"


def _has_weight(context: Context, kind: str) -> bool:
    plain = context.setup.architecture.norm == "layer-plain" and kind in ("", *LAYER_NORMS)
    return kind != "plain" and not plain


def _kernel(recorder: Recorder, norm: Norm, x: Tensor) -> Tensor:
    return layer_norm(recorder, x, norm.weight, norm.bias, x.n // norm.width)


def _compiled(recorder: Recorder, norm: Norm, x: Tensor) -> Tensor:
    """One generated kernel, which writes the type that the products read; a norm of the embedding writes the stream."""
    width = 2 if recorder.autocast and norm.streams else x.width
    return compiled_norm(recorder, x, norm.weight, norm.bias, x.n // norm.width, width)


def _patched(recorder: Recorder, norm: Norm, x: Tensor) -> Tensor:
    """One kernel in the stream's type."""
    return patched_norm(recorder, x, norm.weight, x.n // norm.width)


def _kernel_fp32(recorder: Recorder, norm: Norm, x: Tensor) -> Tensor:
    """OLMo: a kernel without weights, on an fp32 copy."""
    out = layer_norm(recorder, cast(recorder, x, 4), norm.weight, norm.bias, x.n // norm.width)
    return cast(recorder, out, x.width)


def _normalised(recorder: Recorder, norm: Norm, x: Tensor) -> Tensor:
    """x times the inverse root of its mean square, in fp32."""
    rows = x.n // norm.width
    wide = cast(recorder, x, 4)
    variance = mean(recorder, power(recorder, wide), rows)
    return mul(recorder, wide, rsqrt(recorder, shifted(recorder, variance)))


def _weight(norm: Norm) -> Parameter:
    assert norm.weight is not None
    return norm.weight


def _cast_scale(recorder: Recorder, norm: Norm, x: Tensor) -> Tensor:
    """Llama: back to the stream's type, then times the weight."""
    rows = x.n // norm.width
    wide = cast(recorder, x, 4)
    variance = mean(recorder, power(recorder, wide), rows)
    wide = mul(recorder, wide, rsqrt(recorder, shifted(recorder, variance)))
    return mul(recorder, _weight(norm), cast(recorder, wide, x.width))


def _scale_cast(recorder: Recorder, norm: Norm, x: Tensor) -> Tensor:
    """OLMo-2: times the weight in fp32, then back to the stream's type."""
    rows = x.n // norm.width
    wide = cast(recorder, x, 4)
    variance = mean(recorder, power(recorder, wide), rows)
    wide = mul(recorder, wide, rsqrt(recorder, shifted(recorder, variance)))
    return cast(recorder, mul(recorder, _weight(norm), wide), x.width)


def _plain(recorder: Recorder, norm: Norm, x: Tensor) -> Tensor:
    """Llama 4's norm of heads: no weight, back to the type it came in."""
    return cast(recorder, _normalised(recorder, norm, cast(recorder, x, 4)), x.width)


def _wide_scale_cast(recorder: Recorder, norm: Norm, x: Tensor) -> Tensor:
    """Helium: times an fp32 copy of the weight, then back to the stream's type."""
    rows = x.n // norm.width
    wide = cast(recorder, x, 4)
    variance = mean(recorder, power(recorder, wide), rows)
    wide = mul(recorder, wide, rsqrt(recorder, shifted(recorder, variance)))
    return cast(recorder, mul(recorder, cast(recorder, _weight(norm), 4), wide), x.width)


def _centred(recorder: Recorder, norm: Norm, x: Tensor) -> Tensor:
    """Cohere: a layer norm written out, times the weight in fp32, back to the stream's type."""
    rows = x.n // norm.width
    wide = cast(recorder, x, 4)
    average = mean(recorder, wide, rows)
    variance = mean(recorder, power(recorder, less(recorder, wide, average)), rows)
    wide = mul(recorder, less(recorder, wide, average), rsqrt(recorder, shifted(recorder, variance)))
    wide = mul(recorder, cast(recorder, _weight(norm), 4), wide)
    return cast(recorder, wide, x.width)


def _one_plus(recorder: Recorder, norm: Norm, x: Tensor) -> Tensor:
    """Gemma: times (1 + weight) in fp32, then back to the stream's type."""
    out = _normalised(recorder, norm, x)
    out = mul(recorder, out, shifted(recorder, cast(recorder, _weight(norm), 4)))
    return cast(recorder, out, x.width)


LAYER_NORMS = ("kernel", "kernel-fp32", "centred")
NORMS: dict[str, Callable[[Recorder, Norm, Tensor], Tensor]] = {
    "fused": _kernel,
    "compiled": _compiled,
    "patched": _patched,
    "kernel": _kernel,
    "kernel-fp32": _kernel_fp32,
    "cast-scale": _cast_scale,
    "scale-cast": _scale_cast,
    "plain": _plain,
    "centred": _centred,
    "wide-scale-cast": _wide_scale_cast,
    "one-plus": _one_plus,
}

"""Routers: from the stream to the weights and indices of the experts that each token is sent to."""

from __future__ import annotations

from collections.abc import Callable

from ..autograd.basic import cast, divided, scaled, softmax, unary_of_output
from ..autograd.graph import Parameter, Tensor
from ..autograd.products import linear
from ..autograd.recorder import Recorder
from ..autograd.routing import rows, summed, top
from .context import Context


def _normalised(recorder: Recorder, values: Tensor, tokens: int) -> Tensor:
    """Divided in place by their sum over the chosen."""
    total = summed(recorder, values, tokens)
    return divided(recorder, values, total, in_place=True)


def _softmax_router(
    context: Context, router: Parameter, bias: Parameter | None, x: Tensor, chosen: int
) -> tuple[Tensor, Tensor]:
    """Softmax over all experts in fp32, the largest k of it divided by their sum (Mixtral)."""
    recorder = context.recorder
    logits = linear(recorder, x, router, bias)
    scores = softmax(recorder, logits, 4)
    values, index = top(recorder, scores, chosen)
    return _normalised(recorder, values, context.sizes.bs), index


def _softmax_back_router(
    context: Context, router: Parameter, bias: Parameter | None, x: Tensor, chosen: int
) -> tuple[Tensor, Tensor]:
    """As Mixtral's, then back to the logits' type (Qwen3)."""
    recorder = context.recorder
    logits = linear(recorder, x, router, bias)
    scores = softmax(recorder, logits, 4)
    values, index = top(recorder, scores, chosen)
    return cast(recorder, _normalised(recorder, values, context.sizes.bs), logits.width), index


def _softmax_raw_router(
    context: Context, router: Parameter, bias: Parameter | None, x: Tensor, chosen: int
) -> tuple[Tensor, Tensor]:
    """Softmax in fp32, the largest k as they are, back to the logits' type (OLMoE)."""
    recorder = context.recorder
    logits = linear(recorder, x, router, bias)
    scores = softmax(recorder, logits, 4)
    values, index = top(recorder, scores, chosen)
    return cast(recorder, values, logits.width), index


def _softmax_scaled_router(
    context: Context, router: Parameter, bias: Parameter | None, x: Tensor, chosen: int
) -> tuple[Tensor, Tensor]:
    """An fp32 product, softmax, the largest k times a number (DeepSeek-V2)."""
    recorder = context.recorder
    logits = _wide_product(recorder, router, x)
    scores = softmax(recorder, logits, 4)
    values, index = top(recorder, scores, chosen)
    return scaled(recorder, values), index


def _softmax_corrected_router(
    context: Context, router: Parameter, bias: Parameter | None, x: Tensor, chosen: int
) -> tuple[Tensor, Tensor]:
    """An fp32 product, softmax; the chosen gathered, times a number (LongCat)."""
    recorder = context.recorder
    scores = softmax(recorder, _wide_product(recorder, router, x))
    index = recorder.new(chosen, 8)
    values = rows(recorder, scores, index, chosen)
    return scaled(recorder, values), index


def _sigmoid_router(
    context: Context, router: Parameter, bias: Parameter | None, x: Tensor, chosen: int
) -> tuple[Tensor, Tensor]:
    """An fp32 product, sigmoid; the chosen gathered, divided by their sum, times a number (DeepSeek-V3)."""
    recorder = context.recorder
    logits = _wide_product(recorder, router, x)
    scores = unary_of_output(recorder, logits)
    index = recorder.new(chosen, 8)
    values = rows(recorder, scores, index, chosen)
    return scaled(recorder, _normalised(recorder, values, context.sizes.bs)), index


def _top_softmax_router(
    context: Context, router: Parameter, bias: Parameter | None, x: Tensor, chosen: int
) -> tuple[Tensor, Tensor]:
    """The largest k of the logits, then softmax over them (Granite)."""
    recorder = context.recorder
    logits = cast(recorder, linear(recorder, x, router, bias), 4)
    values, index = top(recorder, logits, chosen)
    return cast(recorder, softmax(recorder, values), x.width), index


def _top_softmax_raw_router(
    context: Context, router: Parameter, bias: Parameter | None, x: Tensor, chosen: int
) -> tuple[Tensor, Tensor]:
    """The largest k of the logits, then softmax over them in the logits' own type (gpt-oss)."""
    recorder = context.recorder
    logits = linear(recorder, x, router, bias)
    values, index = top(recorder, logits, chosen)
    return softmax(recorder, values, values.width), index


def _wide_product(recorder: Recorder, router: Parameter, x: Tensor) -> Tensor:
    wide = cast(recorder, x, 4)
    if recorder.autocast or router.width == 4:
        return linear(recorder, wide, router)
    cast_router = cast(recorder, router, 4)
    copied = Parameter(cast_router.storage, router.shape, 4, None)
    copied.node = cast_router.node
    return linear(recorder, wide, copied)


Router = Callable[[Context, Parameter, Parameter | None, Tensor, int], tuple[Tensor, Tensor]]
"""Context, weight, bias, the stream, and how many choices all tokens make together, to weights and indices."""

ROUTERS: dict[str, Router] = {
    "softmax": _softmax_router,
    "softmax-back": _softmax_back_router,
    "softmax-raw": _softmax_raw_router,
    "softmax-scaled": _softmax_scaled_router,
    "softmax-corrected": _softmax_corrected_router,
    "sigmoid": _sigmoid_router,
    "top-softmax": _top_softmax_router,
    "top-softmax-raw": _top_softmax_raw_router,
}

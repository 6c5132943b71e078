"""Routers: from the stream to the weights and indices of the experts that each token is sent to."""

from __future__ import annotations

from collections.abc import Callable

from ..autograd.basic import cast, divided, mul, scaled, softmax, unary_of_output
from ..autograd.graph import Parameter, Tensor
from ..autograd.products import linear
from ..autograd.recorder import Recorder
from ..autograd.routing import rows, summed, top
from ..record import dataclass
from .norm import NormProgram


@dataclass(frozen=True, slots=True)
class Routing:
    """What a router works on."""

    recorder: Recorder
    weight: Parameter
    bias: Parameter | None
    x: Tensor
    tokens: int
    chosen: int
    """Choices that all tokens make together."""
    product: Callable[[Tensor], Tensor] | None = None
    """How logits are made where the router is a linear layer with an adapter."""

    def logits(self) -> Tensor:
        """One number for each token and expert, in the product's type."""
        return linear(self.recorder, self.x, self.weight, self.bias) if self.product is None else self.product(self.x)

    def wide_logits(self) -> Tensor:
        """The same by a product in fp32."""
        recorder, router = self.recorder, self.weight
        wide = cast(recorder, self.x, 4)
        if recorder.autocast or router.width == 4:
            return linear(recorder, wide, router)
        cast_router = cast(recorder, router, 4)
        copied = Parameter(cast_router.storage, router.shape, 4, None)
        copied.node = cast_router.node
        return linear(recorder, wide, copied)

    def normalised(self, values: Tensor) -> Tensor:
        """Divided in place by their sum over the chosen."""
        total = summed(self.recorder, values, self.tokens)
        return divided(self.recorder, values, total, in_place=True)


def what_it_reads(recorder: Recorder, x: Tensor, hidden: int, scale: Parameter | None) -> Tensor:
    """The stream, or where the router scales its input its own norm of that, scaled (Gemma 4)."""
    if scale is None:
        return x
    normed = NormProgram(hidden, None, None, "plain")(recorder, x)
    return scaled(recorder, mul(recorder, normed, scale))


def _softmax_first(r: Routing) -> tuple[Tensor, Tensor]:
    """Softmax over all experts in fp32, the largest k of it divided by their sum (Mixtral)."""
    logits = r.logits()
    scores = softmax(r.recorder, logits, 4)
    values, index = top(r.recorder, scores, r.chosen)
    return r.normalised(values), index


def _softmax_back(r: Routing) -> tuple[Tensor, Tensor]:
    """As Mixtral's, then back to the logits' type (Qwen3)."""
    logits = r.logits()
    scores = softmax(r.recorder, logits, 4)
    values, index = top(r.recorder, scores, r.chosen)
    return cast(r.recorder, r.normalised(values), logits.width), index


def _softmax_raw(r: Routing) -> tuple[Tensor, Tensor]:
    """Softmax in fp32, the largest k as they are, back to the logits' type (OLMoE)."""
    logits = r.logits()
    scores = softmax(r.recorder, logits, 4)
    values, index = top(r.recorder, scores, r.chosen)
    return cast(r.recorder, values, logits.width), index


def _softmax_scaled(r: Routing) -> tuple[Tensor, Tensor]:
    """An fp32 product, softmax, the largest k times a number (DeepSeek-V2)."""
    logits = r.wide_logits()
    scores = softmax(r.recorder, logits, 4)
    values, index = top(r.recorder, scores, r.chosen)
    return scaled(r.recorder, values), index


def _softmax_corrected(r: Routing) -> tuple[Tensor, Tensor]:
    """An fp32 product, softmax; the chosen gathered, times a number (LongCat)."""
    scores = softmax(r.recorder, r.wide_logits())
    index = r.recorder.new(r.chosen, 8)
    values = rows(r.recorder, scores, index, r.chosen)
    return scaled(r.recorder, values), index


def _sigmoid(r: Routing) -> tuple[Tensor, Tensor]:
    """An fp32 product, sigmoid; the chosen gathered, divided by their sum, times a number (DeepSeek-V3)."""
    logits = r.wide_logits()
    scores = unary_of_output(r.recorder, logits)
    index = r.recorder.new(r.chosen, 8)
    values = rows(r.recorder, scores, index, r.chosen)
    return scaled(r.recorder, r.normalised(values)), index


def _top_softmax(r: Routing) -> tuple[Tensor, Tensor]:
    """The largest k of the logits, then softmax over them (Granite)."""
    logits = cast(r.recorder, r.logits(), 4)
    values, index = top(r.recorder, logits, r.chosen)
    return cast(r.recorder, softmax(r.recorder, values), r.x.width), index


def _top_softmax_raw(r: Routing) -> tuple[Tensor, Tensor]:
    """The largest k of the logits, then softmax over them in the logits' own type (gpt-oss)."""
    logits = r.logits()
    values, index = top(r.recorder, logits, r.chosen)
    return softmax(r.recorder, values, values.width), index


Router = Callable[[Routing], tuple[Tensor, Tensor]]
"""To weights and indices."""

ROUTERS: dict[str, Router] = {
    "softmax": _softmax_first,
    "softmax-back": _softmax_back,
    "softmax-raw": _softmax_raw,
    "softmax-scaled": _softmax_scaled,
    "softmax-corrected": _softmax_corrected,
    "sigmoid": _sigmoid,
    "top-softmax": _top_softmax,
    "top-softmax-raw": _top_softmax_raw,
}

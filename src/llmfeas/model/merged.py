"""Adapters on weights that are no layers of their own: the low-rank product is added to a copy of the whole weight."""

from __future__ import annotations

from ..autograd.basic import add, cast, scaled
from ..autograd.graph import Parameter, Tensor
from ..autograd.products import linear, low_rank_sum
from ..autograd.recorder import Recorder
from .context import Context


class Merged:
    """A stacked weight and the adapters that are merged into it whenever it is used (peft's parameter wrapper)."""

    __slots__ = ("context", "high", "low", "weight")

    def __init__(self, context: Context, weight: Parameter, rank: int) -> None:
        count = weight.shape[0] if len(weight.shape) == 3 else 1
        self.context = context
        self.weight = weight
        self.low = context.adapter(rank * count, weight.shape[-1])
        self.high = context.adapter(weight.shape[-2], rank * count)

    def factors(self) -> tuple[Tensor, Tensor]:
        """The factors in the weight's type; registering them forms the sum once, for nothing."""
        recorder = self.context.recorder
        high, low = cast(recorder, self.high, self.weight.width), cast(recorder, self.low, self.weight.width)
        recorder.new(self.weight.n, self.weight.width)
        return high, low

    def merged(self, factors: tuple[Tensor, Tensor]) -> Parameter:
        """The weight plus the product of its factors."""
        return low_rank_sum(self.context.recorder, self.weight, *factors)


def merged_router(recorder: Recorder, router: Merged) -> Parameter:
    """A router's weight plus its adapters' product, formed in fp32."""
    weight = router.weight
    product = scaled(recorder, linear(recorder, router.low, router.high, out=weight.n))
    total = add(recorder, weight, cast(recorder, product, weight.width))
    found = Parameter(total.storage, weight.shape, weight.width, None)
    found.node = total.node
    found.shared = False
    return found

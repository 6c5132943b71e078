"""A routed mixture of experts, with shared and identity experts."""

from __future__ import annotations

from ..catalog.architecture import Architecture
from ..catalog.architecture import Experts as ExpertsRecord
from ..record import dataclass
from .feedforward import FeedForward
from .operator import Operator, Weight, linear, vector


@dataclass(frozen=True, slots=True)
class RoutedExperts(Operator):
    """Router, `count` gated experts of which a token reaches `top_k` (`real` of them on average), shared experts.

    Identity experts (`zero`) are routed to, weigh nothing and do nothing: `top_k - real` of a token's choices.
    """

    hidden: int
    count: int
    zero: int
    top_k: int
    real: float
    width: int
    shared_width: int = 0
    shared_gate: bool = False
    gated: bool = True
    router_bias: bool = False
    bias: bool = False

    @property
    def routed(self) -> tuple[Weight, ...]:
        """The experts themselves: over expert-parallel ranks, each of them over tensor-parallel ones."""
        up = (2 if self.gated else 1) * self.width
        found = [self._expert("expert_up", (up, self.hidden)), self._expert("expert_down", (self.hidden, self.width))]
        if self.bias:
            found += [self._expert("expert_up.bias", (up,)), self._expert("expert_down.bias", (self.hidden,))]
        return tuple(found)

    def _expert(self, name: str, shape: tuple[int, ...]) -> Weight:
        return Weight(name, shape, self.count, self.real, split="expert")

    @property
    def router(self) -> tuple[Weight, ...]:
        """One row for each real and each identity expert, whole on every rank."""
        rows = self.count + self.zero
        matrix = Weight("router", (rows, self.hidden), split="none")
        return (matrix, vector("router.bias", rows)) if self.router_bias else (matrix,)

    @property
    def shared(self) -> tuple[Weight, ...]:
        """Experts that every token passes through, as one feed-forward, and their gate."""
        if not self.shared_width:
            return ()
        gate = linear("shared_gate", self.hidden, 1) if self.shared_gate else ()
        return FeedForward(self.hidden, self.shared_width, self.gated).weights + gate

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Router, routed experts, shared experts."""
        return self.router + self.routed + self.shared

    @property
    def stream_width(self) -> float:
        """3 of each tensor between the products of the experts that a token reaches, and of the shared ones."""
        return 3 * (2 if self.gated else 1) * (self.real * self.width + self.shared_width)

    @property
    def tail(self) -> Weight | None:
        """The shared experts' `down` if no gate follows; routing weights follow the routed experts."""
        if not self.shared_width or self.shared_gate:
            return None
        return FeedForward(self.hidden, self.shared_width, self.gated).tail

    def active_elements(self, real: float) -> float:
        """Routed parameters that a token meets when it reaches `real` experts."""
        return sum(weight.elements for weight in self.routed) / self.count * real


def routed_experts(architecture: Architecture, experts: ExpertsRecord) -> RoutedExperts:
    """Give the mixture of experts of an architecture."""
    return RoutedExperts(
        architecture.hidden,
        experts.count,
        experts.zero,
        experts.top_k,
        experts.top_k if experts.expected_real is None else experts.expected_real,
        experts.width,
        experts.shared * (experts.shared_width or experts.width),
        experts.shared_gate,
        architecture.gated,
        experts.router_bias,
        experts.bias,
    )

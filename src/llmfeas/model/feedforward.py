"""The dense feed-forward."""

from __future__ import annotations

from ..catalog.architecture import Architecture
from ..record import dataclass
from .operator import Operator, Weight, linear, row_linear


@dataclass(frozen=True, slots=True)
class FeedForward(Operator):
    """`down(act(up x))`, or `down(act(gate x) * up x)` when gated."""

    hidden: int
    width: int
    gated: bool = True
    bias: bool = False
    fused: bool = False

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Gate and up divide by columns, down by rows."""
        down = row_linear("down", self.width, self.hidden, bias=self.bias)
        if self.gated and self.fused:
            return linear("gate_up", self.hidden, 2 * self.width, bias=self.bias) + down
        up = linear("up", self.hidden, self.width, bias=self.bias)
        return linear("gate", self.hidden, self.width, bias=self.bias) + up + down if self.gated else up + down

    @property
    def stream_width(self) -> float:
        """3 of each tensor between its products."""
        return 3 * (2 if self.gated else 1) * self.width

    @property
    def tail(self) -> Weight:
        """`down`."""
        return next(weight for weight in self.weights if weight.name == "down")


def feed_forward(architecture: Architecture, width: int) -> FeedForward:
    """Give the dense feed-forward of an architecture."""
    return FeedForward(
        architecture.hidden, width, architecture.gated, architecture.mlp_bias, architecture.fused_gate_up
    )

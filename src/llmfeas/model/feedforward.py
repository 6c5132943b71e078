"""The dense feed-forward."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from ..autograd.basic import dropout, mul, scaled
from ..autograd.graph import Tensor
from ..autograd.views import copy, split
from ..catalog.architecture import Activation, Architecture
from ..catalog.implementation import Implementation
from ..record import dataclass, replace
from .activations import activated, activation_kind, gated
from .context import Context, Linear
from .operator import Operator
from .weight import Adapter, Weight, column_linear, row_linear, vector

if TYPE_CHECKING:
    from ..autograd.adapted import Adapted


@dataclass(frozen=True, slots=True)
class FeedForward(Operator):
    """`down(act(up x))`, or `down(act(gate x) * up x)` when gated."""

    divided: ClassVar[tuple[str, ...]] = ("width",)
    hidden: int
    width: int
    gated: bool = True
    bias: bool = False
    fused: bool = False
    """Gate and up are one matrix."""
    activation: Activation = "silu"
    adapts: bool = True
    """All-linear adapters reach it."""
    among_experts: bool = False
    """Other layers have experts in its place."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Gate and up divide by columns, down by rows."""
        adapter: Adapter = "linear" if self.adapts else "never"
        down = row_linear("down", self.width, self.hidden, bias=self.bias, adapter=adapter)
        if self.activation == "xielu":
            down = (vector("alpha_p", 1), vector("alpha_n", 1), *down)
        if self.gated and self.fused:
            return column_linear("gate_up", self.hidden, 2 * self.width, bias=self.bias, adapter=adapter) + down
        up = column_linear("up", self.hidden, self.width, bias=self.bias, adapter=adapter)
        if not self.gated:
            return up + down
        return column_linear("gate", self.hidden, self.width, bias=self.bias, adapter=adapter) + up + down

    def laid_out(self, traits: Implementation) -> Self:
        """With gate and up in one matrix or two; adapters that reach stacked experts take their names, not these."""
        missed = self.among_experts and traits.expert_adapters == "merged"
        return replace(self, fused=traits.gate_up == "joint", adapts=not missed)

    def pass_bytes(self, tokens: int, seen: int, sequences: int, width: float) -> float:
        """Gate, up and their product; without a gate input and result of the activation, and what it writes out."""
        kept = 3 if self.gated else (4 if self.activation == "gelu_new" else 2)
        return kept * tokens * sequences * self.width * width

    @property
    def stream_width(self) -> float:
        """3 of each tensor between its products."""
        return 3 * (2 if self.gated else 1) * self.width

    @property
    def tail(self) -> Weight:
        """`down`."""
        return self.weights[-2 if self.bias else -1]

    def program(self, context: Context, *, streams: bool = True) -> FeedForwardProgram:
        """Projections with activation and product between them; `streams`: on the residual stream itself."""
        return FeedForwardProgram(context, self, streams)


class FeedForwardProgram:
    """Up and down, or gate, up and down, as the implementation runs them."""

    __slots__ = ("context", "down", "factors", "gate", "joint", "kind", "projections", "up")

    def __init__(self, context: Context, operator: FeedForward, streams: bool) -> None:
        whole = context.made(operator.weights, streams=streams)
        made = whole.projections
        self.context = context
        self.projections = made
        self.factors = [whole.parameters[name] for name in ("alpha_p", "alpha_n") if name in whole.parameters]
        self.kind = activation_kind(context.traits.activation, operator.activation)
        self.joint = "gate_up" in made
        self.gate = made.get("gate")
        self.up = made["gate_up" if self.joint else "up"]
        self.down = made["down"]

    def __call__(self, x: Tensor) -> Tensor:
        """Run it on x."""
        context, recorder = self.context, self.context.recorder
        if self.joint:
            up = context.apply(self.up, x)
            gate, up = split(recorder, up, up.n // 2, up.n // 2)
            if context.traits.patched:
                return context.apply(self.down, gated(recorder, copy(recorder, gate), copy(recorder, up)))
            up = mul(recorder, up, activated(recorder, gate, self.kind))
            return context.apply(self.down, up)
        if self.gate is None:
            hidden = context.apply(self.up, x)
            hidden = self._dropped(activated(recorder, hidden, self.kind, *self.factors))
            return context.apply(self.down, hidden)
        adapted = self._adapted(self.gate)
        if adapted is not None:
            from ..autograd.adapted import adapted_feed_forward

            return adapted_feed_forward(recorder, x, *adapted)
        if context.traits.patched or context.traits.gate_up in ("kernel", "compiled"):
            return context.apply(self.down, gated(recorder, context.apply(self.gate, x), context.apply(self.up, x)))
        if context.traits.scales_parts:
            return self._scaled(x, self.gate)
        product = mul(recorder, activated(recorder, context.apply(self.gate, x), self.kind), context.apply(self.up, x))
        return context.apply(self.down, self._dropped(product))

    def _scaled(self, x: Tensor, gate: Linear) -> Tensor:
        """What the gate gives and what comes out, each times a number (Falcon-H1)."""
        context, recorder = self.context, self.context.recorder
        up = context.apply(self.up, x)
        hidden = mul(recorder, up, activated(recorder, scaled(recorder, context.apply(gate, x)), self.kind))
        return scaled(recorder, context.apply(self.down, hidden))

    def _dropped(self, x: Tensor) -> Tensor:
        """What goes into the last product."""
        drops = self.context.traits.drops_inner and self.context.recipe.drop_residual
        return dropout(self.context.recorder, x, drops)

    def _adapted(self, gate: Linear) -> tuple[Adapted, Adapted, Adapted] | None:
        """Gate, up and down with their factors, where one kernel runs all three."""
        if self.context.traits.adapters != "kernel":
            return None
        parts: list[Adapted] = []
        for layer in (gate, self.up, self.down):
            if layer.down is None or layer.up is None:
                return None
            parts.append((layer.weight, layer.down, layer.up))
        return parts[0], parts[1], parts[2]


def feed_forward(architecture: Architecture, width: int) -> FeedForward:
    """The dense feed-forward of an architecture."""
    a = architecture
    experts = a.experts is not None
    return FeedForward(a.hidden, width, a.gated, a.mlp_bias, a.fused_gate_up, a.activation, among_experts=experts)

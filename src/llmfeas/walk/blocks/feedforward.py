"""Dense feed-forwards."""

from __future__ import annotations

from ...autograd.adapted import Adapted, adapted_feed_forward
from ...autograd.basic import mul
from ...autograd.graph import Tensor
from ...autograd.views import copy, split
from .activations import activated, activation_kind, gated
from .context import Context, Linear


class FeedForward:
    """Up and down, or gate, up and down."""

    __slots__ = ("context", "down", "gate", "joint", "kind", "up", "width")

    def __init__(self, context: Context, width: int, *, streams: bool = True) -> None:
        a, traits = context.setup.architecture, context.setup.implementation
        self.context = context
        self.kind = activation_kind(traits.activation, a.activation)
        self.width = width
        # Where the adapter library reaches stacked experts it takes their names, and no longer these projections.
        adapt = context.setup.recipe.adapt_mlp and not traits.adapts_experts
        self.gate: Linear | None = None
        self.joint = a.gated and traits.gate_up == "joint"
        if a.gated and not self.joint:
            self.gate = context.linear(a.hidden, width, bias=a.mlp_bias, adapt=adapt, reads=streams)
        rows = 2 * width if self.joint else width
        self.up = context.linear(a.hidden, rows, bias=a.mlp_bias, adapt=adapt, reads=streams)
        self.down = context.linear(width, a.hidden, bias=a.mlp_bias, adapt=adapt, writes=streams)

    def __call__(self, x: Tensor) -> Tensor:
        """Run it on x."""
        context, recorder = self.context, self.context.recorder
        if self.joint:
            up = context.apply(self.up, x)
            gate, up = split(recorder, up, up.n // 2, up.n // 2)
            if context.setup.implementation.patched:
                return context.apply(self.down, gated(recorder, copy(recorder, gate), copy(recorder, up)))
            up = mul(recorder, up, activated(recorder, gate, self.kind))
            return context.apply(self.down, up)
        adapted = self._adapted()
        if adapted is not None:
            return adapted_feed_forward(recorder, x, *adapted)
        if self.gate is not None and self._in_one():
            return context.apply(self.down, gated(recorder, context.apply(self.gate, x), context.apply(self.up, x)))
        if self.gate is None:
            hidden = context.apply(self.up, x)
            hidden = activated(recorder, hidden, self.kind)
            return context.apply(self.down, hidden)
        return context.apply(
            self.down,
            mul(recorder, activated(recorder, context.apply(self.gate, x), self.kind), context.apply(self.up, x)),
        )

    def _in_one(self) -> bool:
        """Tell whether activation and product are one kernel."""
        traits = self.context.setup.implementation
        return traits.patched or traits.gate_up in ("kernel", "compiled")

    def _adapted(self) -> tuple[Adapted, Adapted, Adapted] | None:
        """Gate, up and down with their factors, where one kernel runs all three."""
        if self.gate is None or self.context.setup.implementation.adapters != "kernel":
            return None
        parts: list[Adapted] = []
        for layer in (self.gate, self.up, self.down):
            if layer.down is None or layer.up is None:
                return None
            parts.append((layer.weight, layer.down, layer.up))
        return parts[0], parts[1], parts[2]

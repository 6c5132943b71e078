"""Routed experts: a router, grouped products over the rows that each expert gets, shared experts beside them.

Tokens spread evenly over experts: all sizes follow from the number of routed rows.
"""

from __future__ import annotations

from ...autograd.basic import (
    add,
    added_in_place,
    cast,
    mul,
    unary_of_output,
    weighed_in_place,
)
from ...autograd.graph import Parameter, Tensor
from ...autograd.routing import added_at, grouped, one_by_one, rows, summed
from ...autograd.views import respread, split
from ...catalog.architecture import Experts as ExpertTraits
from .activations import activated, activation_kind, gated, gated_clamped
from .context import Context, Linear
from .feedforward import FeedForward
from .merged import Merged, merged_router
from .routers import ROUTERS


class Experts:
    """A mixture of experts in place of a feed-forward."""

    __slots__ = (
        "adapters",
        "choice",
        "context",
        "down",
        "down_bias",
        "joint",
        "joint_bias",
        "router",
        "router_bias",
        "shared",
        "shared_gate",
    )

    def __init__(self, context: Context) -> None:
        a = context.setup.architecture
        experts = a.experts
        assert experts is not None
        self.context = context
        self.router = context.parameter(experts.count + experts.zero, a.hidden)
        count = context.setup.recipe.rank_experts or experts.count
        self.joint = context.parameter(count, (2 if a.gated else 1) * experts.width, a.hidden)
        self.down = context.parameter(count, a.hidden, experts.width)
        self.joint.routed = self.down.routed = True
        self.router_bias = context.parameter(experts.count + experts.zero) if experts.router_bias else None
        self.joint_bias = context.parameter(count, self.joint.shape[1]) if experts.bias else None
        self.down_bias = context.parameter(count, a.hidden) if experts.bias else None
        if context.setup.implementation.router == "sigmoid":
            # The correction of each expert's score is a buffer.
            context.buffers.append(context.recorder.new(experts.count, 4))
        self.adapters = self._adapters()
        self.choice = ROUTERS[context.setup.implementation.router]
        self.shared: FeedForward | None = None
        self.shared_gate: Linear | None = None
        if experts.shared:
            self.shared = FeedForward(context, _shared_width(experts), streams=False)
            self.shared_gate = (
                context.linear(a.hidden, 1, adapt=context.setup.recipe.adapt_mlp) if experts.shared_gate else None
            )

    def _adapters(self) -> tuple[Merged, Merged, Merged] | None:
        """Adapters of down, joint and router, where the adapter library reaches stacked weights."""
        context = self.context
        recipe, traits = context.setup.recipe, context.setup.implementation
        if not (recipe.adapters and recipe.adapt_mlp and traits.adapts_experts):
            return None
        rank, both = recipe.adapters, 2 if context.setup.architecture.gated else 1
        return (
            Merged(context, self.down, rank),
            Merged(context, self.joint, both * rank),
            Merged(context, self.router, rank),
        )

    def __call__(self, x: Tensor) -> Tensor:
        """Gather the tokens of this rank's group, route them through the experts, spread them again."""
        context, recorder = self.context, self.context.recorder
        whole = context.sizes.bs * context.setup.architecture.hidden
        return respread(recorder, self._forward(respread(recorder, x, whole)), x.n)

    def _forward(self, x: Tensor) -> Tensor:
        """Route, run the experts, weigh and sum, add the shared ones."""
        recorder = self.context.recorder
        router = merged_router(recorder, self.adapters[2]) if self.adapters else self.router
        weights, index = self.choice(self.context, router, self.router_bias, x)
        if self.context.setup.implementation.gate_up == "kernel":
            weights = cast(recorder, weights, x.width)
        out = self._routed(x, weights, index)
        if self.shared is None:
            return out
        return add(recorder, out, self._shared(x))

    def _shared(self, x: Tensor) -> Tensor:
        assert self.shared is not None
        recorder = self.context.recorder
        out = self.shared(x)
        if self.shared_gate is None:
            return out
        return mul(recorder, unary_of_output(recorder, self.context.apply(self.shared_gate, x)), out)

    def _routed(self, x: Tensor, weights: Tensor, index: Tensor) -> Tensor:
        """Rows in the order of their experts, through gate, up and down, back into the order of tokens."""
        a, recorder = self.context.setup.architecture, self.context.recorder
        experts = a.experts
        assert experts is not None
        routed = min(weights.n, _reached(self.context))
        factors = [adapter.factors() for adapter in self.adapters[:2]] if self.adapters else []
        if self.context.setup.implementation.experts_one_by_one:
            return self._one_by_one(x, weights, routed, factors)
        sorted_index, order = recorder.new(routed, 8), recorder.new(routed, 8)
        picked = rows(recorder, x, recorder.new(routed, 8), routed * a.hidden)
        weight = rows(recorder, weights, order, routed)
        offsets = recorder.new(experts.count, 4)
        joint = self.adapters[1].merged(factors[1]) if self.adapters else self.joint
        added = self._biases(self.joint_bias, sorted_index)
        hidden = grouped(recorder, cast(recorder, picked, joint.width), joint, offsets, routed * joint.shape[1])
        if added is not None:
            hidden = added_in_place(recorder, hidden, added)
        hidden = self._activated(hidden)
        early = self.context.setup.implementation.gate_up == "kernel"
        if early:
            hidden = weighed_in_place(recorder, hidden, weight)
        added = self._biases(self.down_bias, sorted_index)
        down = self.adapters[0].merged(factors[0]) if self.adapters else self.down
        hidden = grouped(recorder, cast(recorder, hidden, down.width), down, offsets, routed * a.hidden)
        if added is not None:
            hidden = added_in_place(recorder, hidden, added)
        weighted = hidden if early else mul(recorder, hidden, weight)
        weighted = rows(recorder, weighted, recorder.new(routed, 8), routed * a.hidden)
        out = summed(recorder, weighted, x.n)
        del sorted_index, index
        return cast(recorder, out, x.width)

    def _one_by_one(self, x: Tensor, weights: Tensor, routed: int, factors: list[tuple[Tensor, Tensor]]) -> Tensor:
        """A loop over experts, each on its rows, added into the result (LongCat)."""
        a, recorder = self.context.setup.architecture, self.context.recorder
        joint = self.adapters[1].merged(factors[1]) if self.adapters else self.joint
        down = self.adapters[0].merged(factors[0]) if self.adapters else self.down
        out = recorder.new(x.n, x.width)
        _chosen = recorder.new(weights.n * self.router.shape[0], 8)
        index, order = recorder.new(routed, 8), recorder.new(routed, 8)
        picked = rows(recorder, x, index, routed * a.hidden)
        weight = rows(recorder, weights, order, routed)
        values = one_by_one(recorder, picked, joint, down, weight, routed * down.shape[2], gated=a.gated)
        return added_at(recorder, out, cast(recorder, values, x.width), index)

    def _biases(self, bias: Parameter | None, index: Tensor) -> Tensor | None:
        """The bias of each row's expert."""
        return rows(self.context.recorder, bias, index, index.n * bias.shape[1]) if bias is not None else None

    def _activated(self, hidden: Tensor) -> Tensor:
        a, recorder = self.context.setup.architecture, self.context.recorder
        if a.gated and self.context.setup.implementation.gate_up in ("kernel", "compiled"):
            return gated(recorder, hidden)
        if self.context.setup.implementation.gate_up == "clamped":
            return gated_clamped(recorder, hidden)
        if not a.gated:
            return activated(
                recorder, hidden, activation_kind(self.context.setup.implementation.activation, a.activation)
            )
        gate, up = split(recorder, hidden, hidden.n // 2, hidden.n // 2)
        return mul(recorder, activated(recorder, gate, a.activation), up)


def _shared_width(experts: ExpertTraits) -> int:
    return experts.shared * (experts.shared_width or experts.width)


def _reached(context: Context) -> int:
    """Rows that meet a real expert; the others pass an identity."""
    experts = context.setup.architecture.experts
    assert experts is not None
    return round(experts.expected_real or experts.top_k) * context.sizes.bs

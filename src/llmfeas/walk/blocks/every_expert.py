"""Experts that all see every token, times a score that is zero where they were not chosen (Llama 4)."""

from __future__ import annotations

from ...autograd.basic import added_in_place, cast, mul, unary_of_output
from ...autograd.graph import Tensor
from ...autograd.products import linear, stacked_product
from ...autograd.routing import scattered, summed, top
from ...autograd.views import copy, repeated, respread, split
from .activations import activated
from .context import Context
from .feedforward import FeedForward


class EveryExpert:
    """Experts as one batched product over tokens repeated for each of them."""

    __slots__ = ("context", "count", "down", "joint", "router", "shared")

    def __init__(self, context: Context) -> None:
        a = context.setup.architecture
        experts = a.experts
        assert experts is not None
        self.context = context
        self.count = context.setup.recipe.rank_experts or experts.count
        self.joint = context.parameter(self.count, 2 * experts.width, a.hidden)
        self.down = context.parameter(self.count, a.hidden, experts.width)
        self.joint.routed = self.down.routed = True
        self.router = context.parameter(experts.count, a.hidden)
        self.shared: FeedForward | None = None
        if experts.shared:
            self.shared = FeedForward(context, experts.shared * (experts.shared_width or experts.width), streams=False)

    def __call__(self, x: Tensor) -> Tensor:
        """Gather the tokens of this rank's group, run the experts, spread them again."""
        context, recorder = self.context, self.context.recorder
        whole = context.sizes.bs * context.setup.architecture.hidden
        return respread(recorder, self._forward(respread(recorder, x, whole)), x.n)

    def _forward(self, x: Tensor) -> Tensor:
        """Score, repeat, run all experts, sum them into the shared one's output."""
        recorder = self.context.recorder
        scores = self._scores(x)
        rows = repeated(recorder, x, self.count)
        rows = mul(recorder, rows, copy(recorder, scores))
        routed = self._routed(rows)
        if self.shared is None:
            return summed(recorder, routed, x.n)
        out = self.shared(x)
        return added_in_place(recorder, out, summed(recorder, routed, out.n))

    def _scores(self, x: Tensor) -> Tensor:
        recorder, a = self.context.recorder, self.context.setup.architecture
        assert a.experts is not None
        logits = linear(recorder, x, self.router)
        values, index = top(recorder, logits, a.experts.top_k * self.context.sizes.bs)
        scores = scattered(recorder, values, index, logits.n)
        return cast(recorder, unary_of_output(recorder, cast(recorder, scores, 4)), logits.width)

    def _routed(self, rows: Tensor) -> Tensor:
        recorder = self.context.recorder
        hidden = stacked_product(recorder, rows, self.joint)
        gate, up = split(recorder, hidden, hidden.n // 2, hidden.n // 2)
        product = mul(recorder, up, activated(recorder, gate, self.context.setup.architecture.activation))
        return stacked_product(recorder, product, self.down)

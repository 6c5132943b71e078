"""Experts that all see every token, times a score that is zero where they were not chosen (Llama 4)."""

from __future__ import annotations

from ..graph import Tensor
from ..operators.basic import added_in_place, cast, mul, unary_of_output
from ..operators.products import linear, stacked_product
from ..operators.routing import scattered, summed, top
from ..operators.views import copy, repeated, respread, split
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
        context, tape = self.context, self.context.tape
        whole = context.sizes.bs * context.setup.architecture.hidden
        return respread(tape, self._forward(respread(tape, x, whole)), x.n)

    def _forward(self, x: Tensor) -> Tensor:
        """Score, repeat, run all experts, sum them into the shared one's output."""
        tape = self.context.tape
        scores = self._scores(x)
        rows = repeated(tape, x, self.count)
        rows = mul(tape, rows, copy(tape, scores))
        routed = self._routed(rows)
        if self.shared is None:
            return summed(tape, routed, x.n)
        out = self.shared(x)
        return added_in_place(tape, out, summed(tape, routed, out.n))

    def _scores(self, x: Tensor) -> Tensor:
        tape, a = self.context.tape, self.context.setup.architecture
        assert a.experts is not None
        logits = linear(tape, x, self.router)
        values, index = top(tape, logits, a.experts.top_k * self.context.sizes.bs)
        scores = scattered(tape, values, index, logits.n)
        return cast(tape, unary_of_output(tape, cast(tape, scores, 4)), logits.width)

    def _routed(self, rows: Tensor) -> Tensor:
        tape = self.context.tape
        hidden = stacked_product(tape, rows, self.joint)
        gate, up = split(tape, hidden, hidden.n // 2, hidden.n // 2)
        product = mul(tape, up, activated(tape, gate, self.context.setup.architecture.activation))
        return stacked_product(tape, product, self.down)

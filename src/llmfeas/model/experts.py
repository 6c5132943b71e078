"""A routed mixture of experts, with shared and identity experts.

Its program: a router, grouped products over the rows that each expert gets, shared experts beside them. Tokens spread
evenly over experts: all sizes follow from the number of routed rows.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Self

from ..autograd.basic import add, added_in_place, cast, mul, unary_of_output, weighed_in_place
from ..autograd.graph import Parameter, Tensor
from ..autograd.products import linear, stacked_product
from ..autograd.routing import added_at, grouped, one_by_one, rows, scattered, summed, top
from ..autograd.views import copy, repeated, respread, split
from ..catalog.architecture import Activation
from ..catalog.implementation import ExpertAdapters, Implementation
from ..record import dataclass, replace
from .activations import activated, activation_kind, gated, gated_clamped
from .context import Context
from .feedforward import FeedForward, FeedForwardProgram
from .merged import Merged, merged_router
from .norm import NormProgram
from .operator import Operator
from .routers import ROUTERS, Routing, what_it_reads
from .weight import Adapter, Weight, column_linear, row_linear, vector

Pair = tuple[Parameter, Parameter]
"""The factors of adapters beside stacked products: into the rank, out of it."""


@dataclass(frozen=True, slots=True)
class RoutedExperts(Operator):
    """Router, `count` experts of which a token reaches `top_k` (`real` of them on average), shared experts.

    Identity experts (`zero`) are routed to, weigh nothing and do nothing: `top_k - real` of a token's choices.
    """

    is_common: ClassVar[bool] = False
    hidden: int
    count: int
    zero: int
    top_k: int
    real: float
    width: int
    shared: int = 0
    shared_width: int | None = None
    """Of each shared expert; None: as wide as a routed one."""
    shared_gate: bool = False
    gated: bool = True
    router_bias: bool = False
    bias: bool = False
    activation: Activation = "silu"
    adapts_router: bool = False
    adapters: ExpertAdapters = "none"
    """Of all-linear: merged into router and experts (and then on no dense feed-forward), beside each expert, or all."""
    fused: bool = False
    """Gate and up of the shared experts are one matrix."""
    latent_width: int = 0
    """The experts work in this width, between two projections; 0: in that of the stream."""
    norms: int = 0
    """Norms around them beyond those of the layer."""
    scales: bool = False
    """The router scales its input, and each expert's output has a scale."""

    @property
    def inner(self) -> int:
        """Width of what the experts read and write."""
        return self.latent_width or self.hidden

    @property
    def routed(self) -> tuple[Weight, ...]:
        """The experts themselves: over expert-parallel ranks, each of them over tensor-parallel ones."""
        halves = 2 if self.gated else 1
        up = halves * self.width
        found = (
            self._expert("expert_up", (up, self.inner), halves),
            self._expert("expert_down", (self.inner, self.width)),
        )
        if not self.bias:
            return found
        return (*found, self._expert("expert_up.bias", (up,)), self._expert("expert_down.bias", (self.hidden,)))

    def _expert(self, name: str, shape: tuple[int, ...], pairs: int = 1) -> Weight:
        adapter: Adapter = "stacked" if self.adapters != "none" and len(shape) > 1 else "none"
        pairs = pairs if self.adapters == "merged" else 1
        shared = self.adapters == "shared"
        return Weight(
            name, shape, self.count, self.real, adapter=adapter, split="expert", pairs=pairs, shares_pair=shared
        )

    @property
    def router(self) -> tuple[Weight, ...]:
        """One row for each real and each identity expert, whole on every rank."""
        choices = self.count + self.zero
        if self.adapts_router:
            return column_linear("router", self.hidden, choices, split="none")
        adapter: Adapter = "stacked" if self.adapters == "merged" else "none"
        matrix = Weight("router", (choices, self.hidden), adapter=adapter, split="none")
        return (matrix, vector("router.bias", choices)) if self.router_bias else (matrix,)

    @property
    def around(self) -> tuple[Weight, ...]:
        """Projections into the experts' width and out of it, and what norms and scales there are beyond a layer's."""
        found: tuple[Weight, ...] = ()
        if self.latent_width:
            found += column_linear("latent_in", self.hidden, self.latent_width)
            found += row_linear("latent_out", self.latent_width, self.hidden)
        found += tuple(vector(f"expert_norm_{place}", self.hidden) for place in range(self.norms))
        if self.scales:
            found += (vector("router.scale", self.hidden), vector("expert_scales", self.count))
        return found

    @property
    def shared_expert(self) -> FeedForward | None:
        """Experts that every token passes through, as one feed-forward."""
        width = self.shared * (self.shared_width or self.width)
        if not width:
            return None
        return FeedForward(
            self.hidden,
            width,
            self.gated,
            fused=self.fused,
            activation=self.activation,
            adapts=self.adapters != "merged",
        )

    @property
    def gate(self) -> tuple[Weight, ...]:
        """Of the shared experts."""
        return column_linear("shared_gate", self.hidden, 1) if self.shared and self.shared_gate else ()

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Router, routed experts, shared experts."""
        shared = self.shared_expert
        return self.router + self.around + self.routed + (shared.weights if shared else ()) + self.gate

    def pass_bytes(self, tokens: int, seen: int, sequences: int, width: float) -> float:
        """Rows of the experts with what is between their products, or those rows and their sum in fp32."""
        t = tokens * sequences
        rows, shared = t * self.real, self.shared_expert
        inner = rows * (self.hidden + 3 * self.width) * width
        outer = rows * self.hidden * (width + 8)
        return max(inner, outer, 3 * t * (shared.width if shared else 0) * width)

    @property
    def stream_width(self) -> float:
        """3 of each tensor between the products of the experts that a token reaches, and of the shared ones."""
        shared = self.shared_expert
        return 3 * (2 if self.gated else 1) * self.real * self.width + (shared.stream_width if shared else 0)

    @property
    def tail(self) -> Weight | None:
        """The shared experts' `down` if no gate follows; routing weights follow the routed experts."""
        shared = self.shared_expert
        return None if shared is None or self.shared_gate else shared.tail

    @property
    def reached(self) -> tuple[float, float, float]:
        """Of the experts, and on average only those that are no identity."""
        one = sum(weight.elements for weight in self.routed) / self.count
        fewest, most = max(0, self.top_k - self.zero), min(self.top_k, self.count)
        return fewest * one, self.real * one, most * one

    def on_rank(self, tp: int, expert_tp: int) -> Self:
        """Its part of each expert's width; shared experts without a width of their own divide as routed ones."""
        shared = None if self.shared_width is None else -(-self.shared_width // tp)
        return replace(self, width=-(-self.width // expert_tp), shared_width=shared)

    def laid_out(self, traits: Implementation) -> Self:
        """With adapters on stacked experts or none, shared gate and up in one matrix or two."""
        fused, adapts_router = traits.gate_up == "joint", traits.adapts_router
        return replace(self, adapters=traits.expert_adapters, adapts_router=adapts_router, fused=fused)

    def program(self, context: Context) -> ExpertsProgram:
        """The experts as the implementation runs them: on the rows of each, or all of them on every token."""
        kind = EveryExpertProgram if context.traits.every_expert else ExpertsProgram
        return kind(context, self)


class ExpertsProgram:
    """Router, grouped products of the chosen experts, shared experts."""

    __slots__ = (
        "adapters",
        "apart",
        "around",
        "beside",
        "context",
        "down",
        "joint",
        "made",
        "norms",
        "operator",
        "product",
        "router",
        "shared",
        "shared_gate",
    )

    def __init__(self, context: Context, operator: RoutedExperts) -> None:
        made = context.made(operator.router + operator.around + operator.routed + operator.gate)
        self.around = made.projections
        self.context = context
        self.operator = operator
        self.apart = context.apart
        self.made = made.parameters
        places = (self.made[f"expert_norm_{place}"] for place in range(operator.norms))
        self.norms = [NormProgram(operator.hidden, weight, None, context.traits.norm) for weight in places]
        """Behind a dense feed-forward beside them, before them, behind them; a single one behind them."""
        layer = made.projections.get("router")
        self.product = None if layer is None else partial(context.apply, layer)
        self.router = self.made["router"] if layer is None else layer.weight
        self.joint, self.down = self.made["expert_up"], self.made["expert_down"]
        self.joint.packed = self.down.packed = context.recipe.packs_stacks
        self.shared_gate = made.projections.get("shared_gate")
        shared = operator.shared_expert
        self.shared = shared.program(context, streams=False) if shared else None
        if context.traits.router == "sigmoid":
            # The correction of each expert's score is a buffer.
            context.buffers.append(context.recorder.new(operator.count, 4))
        self.adapters, self.beside = self._adapters(), self._beside()

    def _beside(self) -> tuple[Pair, Pair] | None:
        """Adapters of joint and down that run beside the experts' own products: one an expert, or one for all."""
        rank, how = self.context.rank, self.operator.adapters
        if not (rank and self.context.recipe.adapt_mlp) or how not in ("each", "shared"):
            return None
        count = self.joint.shape[0] if how == "each" else 1

        def pair(weight: Parameter) -> Pair:
            low = self.context.adapter(count, rank, weight.shape[2])
            high = self.context.adapter(count, weight.shape[1], rank)
            low.routed = high.routed = True
            return low, high

        return pair(self.joint), pair(self.down)

    def _adapters(self) -> tuple[Merged, Merged, Merged] | None:
        """Adapters of down, joint and router, where the adapter library reaches stacked weights."""
        context, rank = self.context, self.context.rank
        if not (rank and context.recipe.adapt_mlp and self.operator.adapters == "merged"):
            return None
        ranks = ((self.down, rank), (self.joint, (2 if self.operator.gated else 1) * rank), (self.router, rank))
        down, joint, router = (Merged(context, weight, each) for weight, each in ranks)
        return down, joint, router

    def __call__(self, x: Tensor) -> Tensor:
        """Gather the tokens of the ranks that share experts, route them, spread them; ranks apart route their own."""
        whole = self.context.sizes.bs * (self.operator.hidden // self.apart)
        recorder = self.context.recorder
        return respread(recorder, self._forward(respread(recorder, x, whole)), x.n)

    def _forward(self, x: Tensor) -> Tensor:
        """Route, run the experts, weigh and sum, add the shared ones."""
        context, recorder = self.context, self.context.recorder
        router = merged_router(recorder, self.adapters[2]) if self.adapters else self.router
        chosen = -(-self.operator.top_k // self.apart) * context.sizes.bs
        read = what_it_reads(recorder, x, self.operator.hidden, self.made.get("router.scale"))
        routing = Routing(recorder, router, self.made.get("router.bias"), read, context.sizes.bs, chosen, self.product)
        del read
        weights, index = ROUTERS[context.traits.router](routing)
        if self.operator.scales:
            weights = mul(recorder, weights, rows(recorder, self.made["expert_scales"], index, chosen))
        x = self.norms[1](recorder, x) if len(self.norms) > 1 else x
        weights = cast(recorder, weights, x.width) if self.weighs_early else weights
        inner = self.context.apply(self.around["latent_in"], x) if self.operator.latent_width else x
        out = self._routed(inner, weights, index)
        if self.operator.latent_width:
            out = self.context.apply(self.around["latent_out"], out)
        out = self.norms[-1](recorder, out) if self.norms else out
        return out if self.shared is None else add(recorder, out, self._shared(self.shared, x))

    def _shared(self, shared: FeedForwardProgram, x: Tensor) -> Tensor:
        """The shared experts, which tensor-parallel ranks divide, so that each of them sees all tokens."""
        recorder, whole = self.context.recorder, self.context.sizes.bs * self.operator.hidden
        out = respread(recorder, shared(respread(recorder, x, whole)), x.n)
        if self.shared_gate is None:
            return out
        return mul(recorder, unary_of_output(recorder, self.context.apply(self.shared_gate, x)), out)

    def _routed(self, x: Tensor, weights: Tensor, index: Tensor) -> Tensor:
        """Rows in the order of their experts, through gate, up and down, back into the order of tokens."""
        hidden_width, recorder = self.operator.inner, self.context.recorder
        # The others pass an identity.
        routed = min(weights.n, -(-round(self.operator.real) // self.apart) * self.context.sizes.bs)
        factors = [adapter.factors() for adapter in self.adapters[:2]] if self.adapters else []
        if self.context.traits.experts_one_by_one:
            return self._one_by_one(x, weights, routed, factors)
        sorted_index, order = recorder.new(routed, 8), recorder.new(routed, 8)
        picked = rows(recorder, x, recorder.new(routed, 8), routed * hidden_width)
        weight = rows(recorder, weights, order, routed)
        offsets = recorder.new(self.operator.count, 4)
        joint = self.adapters[1].merged(factors[1]) if self.adapters else self.joint
        added = self._biases("expert_up.bias", sorted_index)
        hidden = self._grouped(cast(recorder, picked, joint.width), joint, offsets, routed, 0)
        if added is not None:
            hidden = added_in_place(recorder, hidden, added)
        hidden = self._activated(hidden)
        if self.weighs_early:
            hidden = weighed_in_place(recorder, hidden, weight)
        added = self._biases("expert_down.bias", sorted_index)
        down = self.adapters[0].merged(factors[0]) if self.adapters else self.down
        hidden = self._grouped(cast(recorder, hidden, down.width), down, offsets, routed, 1)
        if added is not None:
            hidden = added_in_place(recorder, hidden, added)
        weighted = hidden if self.weighs_early else self._weighed(hidden, weight)
        weighted = rows(recorder, weighted, recorder.new(routed, 8), routed * hidden_width)
        out = summed(recorder, weighted, x.n)
        del sorted_index, index
        return cast(recorder, out, x.width)

    @property
    def weighs_early(self) -> bool:
        """Whether a kernel between the products weighs the rows."""
        return self.context.traits.gate_up == "kernel" and not self.context.traits.weighs_late

    def _weighed(self, hidden: Tensor, weight: Tensor) -> Tensor:
        """Rows of experts' outputs times their scores, whose type prevails where they are weighed late."""
        recorder = self.context.recorder
        if not self.context.traits.weighs_late:
            return mul(recorder, hidden, weight)
        return cast(recorder, mul(recorder, cast(recorder, hidden, weight.width), weight), hidden.width)

    def _grouped(self, x: Tensor, weight: Parameter, offsets: Tensor, reached: int, which: int) -> Tensor:
        """Each row times the matrix of its expert, and times the adapters beside it (0: of joint, 1: of down)."""
        recorder = self.context.recorder
        out = grouped(recorder, x, weight, offsets, reached * weight.shape[1])
        if self.beside is None:
            return out
        low, high = self.beside[which]
        inner = grouped(recorder, cast(recorder, x, low.width), low, offsets, reached * low.shape[1])
        beside = grouped(recorder, inner, high, offsets, reached * high.shape[1])
        return add(recorder, out, cast(recorder, beside, out.width))

    def _one_by_one(self, x: Tensor, weights: Tensor, routed: int, factors: list[tuple[Tensor, Tensor]]) -> Tensor:
        """A loop over experts, each on its rows, added into the result (LongCat)."""
        recorder, gated_too = self.context.recorder, self.operator.gated
        joint = self.adapters[1].merged(factors[1]) if self.adapters else self.joint
        down = self.adapters[0].merged(factors[0]) if self.adapters else self.down
        out = recorder.new(x.n, x.width)
        _chosen = recorder.new(weights.n * self.router.shape[0], 8)
        index, order = recorder.new(routed, 8), recorder.new(routed, 8)
        picked = rows(recorder, x, index, routed * self.operator.inner)
        weight = rows(recorder, weights, order, routed)
        values = one_by_one(recorder, picked, joint, down, weight, routed * down.shape[2], gated=gated_too)
        return added_at(recorder, out, cast(recorder, values, x.width), index)

    def _biases(self, name: str, index: Tensor) -> Tensor | None:
        """The bias of each row's expert."""
        bias = self.made.get(name)
        return rows(self.context.recorder, bias, index, index.n * bias.shape[1]) if bias is not None else None

    def _activated(self, hidden: Tensor) -> Tensor:
        recorder, traits, activation = self.context.recorder, self.context.traits, self.operator.activation
        if self.operator.gated and traits.gate_up in ("kernel", "compiled"):
            return gated(recorder, hidden)
        if traits.gate_up == "clamped":
            return gated_clamped(recorder, hidden)
        if not self.operator.gated:
            return activated(recorder, hidden, activation_kind(traits.activation, activation))
        gate, up = split(recorder, hidden, hidden.n // 2, hidden.n // 2)
        return mul(recorder, activated(recorder, gate, activation), up)


class EveryExpertProgram(ExpertsProgram):
    """Experts that all see every token, times a score that is zero where they were not chosen (Llama 4), as one batched
    product over tokens repeated for each of them.
    """

    __slots__ = ()

    def _forward(self, x: Tensor) -> Tensor:
        """Score, repeat, run all experts, sum them into the shared one's output."""
        recorder = self.context.recorder
        scores = self._scores(x)
        repeats = repeated(recorder, x, self.joint.shape[0])
        repeats = mul(recorder, repeats, copy(recorder, scores))
        routed = self._products(repeats)
        if self.shared is None:
            return summed(recorder, routed, x.n)
        out = self.shared(x)
        return added_in_place(recorder, out, summed(recorder, routed, out.n))

    def _scores(self, x: Tensor) -> Tensor:
        recorder = self.context.recorder
        logits = linear(recorder, x, self.router)
        values, index = top(recorder, logits, self.operator.top_k * self.context.sizes.bs)
        scores = scattered(recorder, values, index, logits.n)
        return cast(recorder, unary_of_output(recorder, cast(recorder, scores, 4)), logits.width)

    def _products(self, repeats: Tensor) -> Tensor:
        recorder = self.context.recorder
        hidden = stacked_product(recorder, repeats, self.joint)
        gate, up = split(recorder, hidden, hidden.n // 2, hidden.n // 2)
        product = mul(recorder, up, activated(recorder, gate, self.operator.activation))
        return stacked_product(recorder, product, self.down)

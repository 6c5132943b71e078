"""What every program works with: recorder, sizes, traits, and the parameters that it makes of an operator's weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..autograd.basic import add, cast, copied, dropout, mul, scaled
from ..autograd.graph import AccumulateGrad, Parameter, Tensor, view
from ..autograd.products import integer_product, linear
from ..autograd.recorder import Recorder
from ..autograd.rules import made as full
from ..autograd.storage import WEIGHTS, Sizes
from ..record import compact, dataclass
from .setup import Setup
from .weight import LoraTargets, Weight

_ADAPTED_ANYWAY = frozenset(("relative", "project_in", "project_out", "ngram_projection"))
"""Projections that a walk adapts whatever the targets, though no count of adapters does."""


class Linear:
    """A projection, with LoRA adapters where the recipe adapts it."""

    __slots__ = ("beside", "bias", "down", "magnitude", "ranks", "scale", "scales_input", "up", "weight")

    def __init__(self, weight: Parameter, bias: Parameter | None) -> None:
        self.weight = weight
        self.bias = bias
        self.down: Parameter | None = None
        self.up: Parameter | None = None
        self.magnitude: Parameter | None = None
        self.scale: Parameter | None = None
        """Learned numbers that multiply its output."""
        self.scales_input = False
        """They multiply its input."""
        self.beside: tuple[Linear, Linear] | None = None
        """A low-rank pair of the model itself, of the layer that runs it."""
        self.ranks = 1
        """Sequence-parallel ranks that an adapted projection itself gathers from (negative: scatters to)."""


@dataclass(frozen=True, slots=True)
@compact
class Made:
    """What was made of an operator's weights, by their names."""

    projections: dict[str, Linear]
    """With their biases, which have no name of their own here."""
    parameters: dict[str, Parameter]


class Context:
    """One model under one recipe on one recorder."""

    __slots__ = (
        "adapts",
        "bare",
        "buffers",
        "cache",
        "lends",
        "place",
        "recipe",
        "recorder",
        "setup",
        "shared",
        "sizes",
        "traits",
        "weights",
    )

    def __init__(self, recorder: Recorder, setup: Setup, cache: list[Tensor] | None = None) -> None:
        self.recorder = recorder
        self.setup = setup
        self.recipe = setup.recipe
        self.traits = setup.implementation
        self.sizes = recorder.sizes
        self.adapts = True
        """Adapters are switched on."""
        self.bare = setup.recipe.bare_layers > 0
        """What is being made gets no adapters."""
        self.buffers: list[Tensor] = []
        self.weights: list[Parameter] = []
        self.shared: dict[tuple[int, int], Any] = {}
        """Programs that several layers run, by set of weights and place in the layer."""
        self.lends = False
        """The layer that is being made lends its keys and values to later ones."""
        self.place = 0
        """Layer whose weights are being made, from 1; 0 outside the layers."""
        self.cache = cache
        """Keys and values kept for decoding; None: nothing is kept (training)."""

    def sized(self, sizes: Sizes) -> Context:
        """The same with other lengths: what another stream has."""
        twin = object.__new__(Context)
        for name in Context.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.sizes = sizes
        return twin

    def enter_layer(self, index: int) -> None:
        """What is made from now on is of layer `index` of the model."""
        architecture = self.setup.architecture
        self.bare = index % architecture.own_layers < self.recipe.bare_layers
        self.lends = index in architecture.lenders

    def cached(self, x: Tensor) -> Tensor:
        """Keys or values as the cache holds them: joined to what it had, in a tensor of its own."""
        if self.cache is None:
            return x
        joined = self.recorder.new(x.n, x.width, component=WEIGHTS)
        joined.heads_first = True
        self.cache.append(joined)
        return joined

    def input_leaf(self, x: Tensor) -> AccumulateGrad:
        """What lets an input need a gradient, which stays until the step ends."""
        leaf = AccumulateGrad(x.storage)
        self.recorder.leaves.append(leaf)
        return leaf

    @property
    def whole_chunks(self) -> int:
        """Tokens of all sequences with those that fill up their last chunks."""
        return self.sizes.bs + self.recipe.filled * self.sizes.b

    @property
    def ranks(self) -> int:
        """Sequence-parallel ranks that the stream is spread over."""
        return self.recipe.tp if self.recipe.sequence_parallel else 1

    @property
    def apart(self) -> int:
        """Parts of a sequence whose tokens ranks send to experts apart from each other: those that share none."""
        return self.recipe.tp // self.recipe.expert_tp if self.recipe.sequence_parallel else 1

    @property
    def stream(self) -> int:
        """Elements of the stream on this rank."""
        return self.sizes.bs * (self.setup.architecture.hidden // self.ranks)

    # parameters

    def made(self, weights: Iterable[Weight], *, streams: bool = False) -> Made:
        """Parameters of an operator: stacked experts as many as this rank holds, projections with their adapters.

        `streams`: the operator reads the residual stream and writes into it.
        """
        weights = tuple(weights)
        names = {weight.name for weight in weights}
        made = Made({}, {})
        for weight in weights:
            if weight.projects or weight.name in _ADAPTED_ANYWAY:
                made.projections[weight.name] = self._projection(weight, f"{weight.name}.bias" in names, streams)
            elif weight.copies and weight.name.removesuffix(".bias") not in made.projections:
                made.parameters[weight.name] = self._parameter(weight)
        return made

    def _parameter(self, weight: Weight) -> Parameter:
        routed = weight.split == "expert"
        stack = (self.recipe.rank_experts or weight.copies,) if routed else ()
        trains = not (self.recipe.adapters or weight.frozen)
        made = self._registered((*stack, *weight.shape), self.recipe.weight_bytes, trains)
        made.routed = routed and weight.is_matrix
        return made

    def _registered(self, shape: tuple[int, ...], width: int, trains: bool) -> Parameter:
        weight = self.recorder.parameter(shape, width=width, trains=trains)
        weight.place = self.place
        self.weights.append(weight)
        return weight

    @property
    def rank(self) -> int:
        """Of the low-rank pairs beside what is being made; 0: there are none."""
        return 0 if self.bare or not self.recipe.kind.pairs else self.recipe.adapters

    def adapter(self, *shape: int) -> Parameter:
        """A low-rank factor, always trained: fp32, or in the type of the model where it is part of it."""
        native = self.traits.adapters in ("parallel", "native")
        return self._registered(shape, self.recipe.weight_bytes if native else 4, True)

    def _projection(self, weight: Weight, bias: bool, streams: bool) -> Linear:
        recipe, (n_out, n_in) = self.recipe, weight.shape
        width = 1 if recipe.narrow_frozen else recipe.unpacked_bytes if recipe.quantized else recipe.weight_bytes
        made = self._registered((n_out, n_in), width, not recipe.adapters)
        made.packed = recipe.quantized
        made.shared = not self.traits.transposes_weights
        layer = Linear(made, self._registered((n_out,), width, not recipe.adapters) if bias else None)
        reads, writes = streams and not weight.inner, streams and weight.rows
        made.ranks = self.ranks if reads else -self.ranks if writes and self.ranks > 1 else 1
        targets: LoraTargets = "all-linear" if recipe.adapt_mlp else "attention"
        side = weight.scaled_side(targets) if recipe.adapters and recipe.kind.scales else ""
        if side:
            layer.scale, layer.scales_input = self.adapter(n_in if side == "in" else n_out), side == "in"
        if not self.rank or not (weight.takes_adapter(targets) or weight.name in _ADAPTED_ANYWAY):
            return layer
        if self.traits.adapters != "parallel":
            layer.down, layer.up = self.adapter(recipe.adapters, n_in), self.adapter(n_out, recipe.adapters)
            layer.magnitude = self.adapter(n_out) if recipe.kind.magnitudes else None
            return layer
        # Each factor is divided where the projection is not (ParallelLinearAdapter).
        first = -(-recipe.adapters // recipe.tp) if reads else recipe.adapters
        last = -(-n_out // recipe.tp) if writes else n_out
        layer.down, layer.up = self.adapter(first, n_in), self.adapter(last, recipe.adapters)
        layer.ranks, made.ranks = made.ranks, min(made.ranks, 1)
        return layer

    # programs

    def apply(self, layer: Linear, x: Tensor) -> Tensor:
        """Run a projection. The caller's argument stays referred to, as a module call does."""
        recorder = self.recorder
        if layer.beside is not None:
            (first, last), layer.beside = layer.beside, None
            y = self.apply(layer, x)
            return add(recorder, y, self.apply(last, self.apply(first, x)))
        if layer.scale is not None and self.adapts:
            return self._multiplied(layer, layer.scale, x)
        if layer.down is None or layer.up is None or not self.adapts:
            return self._on_base(layer, x)
        if self.traits.adapters == "kernel":
            from ..autograd.adapted import adapted_linear

            return adapted_linear(recorder, x, (layer.weight, layer.down, layer.up))
        if self.traits.adapters == "parallel":
            from ..autograd.adapted import adapted_over_ranks

            return adapted_over_ranks(recorder, x, (layer.weight, layer.down, layer.up), layer.bias, layer.ranks)
        y = self._on_base(layer, x)
        packed = layer.weight.packed
        # Beside a base in few bits autocast alone chooses the types; a compiler sees that the fp32 copy is only read in
        # 2 bytes again.
        kept = self.traits.adapters == "native" or (recorder.autocast and (packed or recorder.compiled))
        wide = x if kept else cast(recorder, x, 4)
        if layer.magnitude is not None:
            from ..autograd.decomposed import decomposed

            adapted = layer.weight, layer.down, layer.up, layer.magnitude
            return cast(recorder, decomposed(recorder, wide, y, adapted, self.recipe.adapter_dropout), y.width)
        z = linear(recorder, dropout(recorder, wide, self.recipe.adapter_dropout), layer.down)
        z = scaled(recorder, linear(recorder, z, layer.up))
        if packed and not recorder.autocast:
            z = cast(recorder, z, y.width)
        z = add(recorder, y, z)
        return cast(recorder, z, y.width)

    def given(self, out: Tensor) -> Tensor:
        """What attention gave, whose one-byte copy is kept unless it is made again from what its backward keeps."""
        if self.traits.narrows_again:
            out.narrow = view(out.storage, out.n, out.width)
        return out

    @property
    def learns_keys(self) -> bool:
        """Whether learned keys and values stand before those of the text."""
        return bool(self.recipe.adapters) and self.recipe.kind.virtual == "cache" and self.adapts

    def learned_keys(self, width: int) -> Parameter | None:
        """Make the learned keys and values of a layer, so wide together; None where none are learned."""
        return self.adapter(self.recipe.virtual_tokens, width) if self.learns_keys else None

    def behind_learned(self, part: Tensor, learned: Parameter | None) -> Tensor:
        """Keys or values behind those that are learned, which are few and take no room in the tensor of both."""
        if learned is None or not self.adapts:
            return part
        whole = self.recorder.new(part.n, part.width, self.recorder.open(full, (learned, part)))
        whole.heads_first = True
        return whole

    def _multiplied(self, layer: Linear, scale: Parameter, x: Tensor) -> Tensor:
        """Run a projection and multiply what it gives, or what it reads, in fp32 (peft's tuners/ia3/layer.py)."""
        recorder = self.recorder
        if layer.scales_input:
            wide = mul(recorder, cast(recorder, x, 4), scale)
            return self._on_base(layer, cast(recorder, wide, x.width))
        y = self._on_base(layer, x)
        return cast(recorder, mul(recorder, y, scale), y.width)

    def _on_base(self, layer: Linear, x: Tensor) -> Tensor:
        """Run the base of a projection. One in few bits computes in the type that it is unpacked to, gives the type of
        its input, and adapters work on a copy of what it gives (bitsandbytes, and peft's layer over it).
        """
        recorder, weight = self.recorder, layer.weight
        if not weight.packed:
            return linear(recorder, x, weight, layer.bias)
        if self.recipe.integers:
            return integer_product(recorder, x, weight)
        narrow = cast(recorder, x, weight.width)
        y = cast(recorder, linear(recorder, narrow, weight, layer.bias), x.width)
        del narrow
        return y if layer.down is None or recorder.compiled else copied(recorder, y)

"""What every block program works with: recorder, sizes, widths, and the layers that hold weights."""

from __future__ import annotations

from dataclasses import field

from ...autograd.adapted import adapted_linear, adapted_over_ranks
from ...autograd.basic import add, cast, copied, dropout, scaled
from ...autograd.graph import AccumulateGrad, Parameter, Tensor
from ...autograd.products import linear
from ...autograd.recorder import Recorder
from ...autograd.storage import WEIGHTS, Sizes
from ...model.setup import Setup
from ...record import dataclass


class Linear:
    """A projection, with LoRA adapters where the recipe adapts it."""

    __slots__ = ("bias", "down", "n_in", "n_out", "ranks", "up", "weight")

    def __init__(self, weight: Parameter, bias: Parameter | None, down: Parameter | None, up: Parameter | None) -> None:
        self.n_out, self.n_in = weight.shape
        self.weight = weight
        self.bias = bias
        self.down = down
        self.up = up
        self.ranks = 1
        """Sequence-parallel ranks that an adapted projection itself gathers from (negative: scatters to)."""


@dataclass(slots=True)
class Context:
    """One model under one recipe on one recorder."""

    recorder: Recorder
    setup: Setup
    buffers: list[Tensor] = field(default_factory=list)
    weights: list[Parameter] = field(default_factory=list)
    place: int = 0
    """Layer whose weights are being made, from 1; 0 outside the layers."""
    cache: list[Tensor] | None = None
    """Keys and values kept for decoding; None: nothing is kept (training)."""

    @property
    def sizes(self) -> Sizes:
        """Lengths of the walk."""
        return self.recorder.sizes

    def cached(self, x: Tensor) -> Tensor:
        """Give keys or values as the cache holds them: joined to what it had, in a tensor of its own."""
        if self.cache is None:
            return x
        joined = self.recorder.new(x.n, x.width, component=WEIGHTS)
        joined.heads_first = True
        self.cache.append(joined)
        return joined

    def input_leaf(self, x: Tensor) -> AccumulateGrad:
        """Let an input need a gradient, which stays until the step ends."""
        leaf = AccumulateGrad(x.storage)
        self.recorder.leaves.append(leaf)
        return leaf

    def parameter(self, *shape: int) -> Parameter:
        """A weight of the base model."""
        recipe = self.setup.recipe
        return self._registered(shape, recipe.weight_bytes, not recipe.adapters)

    def _registered(self, shape: tuple[int, ...], width: int, trains: bool) -> Parameter:
        weight = self.recorder.parameter(shape, width=width, trains=trains)
        weight.place = self.place
        self.weights.append(weight)
        return weight

    def adapter(self, *shape: int) -> Parameter:
        """A low-rank factor, always trained: fp32, or in the type of the model where it is part of it."""
        parallel = self.setup.implementation.adapters == "parallel"
        return self._registered(shape, self.setup.recipe.weight_bytes if parallel else 4, True)

    @property
    def ranks(self) -> int:
        """Sequence-parallel ranks that the stream is spread over."""
        recipe = self.setup.recipe
        return recipe.tp if recipe.sequence_parallel else 1

    @property
    def stream(self) -> int:
        """Elements of the stream on this rank."""
        return self.sizes.bs * (self.setup.architecture.hidden // self.ranks)

    def linear(
        self,
        n_in: int,
        n_out: int,
        *,
        bias: bool = False,
        adapt: bool = True,
        reads: bool = False,
        writes: bool = False,
    ) -> Linear:
        """A projection's weights; `reads` or `writes` the stream."""
        recipe = self.setup.recipe
        width = 1 if recipe.narrow_frozen else recipe.unpacked_bytes if recipe.quantized else recipe.weight_bytes
        weight = self._registered((n_out, n_in), width, not recipe.adapters)
        weight.packed = recipe.quantized
        weight.shared = not self.setup.implementation.transposes_weights
        vector = self._registered((n_out,), width, not recipe.adapters) if bias else None
        ranks = (self.ranks if reads else -self.ranks) if self.ranks > 1 and (reads or writes) else 1
        rank = recipe.adapters
        if not (rank and adapt):
            weight.ranks = ranks
            return Linear(weight, vector, None, None)
        if self.setup.implementation.adapters != "parallel":
            weight.ranks = ranks
            return Linear(weight, vector, self.adapter(rank, n_in), self.adapter(n_out, rank))
        # Each factor is divided where the projection is not (ParallelLinearAdapter).
        first, last = -(-rank // recipe.tp) if reads else rank, -(-n_out // recipe.tp) if writes else n_out
        layer = Linear(weight, vector, self.adapter(first, n_in), self.adapter(last, rank))
        layer.ranks, weight.ranks = ranks, min(ranks, 1)
        return layer

    def apply(self, layer: Linear, x: Tensor) -> Tensor:
        """Run a projection. The caller's argument stays referred to, as a module call does."""
        recorder = self.recorder
        if layer.down is None or layer.up is None:
            return self._on_base(layer, x)
        if self.setup.implementation.adapters == "kernel":
            return adapted_linear(recorder, x, (layer.weight, layer.down, layer.up))
        if self.setup.implementation.adapters == "parallel":
            return adapted_over_ranks(recorder, x, (layer.weight, layer.down, layer.up), layer.bias, layer.ranks)
        y = self._on_base(layer, x)
        packed = layer.weight.packed
        # Beside a base in few bits autocast alone chooses the types; a compiler sees that the fp32 copy is only read in
        # 2 bytes again.
        wide = x if recorder.autocast and (packed or recorder.compiled) else cast(recorder, x, 4)
        z = linear(recorder, dropout(recorder, wide, self.setup.recipe.adapter_dropout), layer.down)
        z = scaled(recorder, linear(recorder, z, layer.up))
        if packed and not recorder.autocast:
            z = cast(recorder, z, y.width)
        z = add(recorder, y, z)
        return cast(recorder, z, y.width)

    def _on_base(self, layer: Linear, x: Tensor) -> Tensor:
        """Run the base of a projection. One in few bits computes in the type that it is unpacked to, gives the type of
        its input, and adapters work on a copy of what it gives (bitsandbytes, and peft's layer over it).
        """
        recorder, weight = self.recorder, layer.weight
        if not weight.packed:
            return linear(recorder, x, weight, layer.bias)
        narrow = cast(recorder, x, weight.width)
        y = cast(recorder, linear(recorder, narrow, weight, layer.bias), x.width)
        del narrow
        return y if layer.down is None or recorder.compiled else copied(recorder, y)

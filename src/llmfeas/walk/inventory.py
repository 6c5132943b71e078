"""The weights of one rank, summed up as far as optimizers and sharding ask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ..autograd.storage import BLOCK_BYTES, EXPERTS, with_experts
from ..optimizers import BLOCK_SIDE, LONGEST_SIDE, TrainedWeights
from ..record import compact, dataclass

SMALL_TENSOR = 4096
"""8-bit optimizers keep full states of tensors below this many elements."""


@dataclass(frozen=True, slots=True)
@compact
class RankWeight:
    """A weight of a rank, as a walk leaves it."""

    shape: tuple[int, ...]
    width: int
    """Bytes of an element."""
    place: int
    """Where it stands in the walk: layer i + 1, those of an encoder first; 0 outside the layers."""
    routed: bool
    """Belongs to routed experts."""
    trains: bool
    gradient: int
    """Packed bytes of the gradient that stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory(TrainedWeights):
    """Counts over all weights, beside those over the ones that train, in elements."""

    elements: int = 0
    expert_elements: int = 0
    layer_elements: int = 0
    """Elements of the largest layer."""
    outside_elements: int = 0
    """Elements outside the layers."""


Alike = tuple[tuple[int, ...], int, int, int, bool]
"""Weights that are alike: their shape, bytes of an element, elements of one, number, and whether they lie outside."""


@dataclass(frozen=True, slots=True)
@compact
class WeightKind:
    """The weights of a walk that are alike, and the places where they stand."""

    shape: tuple[int, ...]
    width: int
    """Bytes of an element."""
    routed: bool
    trains: bool
    outside: bool
    """They stand outside the layers."""
    places: tuple[int, ...]
    times: int
    """How many there are in the stage."""

    def shape_with(self, experts: int) -> tuple[int, ...]:
        """Their shape on a rank with so many experts."""
        if max(self.shape) < EXPERTS:
            return self.shape
        return tuple(with_experts(extent, experts) for extent in self.shape)


@dataclass(frozen=True, slots=True)
class StageWeights:
    """All weights of a stage, for any number of experts."""

    kinds: tuple[WeightKind, ...]
    trained_width: int
    """Bytes of an element of the last one that trains."""

    def rounded(self, experts: int) -> bool:
        """Whether blocks of the allocator hide what one expert takes."""
        counted = (kind for kind in self.kinds if max(kind.shape) >= EXPERTS)
        return any(2 * prod(kind.shape_with(experts)) % BLOCK_BYTES for kind in counted)


def stage_weights(weights: Iterable[RankWeight], layers: Sequence[int]) -> StageWeights:
    """Gather the weights of a walk by kind; `layers`: how many each of the walked ones stands for."""
    places: dict[tuple[tuple[int, ...], int, bool, bool, bool], list[int]] = {}
    last = 4
    for weight in weights:
        kind = weight.shape, weight.width, weight.routed, weight.trains, weight.place == 0
        places.setdefault(kind, []).append(weight.place)
        last = weight.width if weight.trains else last
    kinds = (
        WeightKind(*kind, tuple(at), sum(layers[place - 1] if place > 0 else 1 for place in at))
        for kind, at in places.items()
    )
    return StageWeights(tuple(kinds), last)


def inventory_of(weights: StageWeights, experts: int = 0) -> Inventory:
    """The sums over weights of a rank with so many experts."""
    per_layer: dict[int, int] = {0: 0}
    elements = routed = trained_experts = 0
    trained: list[Alike] = []
    for kind in weights.kinds:
        shape, times = kind.shape_with(experts), kind.times
        one = prod(shape)
        for place in kind.places:
            per_layer[place] = per_layer.get(place, 0) + one
        elements += one * times
        routed += one * times if kind.routed else 0
        if kind.trains:
            trained.append((shape, kind.width, one, times, kind.outside))
            trained_experts += one * times if kind.routed else 0
    beside = per_layer.pop(0)
    return Inventory(
        elements=elements,
        expert_elements=routed,
        layer_elements=max(per_layer.values(), default=0),
        outside_elements=beside,
        trained_experts=trained_experts,
        trained_width=weights.trained_width,
        **_trained(trained),
    )


def _trained(weights: Sequence[Alike]) -> dict[str, int]:
    """The sums over weights that train."""
    return {
        "trained": sum(one * times for _, _, one, times, _ in weights),
        "trained_bytes": sum(
            -(-one * width // BLOCK_BYTES) * BLOCK_BYTES * times for _, width, one, times, _ in weights
        ),
        "trained_tensors": sum(times for _, _, _, times, _ in weights),
        "trained_small": sum(one * times for _, _, one, times, _ in weights if one < SMALL_TENSOR),
        "largest": max((one for _, _, one, _, _ in weights), default=0),
        **_matrices(weights),
    }


def _matrices(weights: Sequence[Alike]) -> dict[str, int]:
    """The sums over sides of matrices that train."""
    matrices = factored = short = long = squares = iterated = sides = blocks = turned = 0
    for shape, _, one, times, outside in weights:
        n = one * times
        if len(shape) < 2:
            factored += n
            continue
        rows, columns = shape[-2:]
        copies, turning = n // (rows * columns), [side for side in (rows, columns) if side <= LONGEST_SIDE]
        factored += copies * (rows + columns)
        sides += copies * sum(side * side for side in turning)
        blocks += copies * _block_squares(rows, columns)
        turned = max(turned, max(turning, default=0) ** 2 + rows * columns if len(turning) == 2 else 0)
        if outside:
            continue
        matrices += n
        side = min(rows, columns)
        short, long = short + copies * side, long + copies * max(rows, columns)
        squares += copies * side * side
        iterated = max(iterated, 2 * rows * columns + 2 * side * side)
    return {
        "trained_matrices": matrices,
        "factored": factored,
        "short_sides": short,
        "long_sides": long,
        "short_squares": squares,
        "iterated": iterated,
        "side_squares": sides,
        "block_squares": blocks,
        "turned": turned,
    }


def _block_squares(rows: int, columns: int) -> int:
    """Of the blocks of a matrix, the sum of the squares of their sides."""

    def cut(side: int) -> tuple[int, int]:
        whole, rest = divmod(side, BLOCK_SIDE)
        return whole * BLOCK_SIDE**2 + rest**2, whole + bool(rest)

    (tall, down), (wide, across) = cut(rows), cut(columns)
    return tall * across + wide * down

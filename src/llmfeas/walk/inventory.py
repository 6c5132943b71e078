"""The weights of one rank, summed up as far as optimizers and sharding ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import prod

from ..autograd.storage import BLOCK_BYTES
from ..optimizers import BLOCK_SIDE, LONGEST_SIDE, TrainedWeights
from ..record import dataclass

SMALL_TENSOR = 4096
"""8-bit optimizers keep full states of tensors below this many elements."""


@dataclass(frozen=True, slots=True)
class RankWeight:
    """A weight of a rank, as a walk leaves it."""

    shape: tuple[int, ...]
    width: int
    """Bytes of an element."""
    place: int
    """Layer i + 1; 0 outside the layers; -(i + 1) in an encoder before them."""
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


def inventory_of(weights: Iterable[RankWeight], layers: Sequence[int]) -> Inventory:
    """The sums over weights; `layers`: how many layers each of the walked ones stands for."""
    per_layer = Counter[int]()
    elements = routed = 0
    trained: list[tuple[RankWeight, int, int]] = []
    for weight in weights:
        times = layers[weight.place - 1] if weight.place > 0 else 1
        one = prod(weight.shape)
        per_layer[weight.place] += one
        elements += one * times
        if weight.routed:
            routed += one * times
        if weight.trains:
            trained.append((weight, one, times))
    outside = per_layer.pop(0, 0)
    return Inventory(
        elements=elements,
        expert_elements=routed,
        layer_elements=max(per_layer.values(), default=0),
        outside_elements=outside,
        **_trained(trained),
    )


def _trained(weights: Sequence[tuple[RankWeight, int, int]]) -> dict[str, int]:
    """The sums over weights that train, each with its elements and in how many layers it is."""
    width, largest, count, routed, rounded, tensors, small = 4, 0, 0, 0, 0, 0, 0
    for weight, one, times in weights:
        n = one * times
        width, largest = weight.width, max(largest, one)
        count, tensors = count + n, tensors + times
        routed += n if weight.routed else 0
        rounded += -(-one * width // BLOCK_BYTES) * BLOCK_BYTES * times
        small += n if one < SMALL_TENSOR else 0
    return {
        "trained": count,
        "trained_experts": routed,
        "trained_bytes": rounded,
        "trained_width": width,
        "trained_tensors": tensors,
        "trained_small": small,
        "largest": largest,
        **_matrices(weights),
    }


def _matrices(weights: Sequence[tuple[RankWeight, int, int]]) -> dict[str, int]:
    """The sums over sides of matrices that train."""
    matrices = tables = factored = short = long = squares = iterated = sides = blocks = turned = 0
    for weight, one, times in weights:
        n = one * times
        if len(weight.shape) < 2:
            factored += n
            continue
        rows, columns = weight.shape[-2:]
        copies, turning = n // (rows * columns), [side for side in (rows, columns) if side <= LONGEST_SIDE]
        factored += copies * (rows + columns)
        sides += copies * sum(side * side for side in turning)
        blocks += copies * _block_squares(rows, columns)
        turned = max(turned, max(turning, default=0) ** 2 + rows * columns if len(turning) == 2 else 0)
        if weight.place == 0:
            tables += n
            continue
        matrices += n
        side = min(rows, columns)
        short, long = short + copies * side, long + copies * max(rows, columns)
        squares += copies * side * side
        iterated = max(iterated, 2 * rows * columns + 2 * side * side)
    return {
        "trained_matrices": matrices,
        "trained_tables": tables,
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

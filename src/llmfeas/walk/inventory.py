"""The weights of one rank, summed up as far as optimizers and sharding ask."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from math import prod

from ..record import dataclass
from .storage import BLOCK_BYTES

SMALL_TENSOR = 4096
"""8-bit optimizers keep full states of tensors below this many elements."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A weight that a walk leaves."""

    shape: tuple[int, ...]
    width: int
    """Bytes of an element."""
    place: int
    """Layer i + 1; 0 outside the layers."""
    routed: bool
    """Belongs to routed experts."""
    trains: bool
    gradient: int
    """Packed bytes of the gradient that stays."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """Counts over all weights, and over those that train. Elements unless a name says bytes."""

    elements: int = 0
    expert_elements: int = 0
    trained: int = 0
    trained_experts: int = 0
    trained_bytes: int = 0
    """Rounded to blocks, in the weights' own type."""
    trained_width: int = 4
    """Bytes of one trained element."""
    trained_tensors: int = 0
    trained_matrices: int = 0
    """Elements of matrices other than tables."""
    trained_tables: int = 0
    trained_small: int = 0
    factored: int = 0
    """Row and column sums of matrices, and all elements of vectors."""
    layer_elements: int = 0
    """Elements of the largest layer."""
    outside_elements: int = 0
    """Elements outside the layers."""
    largest: int = 0
    """Elements of the largest trained tensor."""
    iterated: int = 0
    """Elements that an orthogonalising iteration holds at once for the largest matrix."""


_MAXIMA = frozenset(("largest", "iterated", "layer_elements", "trained_width"))


def inventory_of(weights: Iterable[Weight]) -> Inventory:
    """Sum up weights."""
    totals = dict.fromkeys((f.name for f in fields(Inventory)), 0)
    totals["trained_width"] = 4
    per_layer: dict[int, int] = {}
    for weight in weights:
        shape = weight.shape
        n = prod(shape)
        per_layer[weight.place] = per_layer.get(weight.place, 0) + n
        totals["elements"] += n
        totals["outside_elements"] += 0 if weight.place else n
        totals["expert_elements"] += n if weight.routed else 0
        if not weight.trains:
            continue
        totals["trained"] += n
        totals["trained_experts"] += n if weight.routed else 0
        totals["trained_bytes"] += -(-n * weight.width // BLOCK_BYTES) * BLOCK_BYTES
        totals["trained_width"] = weight.width
        totals["trained_tensors"] += 1
        totals["trained_small"] += n if n < SMALL_TENSOR else 0
        totals["largest"] = max(totals["largest"], n)
        if len(shape) < 2:
            totals["factored"] += n
            continue
        rows, columns = n // shape[-1], shape[-1]
        matrices = n // (shape[-1] * shape[-2])
        totals["factored"] += matrices * shape[-2] + matrices * columns if matrices > 1 else rows + columns
        if weight.place == 0:
            totals["trained_tables"] += n
        else:
            totals["trained_matrices"] += n
            side = min(shape[-1], shape[-2])
            totals["iterated"] = max(totals["iterated"], 2 * shape[-1] * shape[-2] + 2 * side * side)
    totals["layer_elements"] = max((n for place, n in per_layer.items() if place), default=0)
    return Inventory(**totals)


def extrapolated_inventory(walked: Inventory, added: Inventory, times: int) -> Inventory:
    """Sums grow by what each further period adds; maxima stay."""
    return Inventory(
        **{
            f.name: getattr(walked, f.name) + (0 if f.name in _MAXIMA else getattr(added, f.name) * times)
            for f in fields(Inventory)
        }
    )

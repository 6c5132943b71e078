"""Walks of a few layers with symbolic sizes, shared by stages that run alike and by ranks with other experts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from .inventory import Weight
from .pattern import layer_kinds
from .setup import Setup
from .step import Mark, Walked, common_step, on_base
from .storage import BLOCK_BYTES, SYMBOLIC


@lru_cache(maxsize=64)
def walks(setup: Setup, layers: tuple[int, ...]) -> dict[int, Walked]:
    """Keep the walks of one stage by the experts of a rank, two at most; few stages, since levels are large."""
    return {}


def walked_layers(setup: Setup, places: Sequence[int]) -> Walked:
    """Walk a stage cut to some of its layers; stages whose layers run alike, and bases of adapters, share the walk."""
    layers = [setup.span[place] for place in places]
    recipe, experts = setup.recipe, setup.architecture.experts
    if not (setup.layers or recipe.adapters or experts):
        return common_step(setup, SYMBOLIC, layers)  # a whole dense model that trains is like no other
    held = recipe.rank_experts or (experts.count if experts else 0)
    setup = replace(setup, first_layer=0, layers=0, recipe=replace(recipe, rank_experts=0, quantized=False))
    kinds = layer_kinds(setup)
    alike = tuple(kinds.index(kinds[layer]) for layer in layers)
    known = walks(setup, alike)
    walk = known.get(held)
    if walk is None:
        setup = replace(setup, recipe=replace(setup.recipe, rank_experts=held))
        walk = _between(known, held) or common_step(setup, SYMBOLIC, alike)
        if len(known) < 2:
            known[held] = walk
    return on_base(walk, quantized=recipe.quantized) if recipe.adapters else walk


def _between(known: dict[int, Walked], experts: int) -> Walked | None:
    """Give the walk with other experts on the rank from two known ones, since all levels are linear in their number."""
    if len(known) < 2:
        return None
    (few, one), (more, other) = sorted(known.items())
    over, under = experts - few, more - few

    def at(a: int, b: int) -> int:
        steps, rest = divmod((b - a) * over, under)
        if rest:
            raise _NotLinearError
        return a + steps

    def all_at(one: list[int], other: list[int]) -> list[int]:
        return [at(a, b) for a, b in zip(one, other, strict=True)]

    def mark(a: Mark, b: Mark) -> Mark:
        if a[1:] != b[1:]:
            raise _NotLinearError
        return at(a[0], b[0]), a[1], a[2]

    def weight(a: Weight, b: Weight) -> Weight:
        shape = tuple(map(at, a.shape, b.shape))
        if any(2 * prod(extents) % BLOCK_BYTES for extents in (a.shape, b.shape, shape)):
            raise _NotLinearError  # rounded to blocks
        return replace(a, shape=shape, gradient=at(a.gradient, b.gradient))

    try:
        return Walked(
            marks=[mark(a, b) for a, b in zip(one.marks, other.marks, strict=True)],
            start=at(one.start, other.start),
            kept=at(one.kept, other.kept),
            end=at(one.end, other.end),
            weights=[a if a == b else weight(a, b) for a, b in zip(one.weights, other.weights, strict=True)],
            built=all_at(one.built, other.built),
            entered=all_at(one.entered, other.entered),
            reached=all_at(one.reached, other.reached),
        )
    except (_NotLinearError, ValueError):
        return None


class _NotLinearError(Exception):
    """Two walks do not run alike, or blocks of the allocator hide what one expert takes."""

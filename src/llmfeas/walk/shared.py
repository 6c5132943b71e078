"""Walks of a few layers with symbolic sizes, shared by stages that run alike and by ranks with other experts."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from .inventory import Weight
from .pattern import layer_kinds
from .setup import Setup
from .step import Mark, Walked, walked_step
from .storage import SYMBOLIC


@lru_cache(maxsize=64)
def walks(setup: Setup, layers: int) -> dict[int, Walked]:
    """Keep the walks of one stage by the experts of a rank, two at most; few stages, since levels are large."""
    return {}


def first_layers(setup: Setup, layers: int) -> Walked:
    """Walk the first layers of a stage; stages of one model whose layers run alike share the walk."""
    experts, held = setup.architecture.experts, setup.recipe.rank_experts
    if not setup.layers and (experts is None or held == experts.count):
        return walked_step(setup, SYMBOLIC, layers)  # a whole model on one rank is like no other
    if setup.architecture.window is None:  # else all layers of a stage decide which masks it makes
        kinds = layer_kinds(replace(setup, first_layer=0, layers=0))
        first = setup.first_layer
        alike = kinds[first : first + layers]
        start = next(at for at in range(first + 1) if kinds[at : at + layers] == alike)
        setup = replace(setup, first_layer=start, layers=layers)
    known = walks(replace(setup, recipe=replace(setup.recipe, rank_experts=0)), layers)
    walk = known.get(held)
    if walk is None:
        walk = _between(known, held) or walked_step(setup, SYMBOLIC, layers)
        if len(known) < 2:
            known[held] = walk
    return walk


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

    def mark(a: Mark, b: Mark) -> Mark:
        if a[1:] != b[1:]:
            raise _NotLinearError
        return at(a[0], b[0]), a[1], a[2]

    def weight(a: Weight, b: Weight) -> Weight:
        return replace(a, shape=tuple(map(at, a.shape, b.shape)), gradient=at(a.gradient, b.gradient))

    try:
        return Walked(
            marks=[mark(a, b) for a, b in zip(one.marks, other.marks, strict=True)],
            start=at(one.start, other.start),
            kept=at(one.kept, other.kept),
            end=at(one.end, other.end),
            weights=[a if a == b else weight(a, b) for a, b in zip(one.weights, other.weights, strict=True)],
            built=[at(a, b) for a, b in zip(one.built, other.built, strict=True)],
        )
    except (_NotLinearError, ValueError):
        return None


class _NotLinearError(Exception):
    """Two walks do not run alike, or blocks of the allocator hide what one expert takes."""

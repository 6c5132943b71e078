"""How kinds of layers follow each other in a model."""

from __future__ import annotations

from .setup import Setup

MAX_PERIOD = 12
"""Layers after which a pattern repeats, at most."""


def repeated_pattern(kinds: list[object]) -> tuple[int, int]:
    """The shortest (prefix, period) with which a list of layer kinds repeats."""
    depth = len(kinds)
    best = (depth, 1)
    for period in range(1, min(MAX_PERIOD, depth) + 1):
        prefix = depth - period
        while prefix > 0 and kinds[prefix - 1] == kinds[prefix - 1 + period]:
            prefix -= 1
        if prefix + period < sum(best):
            best = (prefix, period)
    return best


def layer_kinds(setup: Setup) -> list[object]:
    """What decides a layer's program, for each layer of the stage."""
    a = setup.architecture
    span = range(setup.first_layer, setup.first_layer + setup.depth)
    # Windowed layers also differ where they have rotation tables of their own.
    windowed = setup.recipe.windowed or setup.implementation.rotary_tables > 1
    every = a.no_rope_every
    return [
        (
            a.is_expert_layer(i),
            a.is_linear_layer(i),
            windowed and a.window_of(i) is not None,
            every is not None and (i + 1) % every == 0,
        )
        for i in span
    ]


def telling_places(kinds: list[object]) -> frozenset[int]:
    """The places whose levels can be the fullest: in a run of like layers the levels are linear, so its ends tell."""
    last = len(kinds) - 1
    ends = {i + 1 for i, kind in enumerate(kinds) if i < 2 or i == last or kind != kinds[i - 1] or kind != kinds[i + 1]}
    return frozenset((*ends, 0, last + 2))

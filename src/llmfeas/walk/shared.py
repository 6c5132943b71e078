"""Walks of a few layers with symbolic sizes, shared by stages that run alike and by ranks with other experts."""

from __future__ import annotations

from functools import lru_cache

from ..autograd.storage import EXPERTS, SYMBOLIC, sizes_at
from ..model.setup import Setup
from ..record import dataclass, replace
from .pattern import Outline, layer_kinds
from .step import Walked, walked_step
from .undominated import Places, undominated


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers to walk."""

    own: tuple[int, ...]
    read: tuple[int, ...] = ()
    """Those of the encoder."""


def common_setup(setup: Setup, outline: Outline) -> tuple[Setup, Layers]:
    """The setup and the layers to walk that a stage has in common with stages whose layers run alike, and with
    ranks of any number of experts.
    """
    read = 0 if setup.reading is None else setup.reading.depth
    before = read + 1 if read else 0
    layers = tuple(setup.span[place - before] for place in outline.walked if place >= before)
    recipe, experts = setup.recipe, setup.architecture.experts
    common = replace(setup, first_layer=0, layers=0, recipe=replace(recipe, rank_experts=0))
    kinds = layer_kinds(common)
    own = tuple(kinds.index(kinds[layer]) for layer in layers)
    alike = Layers(own, tuple(place for place in outline.walked if place < read))
    if experts is None:
        return common, alike
    return replace(common, recipe=replace(common.recipe, rank_experts=EXPERTS)), alike


def experts_of(setup: Setup) -> int:
    """The routed experts of a layer on this rank; 0 where there are none."""
    experts = setup.architecture.experts
    return setup.recipe.rank_experts or (experts.count if experts else 0)


@lru_cache(maxsize=16)
def walked_layers(setup: Setup, layers: Layers) -> tuple[Walked, Places]:
    """Walk some layers of a setup: what was walked, and of its marks, which are large, those that can be a peak."""
    length = setup.recipe.length
    walk = walked_step(setup, sizes_at(length) if length else SYMBOLIC, layers.own, read=layers.read)
    return replace(walk, marks=[]), undominated(walk.marks)

"""From one symbolic walk of a few layers to every level of any depth, batch and length.

Levels are linear in the number of like layers, and what one of them adds is told by the levels before and after it;
sizes are symbolic, so each level is a polynomial; levels that another one exceeds everywhere are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, pairwise

from ..autograd.storage import (
    EXPERTS,
    FIELD_MASK,
    HOST,
    ONE_TENSOR,
    SYMBOLIC,
    packed_fields,
    sizes_at,
    with_experts,
)
from ..catalog.architecture import Architecture
from ..model.setup import Setup
from ..record import dataclass, field, replace
from .candidates import Level, PeakCandidates, Places, candidate_at, total_of, undominated
from .inventory import StageWeights, inventory_of, stage_weights
from .pattern import Outline, layer_kinds, outline_of
from .step import Walked, walked_step

MOST_COUNTED = 16
"""Numbers of experts for which the candidates of a stage are kept."""


@lru_cache(maxsize=384)
def peak_candidates(setup: Setup) -> PeakCandidates:
    """Every moment that can be the peak of a training step, as polynomials in micro-batch and length."""
    # Without a head the last layer is unlike the others: its gradient is the one that the caller holds. So it is where
    # layers look at a source, at embeddings of their own or at others' keys: the first gradient of that comes from it.
    # So it is where a norm follows it in each loop, and where gradients stay: its own comes from none that does.
    alike = setup.heads and setup.architecture.source is None and not setup.architecture.held_layers
    alike = alike and not (setup.recipe.holds_inputs or setup.recipe.integers or _looks_elsewhere(setup.architecture))
    outline = outline_of(setup, tail=1 if alike else 2)
    common, layers = common_setup(setup, outline)
    experts = experts_of(setup)
    folded = _folded(common, layers, outline)
    # What is repeated for one expert alone is no copy, and what is rounded is no multiple of a number.
    if (experts == 1 and setup.implementation.every_expert) or folded.weights.rounded(experts):
        common = replace(common, recipe=replace(common.recipe, rank_experts=experts))
        folded = _folded(common, layers, outline)
    return folded.candidates(experts)


def _looks_elsewhere(architecture: Architecture) -> bool:
    return architecture.per_layer_embedding is not None or bool(architecture.lenders)


@dataclass(frozen=True, slots=True)
class _Folded:
    """The levels of a stage that no other one hides, for any number of experts."""

    levels: tuple[tuple[str, tuple[Level, ...]], ...]
    start: int
    kept: int
    end: int
    weights: StageWeights
    walked: int
    """The walked ones that are no encoder's."""
    forward: int
    """Tally of the tensors that a forward pass makes."""
    loss: int
    backward: int
    counted: dict[int, PeakCandidates] = field(default_factory=dict, repr=False, compare=False)
    """The candidates by the experts of a rank, whose number takes few values."""

    def candidates(self, experts: int) -> PeakCandidates:
        """The candidates of a rank with so many experts, counted once."""
        found = self.counted.get(experts)
        if found is None:
            if len(self.counted) >= MOST_COUNTED:
                self.counted.clear()
            found = self.counted[experts] = self._candidates(experts)
        return found

    def _candidates(self, experts: int) -> PeakCandidates:
        end = candidate_at(self.end, "optimizer", experts)
        return PeakCandidates(
            levels=self.levels,
            experts=experts,
            start=candidate_at(self.start, "forward", experts),
            kept=candidate_at(self.kept, "forward", experts),
            end=end,
            gradient_bytes=end.gradients,
            weight_bytes=with_experts(self.start, experts) & FIELD_MASK,
            inventory=inventory_of(self.weights, experts),
            walked=self.walked,
            streamed=packed_fields(with_experts(self.kept, experts), HOST),
            forward=self.forward // ONE_TENSOR + self.loss // ONE_TENSOR,
            backward=self.backward // ONE_TENSOR,
            written=packed_fields(with_experts(self.forward, experts), 0),
        )


@lru_cache(maxsize=384)
def _folded(setup: Setup, layers: Layers, outline: Outline) -> _Folded:
    walk, places = walked_layers(setup, layers)
    shifts = _shifts(walk, outline)
    start, kept, end = walk.start + shifts[0][0], walk.kept + shifts[~len(walk.entered)][0], walk.end + shifts[~0][0]
    end -= sum(walk.stays[at + 1] for at in outline.like) - sum(walk.stays)
    counts = tuple(outline.like.count(at) for at in range(len(outline.walked)))
    forward, loss, backward = (_made(walk, counts, moment) for moment in ("forward", "loss", "backward"))
    fullest, weights = tuple(_fullest(places, shifts)), stage_weights(walk.weights, counts)
    return _Folded(fullest, start, kept, end, weights, len(layers.own), forward, loss, backward)


def _made(walk: Walked, counts: tuple[int, ...], asked: str) -> int:
    """Tally of what a moment makes, that of a layer as often as it stands for others."""
    tally = 0
    for (moment, place), made in walk.made.items():
        if moment == asked:
            layer = ~place if moment == "backward" else place
            tally += made * (counts[layer - 1] if 0 < layer <= len(counts) else 1)
    return tally


class _Sums:
    """What layers add to packed levels: all of them before the step, and those before or after each one within it."""

    __slots__ = ("built", "held", "left", "passed")

    def __init__(self, built: list[int], passed: list[int], held: list[int], left: list[int]) -> None:
        self.built = sum(built)
        self.passed = list(accumulate(passed, initial=0))
        """In forward, by the layers before each one."""
        self.held = list(accumulate(held, initial=0))
        """In backward, by the same: without what goes with autocast's region."""
        self.left = list(accumulate(reversed(left), initial=0))[::-1]
        """By the layers from each one on, once their backward is done: their gradients, and what outlives it."""

    def before(self, backward: bool, layers: int, done: int) -> int:
        """What stands where `layers` were passed and, in backward, all from `done` on are done."""
        return self.built + (self.held[layers] + self.left[done] if backward else self.passed[layers])


def _shifts(walk: Walked, outline: Outline) -> dict[int, tuple[int, ...]]:
    """By how much levels at each place of a walk are higher in the stage, at each layer that is like the walked one.

    In forward the last is the highest. What a walked layer adds is told by the levels around it: to those before the
    step by being made, to those of the forward pass by what it keeps, and once its own backward is done by its
    gradients and by what outlives it. A place of the stage has more of these layers before and behind it than the same
    place of the walk; the difference is its shift.
    """
    like, depth = outline.like, len(outline.walked)
    left = [0] * (depth + 1)
    for weight in walk.weights:
        left[weight.place] += weight.gradient
    for layer, packed in walk.outlived.items():
        left[layer] += packed
    left[1:] = [gradients + stays for gradients, stays in zip(left[1:], walk.stays[1:], strict=True)]
    added = (
        [after - before for before, after in pairwise(walk.built)],
        [after - before for before, after in pairwise(walk.entered)],
        [
            after - before + gradients
            for (before, after), gradients in zip(pairwise(walk.reached), left[1:], strict=True)
        ],
        left[1:],
    )
    some, all_of_them = _Sums(*added), _Sums(*([part[at] for at in like] for part in added))
    spots = [[(0, 0)], *([(at, at + 1) for at, one in enumerate(like) if one == place] for place in range(depth))]
    shifts: dict[int, tuple[int, ...]] = {}
    for place, layers in enumerate([*spots, [(len(like),) * 2]]):
        here = max(0, place - 1), min(place, depth)
        shifts[place] = (all_of_them.before(False, *layers[-1]) - some.before(False, *here),)
        shifts[~place] = _corners([all_of_them.before(True, *each) - some.before(True, *here) for each in layers])
    return shifts


def _corners(shifts: list[int]) -> tuple[int, ...]:
    """Those between which the others are linear."""
    steps = [after - before for before, after in pairwise(shifts)]
    inner = (shift for shift, (before, after) in zip(shifts[1:], pairwise(steps), strict=False) if before != after)
    return tuple(dict.fromkeys((shifts[0], *inner, shifts[-1])))


def _fullest(places: Places, shifts: dict[int, tuple[int, ...]]) -> Iterator[tuple[str, tuple[Level, ...]]]:
    """The levels of the stage of which few are hidden by others."""
    fullest_of: dict[str, dict[int, tuple[int, int]]] = {}
    for (moment, place), fullest in places.items():
        found = fullest_of.setdefault(moment, {})
        for shift in shifts[place]:
            # A shift may be negative in parts, a level is not.
            total, level = next(iter(fullest.items()))
            more = total_of(level + shift) - total
            found |= {total + more: (level, shift) for total, level in fullest.items()}
    for moment, found in fullest_of.items():
        yield moment, tuple((total, *found[total]) for total in sorted(found, reverse=True))


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


@lru_cache(maxsize=128)
def walked_layers(setup: Setup, layers: Layers) -> tuple[Walked, Places]:
    """Walk some layers of a setup: what was walked, and of its marks, which are large, those that can be a peak."""
    length = setup.recipe.length
    walk = walked_step(setup, sizes_at(length) if length else SYMBOLIC, layers.own, read=layers.read)
    return replace(walk, marks=[]), undominated(walk.marks)

"""Remedies: the few nearest ways to yes that stand below an estimate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product

from ..catalog.store import Catalog
from ..feasibility.result import Estimate, Remedy
from .axes import axes_of
from .change import Axis
from .search import Search, Way
from .selection import HARDWARE, apart, pointless, worth_showing

SHOWN = 3
SHOWN_HARDWARE = 2
ENOUGH = 12
MOST_CHANGES = 2
MOST_DOUBLINGS = 6

Group = tuple[Axis, ...]
"""Axes that change together."""


def nearest_remedies(request: Mapping[str, object], estimated: Estimate, catalog: Catalog) -> list[Remedy]:
    """The first few ways for a scenario that is not feasible as asked: single changes, else pairs.

    One more asks for other or more devices; without any other way two do, where they must with another recipe.
    """
    search = Search(request, estimated.scenario, catalog)
    recipe = list(_helpful(axes_of(estimated, catalog, HARDWARE), estimated))
    names = [axis.name for axis in recipe]
    hardware = [_few(axis) for axis in axes_of(estimated, catalog, names, any_device=True) if axis.name in HARDWARE]
    ways = _fewest(search, recipe)
    kept = worth_showing(ways)[:SHOWN] if ways else []
    shown = 1 if kept else SHOWN_HARDWARE
    backend = estimated.scenario.device.backend if kept else None
    larger = _least_painful(search, [(axis,) for axis in hardware], shown, backend)
    if not kept and not larger:
        pairs = [*((change, axis) for axis in hardware for change in recipe), tuple(hardware)]
        larger = _least_painful(search, pairs, shown, None)
    return [way.remedy for way in (*kept, *larger)]


def _few(axis: Axis) -> Axis:
    """Leave the largest counts to `plan`: their layouts take long to try."""
    return Axis(axis.name, axis.alternatives[:MOST_DOUBLINGS]) if axis.name == "num_devices" else axis


def _helpful(axes: Iterable[Axis], estimated: Estimate) -> Iterator[Axis]:
    """Leave out what buys speed with memory where nothing but memory is short."""
    verdict = estimated.verdict
    late = verdict.time in ("over_deadline", "impractical") or verdict.budget == "over_budget"
    for axis in axes:
        light = tuple(change for change in axis.alternatives if not change.heavier)
        kept = axis.alternatives if late or estimated.memory.verdict != "exceeds" else light
        if kept:
            yield Axis(axis.name, kept)


def _fewest(search: Search, axes: Sequence[Axis]) -> list[Way]:
    """The first ways, all with the fewest changes that do."""
    for count in range(1, MOST_CHANGES + 1):
        ways = list(islice(search.ways(axes, count), ENOUGH))
        if ways:
            return ways
    return []


def _least_painful(search: Search, groups: Iterable[Group], wanted: int, backend: str | None) -> list[Way]:
    """The least painful ways that take one alternative of each axis of a group, on `backend` if that is named.

    Trials are made in the order of their pain, until none that is left could hurt less than those found.
    """
    trials = [(changes, group) for group in groups for changes in product(*(axis.alternatives for axis in group))]
    trials.sort(key=lambda trial: sum(change.pain for change in trial[0]))
    hopeful: dict[Group, bool] = {}
    best: list[Way] = []
    for changes, group in trials:
        if len(best) == wanted and sum(change.pain for change in changes) > best[-1].pain:
            break
        if pointless(search.settings(changes), sum(change.pain for change in changes), best):
            continue
        if len(group) > 1 and group not in hopeful:
            if search.hopeless(changes):
                continue
            hopeful[group] = search.may_fit(group)
        worked = search.way(changes) if hopeful.get(group, True) else None
        if worked is not None and backend in (None, worked.estimate.scenario.device.backend):
            best.append(search.refined(worked))
            best = apart(sorted(best, key=lambda way: (way.pain, way.estimate.scenario.memory_bytes)))[:wanted]
    return best

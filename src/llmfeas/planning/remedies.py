"""The nearest ways to yes: what stands below an estimate, and what a plan begins with."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product

from ..catalog.device import Device
from ..catalog.joined import Joined
from ..catalog.store import Catalog
from ..feasibility.load_verdict import is_followed
from ..feasibility.result import Estimate, Remedy
from .changes.axes import axes_of
from .changes.change import AUTO, Axis, Change, Changes, tier_of, together
from .changes.change import change as make_change
from .changes.hardware import OWN, devices_text, rented_groups
from .changes.training import engine_changes
from .selection import HARDWARE, apart, pointless, worth_showing
from .trials import Search
from .way import Way

SHOWN = 3
SHOWN_HARDWARE = 2
ENOUGH = 24
CARDS = ("consumer", "workstation")
"""Kinds of devices that are put into a computer."""
MOST_CHANGES = 2
MOST_TOGETHER = 3
"""Changes that go together where no one or two surely do."""
MOST_DOUBLINGS = 6
LAST_WORK = 300
"""Work beyond that of a search, for what alters the job: it is tried last, and may be the only way."""
FREE = ("device", "num_devices", "tp", "pp", "ep")
"""What a plan for a server may choose anew."""

Group = tuple[Axis, ...]
"""Axes that change together."""


def nearest_remedies(request: Mapping[str, object], estimated: Estimate, catalog: Catalog) -> list[Remedy]:
    """The first few ways for a scenario that is not feasible as asked: those that a plan begins with."""
    search = Search(request, estimated.scenario, catalog)
    return [way.remedy for way in nearest_ways(search, estimated, catalog)]


def nearest_ways(search: Search, estimated: Estimate, catalog: Catalog, keep: Collection[str] = ()) -> list[Way]:
    """The first ways in the order of data/changes.yaml, for a scenario that is not feasible as asked.

    Some that change the recipe; one more asks for other or more devices. Without any other way two do, where they must
    with another recipe, then fewer tokens, then another task. Where what was asked may just do, only what surely does.
    Adapters stand before what costs money where all weights want that, or something else that hurts.
    """
    if estimated.verdict.status == "tight":
        search.surely = True
    scenario = estimated.scenario
    hardware_tier = tier_of(scenario, "hardware")
    every = list(_helpful(axes_of(estimated, catalog, (*keep, *HARDWARE)), estimated))
    recipe = list(_of_tiers(every, range(hardware_tier)))
    fleet = fleet_way(search, estimated, catalog, keep)
    names = [axis.name for axis in recipe if axis.name not in OWN]
    free = axes_of(estimated, catalog, (*keep, *names), any_device="device" not in keep)
    hardware = [_few(axis) for axis in _of_tiers(free, (hardware_tier,))]
    kept = _by_tiers(search, recipe, hardware_tier)[:SHOWN]
    if fleet is not None:
        return [*kept, fleet]
    adapted = adapted_ways(search, every, kept, catalog)
    larger = _larger(search, estimated, recipe, hardware, catalog, alone=not kept)
    if kept or larger:
        desk = tier_of(scenario, "desk")
        return [
            *(way for way in kept if way.tier < desk),
            *adapted,
            *(way for way in kept if way.tier >= desk),
            *larger,
        ]
    if search.ended:
        search.most_work = search.work + LAST_WORK
    for tier in range(hardware_tier + 1, len(scenario.tables.changes.tiers)):
        ways = _fewest(search, list(_of_tiers(every, (tier,)))) or _fewest(
            search, list(_of_tiers(every, range(tier + 1)))
        )
        if ways:
            return worth_showing(ways)[:SHOWN]
    return []


def _larger(
    search: Search,
    estimated: Estimate,
    recipe: Sequence[Axis],
    hardware: Sequence[Axis],
    catalog: Catalog,
    *,
    alone: bool,
) -> list[Way]:
    """Ways that take other or more devices, with another recipe where they must if they are `alone`: no others do."""
    scenario = estimated.scenario
    shown, backend = (SHOWN_HARDWARE, None) if alone else (1, scenario.device.backend)
    larger: list[Way] = []
    for axes in _by_reach(hardware, scenario.device, catalog):
        wanted = shown - len(larger)
        if not axes or not wanted or any(map(_is_card, larger)):
            continue
        here = 1 if scenario.is_training and scenario.device.kind != "datacenter" else wanted
        larger += _least_painful(search, [(axis,) for axis in axes], here, backend)
        if alone and not larger:
            pairs = [*((change, axis) for axis in axes for change in recipe), tuple(axes)]
            larger = _least_painful(search, pairs, here, None)
    if not alone:
        return larger
    if not larger and len(hardware) > 1 and scenario.device.kind != "datacenter":
        larger = _least_painful(search, [rented_groups(estimated, catalog)], SHOWN_HARDWARE, None)
    return larger


def _is_card(way: Way) -> bool:
    """Whether a way is to put one other card into a computer."""
    return len(way.changes) == 1 and _any_sure([way]) and way.estimate.scenario.device.kind in CARDS


def _by_reach(hardware: Sequence[Axis], own: Device, catalog: Catalog) -> Iterator[list[Axis]]:
    """Yield what stands at a desk before what is rented, for somebody who has a desk."""
    kind_of = catalog.devices.reader("kind")
    if own.kind == "datacenter":
        yield list(hardware)
        return
    for rented in (False, True):
        parts = (
            Axis(axis.name, tuple(each for each in axis.alternatives if _is_rented(each, kind_of) == rented))
            for axis in hardware
        )
        yield [part for part in parts if part.alternatives]


def _is_rented(change: Change, kind_of: Callable[[str], object]) -> bool:
    device = change.settings.get("device")
    return device is not None and kind_of(str(device)) == "datacenter"


def adapted_ways(search: Search, axes: Sequence[Axis], kept: Sequence[Way], catalog: Catalog) -> list[Way]:
    """The mildest adapters that surely train on the devices at hand, under an engine that makes them fit if need be, or
    what may just do; none where all weights surely train for little.
    """
    scenario = search.requested
    cheap = tier_of(scenario, "some")
    if scenario.task != "finetune" or any(way.tier < cheap and _any_sure([way]) for way in kept):
        return []
    found: list[Way] = []
    for axis in _of_tiers(axes, (tier_of(scenario, "task"),)):
        for change in axis.alternatives:
            settled = search.settled((change,))
            if settled is None:
                continue
            engines = engine_changes(search.trials.estimated(settled), catalog)
            tried = ((change,), *((change, engine) for engine in engines if engine.tier == 0))
            found += filter(None, map(search.way, tried))
            if _any_sure(found):
                return [way for way in found if _any_sure([way])][:1]
    return found[:1]


def fleet_way(search: Search, estimated: Estimate, catalog: Catalog, keep: Collection[str]) -> Way | None:
    """The fewest of the same devices that keep up with a load and its targets, with their layout and format."""
    scenario = estimated.scenario
    fixed = scenario.offer is not None or isinstance(scenario.device, Joined) or "num_devices" in keep
    if not is_followed(scenario) or fixed:
        return None
    from .solve.fleet import fewest

    open_ = {name: value for name, value in search.request.items() if name in keep or name not in FREE}
    asked = {**open_, "device": scenario.device.id}
    found, _ = fewest(asked, catalog, sure=search.surely)
    if found is not None and found.gives_up:  # nobody rents a part of a machine: as published in as many is better
        published, _ = fewest({**asked, "quant": AUTO}, catalog, sure=search.surely)
        node = max(1, scenario.devices_per_node)
        if published is not None and -(-published.count // node) <= -(-found.count // node):
            found = published
    if found is None or not found.estimate.verdict.works(surely=search.surely):
        return None
    if (found.count, found.copy) == (scenario.num_devices, scenario.tp * scenario.pp):
        return None  # the same devices in the same layout: another format alone is a way of its own
    chosen = found.estimate.scenario
    layout = {"num_devices": found.count, "tp": chosen.tp, "pp": chosen.pp}
    settings: dict[str, object] = {"device": scenario.device.id, **layout}
    settings |= {
        name: getattr(chosen, name) for name in ("quant", "engine") if getattr(chosen, name) != getattr(scenario, name)
    }
    copies = found.count // found.copy
    devices = devices_text(found.count, max(1, scenario.devices_per_node))
    text = f"{copies} {'copies' if copies > 1 else 'copy'} of the model on {devices}"
    text = "; ".join(filter(None, (text, found.gives_up)))
    changed = make_change(scenario, "more-devices", settings, text)
    settings = search.settings((changed,))
    return Way((changed,), settings, {**search.request, **settings}, found.estimate)


def _of_tiers(axes: Iterable[Axis], tiers: Collection[int]) -> Iterator[Axis]:
    """The axes with their changes of some tiers."""
    for axis in axes:
        kept = tuple(change for change in axis.alternatives if change.tier in tiers)
        if kept:
            yield Axis(axis.name, kept)


def _few(axis: Axis) -> Axis:
    """Leave the largest counts to `plan`: their layouts take long to try."""
    return Axis(axis.name, axis.alternatives[:MOST_DOUBLINGS]) if axis.name == "num_devices" else axis


def _helpful(axes: Iterable[Axis], estimated: Estimate) -> Iterator[Axis]:
    """Leave out what buys speed with memory where nothing but memory is short."""
    verdict = estimated.verdict
    for axis in axes:
        light = tuple(change for change in axis.alternatives if not change.heavier)
        kept = axis.alternatives if verdict.is_late or estimated.memory.verdict == "fits" else light
        if kept:
            yield Axis(axis.name, kept)


def _by_tiers(search: Search, axes: Sequence[Axis], end: int) -> list[Way]:
    """The ways of the mildest tier before `end` that has any, with the single changes of the next ones."""
    ways: list[Way] = []
    for tier in range(end):
        own = list(_of_tiers(axes, (tier,)))
        if not own:
            continue
        within = list(_of_tiers(axes, range(tier + 1)))
        if ways:
            ways += search.ways(own, 1)
            if not (_any_sure(ways) or is_followed(search.requested)):
                ways += _sure_pairs(search, within)
        else:
            ways = _fewest(search, within)
            if ways and not (_any_sure(ways) or is_followed(search.requested)):
                ways += _sure_pairs(search, within)
            if not _any_sure(ways):
                ways += [way for way in _leanest(search, within) if len(way.changes) <= MOST_TOGETHER]
        if len(ways) >= ENOUGH:
            break
    return worth_showing(ways) if ways else []


def _any_sure(ways: Sequence[Way]) -> bool:
    return any(way.estimate.verdict.status == "feasible" for way in ways)


def _sure_pairs(search: Search, axes: Sequence[Axis]) -> list[Way]:
    """The first ways of two changes that surely do, where single ones may just do."""
    asked, search.surely = search.surely, True
    ways = list(islice(search.ways(axes, 2), SHOWN))
    search.surely = asked
    return ways


def _fewest(search: Search, axes: Sequence[Axis]) -> list[Way]:
    """The first ways, all with the fewest changes that do."""
    for count in range(1, MOST_CHANGES + 1):
        ways = list(islice(search.ways(axes, count), ENOUGH))
        if ways:
            return ways
    return []


def _leanest(search: Search, axes: Sequence[Axis]) -> Iterator[Way]:
    """Yield all that saves most at once, without what is not needed: what surely does, then what may just do."""
    if len(axes) <= MOST_CHANGES:
        return
    changes = together([axis.alternatives[-1] for axis in axes])
    asked = search.surely
    for search.surely in dict.fromkeys((True, asked)):
        way = search.way(changes)
        if way is not None:
            yield _pared(search, way, axes)
    search.surely = asked


def _pared(search: Search, way: Way, axes: Sequence[Axis]) -> Way:
    """A way with the mildest of its changes that do, and without those that it does not need."""
    for axis in sorted(axes, key=lambda axis: -axis.alternatives[-1].pain):
        way = _milder(search, way, axis)
    for change in sorted(way.changes, key=lambda each: (-each.tier, -each.pain)):
        fewer: Changes = tuple(each for each in way.changes if each is not change)
        way = (search.way(fewer) if fewer else None) or way
    return search.refined(way)


def _milder(search: Search, way: Way, axis: Axis) -> Way:
    """The way with the mildest alternative of an axis that still does."""
    place = next((at for at, change in enumerate(way.changes) if change in axis.alternatives), None)
    if place is None:
        return way
    for change in axis.alternatives:
        if change is way.changes[place]:
            break
        milder = search.way((*way.changes[:place], change, *way.changes[place + 1 :]))
        if milder is not None:
            return milder
    return way


def _dearness(way: Way) -> tuple[float, bool, float, float]:
    """Order ways that take other hardware: of those that hurt alike first runs whose speed somebody measured, then what
    costs least an hour, then the least memory.
    """
    scenario, price = way.estimate.scenario, way.estimate.cost.price
    hourly = math.inf if price is None else price.usd_per_device_hour * scenario.num_devices
    unmeasured = any(note.code == "unmeasured-speed" for note in way.estimate.warnings)
    return way.pain, unmeasured, hourly, scenario.memory_bytes


def _least_painful(search: Search, groups: Iterable[Group], wanted: int, backend: str | None) -> list[Way]:
    """The least painful ways that take one alternative of each axis of a group, on `backend` if that is named.

    Trials are made in the order of their pain, until none that is left could hurt less than those found.
    """
    trials = [(changes, group) for group in groups for changes in product(*(axis.alternatives for axis in group))]
    trials.sort(key=lambda trial: sum(change.pain for change in trial[0]))
    hopeful: dict[Group, bool] = {}
    best: list[Way] = []
    for changes, group in trials:
        if (len(best) == wanted and sum(change.pain for change in changes) > best[-1].pain) or search.spent:
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
            best = apart(sorted(best, key=_dearness))[:wanted]
    return best

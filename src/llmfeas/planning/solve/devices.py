"""The fewest devices that work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ...catalog.joined import parts_of
from ...catalog.store import Catalog
from ...errors import UsageError
from ...feasibility.bounds import Bounds
from ...feasibility.core import estimate, is_feasible
from ...feasibility.result import Estimate
from ...settle import before_layout, hardware_named, resolution
from ...workload.serving import replicas, spills
from ..asked import unless_refused
from .answer import (
    Answer,
    Request,
    estimated,
    lateness,
    never_in_time,
    outcome,
)
from .fleet import LAYOUT, asks_for_load, fewest_devices, follows
from .ways import with_recipes

MOST = 131_072
"""Devices of the largest machines that train one model."""
FINEST = 512
"""Into no more parts a count is divided to find the fewest devices."""
FAR = 1.25
"""Where a job is late by more than this factor, counts up to its root times as many are late too: no job gains more
than its devices, and the root leaves room for batches that divide better and for the engine that people take on many.
"""


OTHER_LAYOUTS = (
    "fewer were tried as they are laid out by themselves: other --tp, --pp and --interleave may do with fewer"
)


def counts(node: int) -> Iterator[int]:
    """Yield device counts that people build: 1 to 8 inside a node, then whole nodes, then half as many more again."""
    inside = [count for count in (1, 2, 3, 4, 5, 6, 7, 8) if count <= node] or [1]
    yield from inside
    unit = inside[-1]
    whole = 2
    while whole * unit <= MOST:
        yield whole * unit
        whole = whole + 1 if whole < 16 else whole * 5 // 4


def min_devices(request: Request, catalog: Catalog) -> Answer:
    """The fewest devices that work, with the layout that llmfeas would take; of a server under a load over layouts.

    Counts are those that people build (`counts`); the one before the answer does not work. Where an engine of clusters
    does with fewer it is named; recipes with which fewer train all weights stand beside.

    Raises:
        UsageError: where a count is given.
    """
    found = _min_devices(request, catalog)
    before = found.beyond and found.beyond.get("num_devices")
    counts = (before, before // 2) if isinstance(before, int) and found.at is not None else ()
    fewer = [{**request, "num_devices": count} for count in counts if count]
    return with_recipes(request, found, fewer, catalog, _min_devices, "num_devices")


def _min_devices(request: Request, catalog: Catalog) -> Answer:
    hardware = hardware_named(str(request["device"]), catalog)
    if hardware.count is not None or request.get("num_devices") is not None:
        kinds = " or ".join(part.id for part in parts_of(hardware.device))
        hint = f"Write --device {kinds} and leave --num-devices out."
        raise UsageError("contradiction", "solve min-devices searches the number of devices", hint)
    if asks_for_load(request) and follows(request, catalog):
        return fewest_devices(request, catalog)
    node = int(str(request.get("devices_per_node") or hardware.device.devices_per_node))
    node, before = max(1, min(node, 8)), 0
    result: Estimate | None = None
    for count in counts(node):
        if result is None or not _spared(request, count, result, catalog):
            result = estimated({**request, "num_devices": count}, catalog)
            if _alone(result):
                step = _step(node, count)
                return _fewest(request, *_between(request, step, count, result, catalog), step, catalog)
            if result is not None and result.verdict.software == "unsupported":
                beyond = {"num_devices": count, **outcome({**request, "num_devices": count}, catalog)}
                return Answer("min-devices", {"num_devices": None}, None, beyond, ("more devices do not help",))
        before = count
    last = {"num_devices": before, **outcome({**request, "num_devices": before}, catalog)}
    text = f"not even {before} devices work"
    result = estimated({**request, "num_devices": before}, catalog)
    if result is not None and result.verdict.time == "over_deadline":
        text += ": more time, or what 'llmfeas plan' names, has to change"
    elif result is not None and result.memory.verdict == "exceeds":
        text += ": what each holds at once is not divided among them; 'llmfeas plan' names what else could change"
    return Answer("min-devices", {"num_devices": None}, None, last, (text,))


def _step(node: int, most: int) -> int:
    """Devices between two counts that are tried: one machine, or whole ones that are a small part of them all."""
    return node * max(1, most // (FINEST * node))


def _spared(request: Request, count: int, tried: Estimate, catalog: Catalog) -> bool:
    """Whether so many devices surely do not work, as another number did not."""
    held = Bounds({"num_devices": count}, tried.scenario).least_device_bytes
    return held > tried.memory.usable_bytes or never_in_time({**request, "num_devices": count}, catalog)


def _alone(result: Estimate | None) -> bool:
    """Whether devices work without a host that runs layers for them."""
    return result is not None and result.verdict.works() and not spills(result.scenario)


def _between(
    request: Request, node: int, most: int, found: Estimate | None, catalog: Catalog
) -> tuple[Estimate, Estimate]:
    """The estimate on the fewest devices below `most` that work, else `found`, be it under an engine of clusters on
    numbers for which another one is taken where nobody asks; and on the fewest whole nodes under what is taken.
    """
    assert found is not None
    best = _first(request, range(node, most, node), found, catalog) or found
    engine = _dividing(request, best, catalog)
    if engine is None:
        return best, best
    tried = (count for count in range(node, most, node) if _takes(engine, {**request, "num_devices": count}, catalog))
    untried = sorted({*range(1, node), *range(node, most, node)}.difference(tried))
    counts = [count for count in untried if count < best.scenario.num_devices]
    return _first({**request, "engine": engine}, counts, found, catalog) or best, best


def _takes(engine: str, request: Request, catalog: Catalog) -> bool:
    """Whether a question is settled with an engine, which may refuse what else is asked."""
    try:
        return before_layout(request, catalog).scenario.engine == engine
    except UsageError:
        return False


def _first(request: Request, counts: Iterable[int], found: Estimate, catalog: Catalog) -> Estimate | None:
    """The estimate on the first count that works; what is hopeless is not walked."""
    late_below = 0.0
    for count in counts:
        settings = {"num_devices": count}
        if count < late_below or Bounds(settings, found.scenario).least_device_bytes > found.scenario.memory_bytes:
            continue
        late = lateness({**request, **settings}, catalog)
        if late > 1.0:
            late_below = count * math.sqrt(late) if late > FAR else 0.0
            continue
        settled = unless_refused({**request, **settings}, catalog)
        if settled is not None and not spills(settled.scenario) and is_feasible(settled):
            return estimate(settled)
    return None


def _dividing(request: Request, found: Estimate, catalog: Catalog) -> str | None:
    """The engine of clusters that divides what public code gathers: what was taken for many devices, or what people who
    have data centers also know; None where an engine was asked for.
    """
    scenario = found.scenario
    if request.get("engine") is not None or not scenario.is_training:
        return None
    able = (engine.id for engine in catalog.engines.values() if scenario.device.backend in engine.training.clusters)
    engine = next(able, None)
    if engine is None or (engine != scenario.engine and scenario.device.kind != "datacenter"):
        return None
    asked = {**request, "num_devices": scenario.num_devices, "engine": engine}
    return engine if _takes(engine, asked, catalog) else None


def _fewest(request: Request, result: Estimate, usual: Estimate, node: int, catalog: Catalog) -> Answer:
    """The answer, which names an engine that people do not use on so few devices, and how many are taken without a word
    on it: what `compare` says, too.
    """
    scenario = result.scenario
    count = scenario.num_devices
    notes: tuple[str, ...] = ()
    copies = scenario.dp if scenario.is_training else replicas(scenario)
    layout: dict[str, object] = {"dp": copies, **{name: getattr(scenario, name) for name in LAYOUT}}
    answer: dict[str, object] = {"num_devices": count, "layout": layout}
    theirs = resolution({**request, "num_devices": count}, catalog).scenario.engine
    if theirs != scenario.engine:
        request = {**request, "engine": scenario.engine}
        answer["engine"] = scenario.engine
        most = usual.scenario.num_devices
        other = f"takes {most}" if usual.scenario.engine == theirs else "does not do it"
        with_many = "" if usual.scenario.engine == theirs else f"; on {most} and more nobody needs to ask for it"
        notes = (f"with --engine {scenario.engine}; {theirs}, which people use on {count} devices, {other}{with_many}",)
    if scenario.pp > 1 and all(request.get(name) is None for name in LAYOUT):
        notes += (OTHER_LAYOUTS,)
    before = count - (1 if count <= node else node)
    beyond = {"num_devices": before, **outcome({**request, "num_devices": before}, catalog)} if before else None
    return Answer("min-devices", answer, result, beyond, notes)

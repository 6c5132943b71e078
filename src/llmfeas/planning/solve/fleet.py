"""The fewest devices of a server that keeps up with its requests and with targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...catalog.store import Catalog
from ...errors import UsageError
from ...feasibility.result import Estimate
from ...feasibility.served_load import arrivals_of, lengths_of, server_of
from ...load.targets import Targets, fewest_replicas
from ...record import dataclass, replace
from ...settle.layout import tensor_parallel_sizes
from ..change import AUTO
from ..serving_changes import quant_changes, width
from .answer import FEASIBLE, Answer, Request, estimated, outcome, without

MOST = 16384
LAYOUT = ("tp", "pp", "ep", "cp", "zero", "interleave")
MOST_STAGES = 16
LIMITS = ("rate", "ttft", "tpot")


def asks_for_load(request: Request) -> bool:
    """Whether a server is to keep up with requests, or its users' waits with targets."""
    return any(request.get(name) is not None for name in LIMITS)


def served(request: Request) -> Request:
    """The request as one about a server.

    Raises:
        UsageError: for a training.
    """
    task = request.get("task") or "inference"
    if task != "inference":
        raise UsageError("contradiction", f"--task {task} has no users", "Use --task inference.")
    return {**request, "task": task}


LEAST_BITS = 4
"""Formats of fewer bits are no server's choice."""


@dataclass(frozen=True, slots=True)
class _Fleet:
    """So many devices that do, as they were asked for, and how soon first tokens come."""

    count: int
    first_seconds: float
    asked: Request
    estimate: Estimate


def fewest_devices(request: Request, catalog: Catalog) -> Answer:
    """The fewest devices that keep up with a load and its targets, over tensor-parallel sizes, stages and replicas.

    Formats of the server too, where none is said: one of fewer bits only where it takes fewer devices. Of equal counts
    the layout whose first tokens come soonest.
    """
    request = served(request)
    formats: dict[str, object] = {}
    best, last = _fewest(request, MOST, catalog)
    published = best
    for settings, gives_up in _formats(request, catalog):
        found, _ = _fewest({**request, **settings}, MOST if best is None else best.count - 1, catalog)
        if found is not None:
            best, formats = found, {**settings, "because": gives_up}
    if best is None:
        beyond = {"num_devices": last["num_devices"], **outcome(last, catalog)}
        return Answer("min-devices", {"num_devices": None}, None, beyond, (f"not even {MOST} devices work",))
    scenario = best.estimate.scenario
    each = scenario.tp * scenario.pp
    spread = {"dp": best.count // each, **{name: getattr(scenario, name) for name in LAYOUT}}
    answer: dict[str, object] = {"num_devices": best.count, "layout": spread}
    if formats:
        answer["quant"] = scenario.quant
    fewer, notes = best.count - each, _told(formats, published)
    if not fewer:
        return Answer("min-devices", answer, best.estimate, None, notes)
    beyond = {"num_devices": fewer, **outcome({**best.asked, "num_devices": fewer}, catalog)}
    return Answer("min-devices", answer, best.estimate, beyond, notes)


def _told(formats: Mapping[str, object], published: _Fleet | None) -> tuple[str, ...]:
    """Say what a format of fewer bits gives up, and what it takes as published."""
    if not formats:
        return ()
    count = f"{published.count} devices" if published else "no count of devices works"
    return (f"{formats['because']}; as published {count} (--quant says the format)",)


def _formats(request: Request, catalog: Catalog) -> Iterator[tuple[Mapping[str, object], str]]:
    """Yield settings of a server's other formats, the widest first, and what each gives up; none where one is said."""
    probe = None if request.get("quant") is not None else _alone(request, {"num_devices": 1}, catalog)
    for change in quant_changes(probe, catalog) if probe is not None else ():
        quant = str(change.settings["quant"])
        if quant != AUTO and probe is not None and width(probe.scenario, quant) >= LEAST_BITS:
            yield change.settings, change.gives_up


def _fewest(request: Request, most: int, catalog: Catalog) -> tuple[_Fleet | None, Request]:
    """The fewest devices in one format, at most so many; and what was asked last."""
    best: _Fleet | None = None
    last: Request = {**request, "num_devices": 1}
    for layout in _layouts(request, most, catalog):
        last = {**request, **layout}
        copies = _replicas(last, most if best is None else best.count, catalog)
        if copies is None:
            continue
        count = copies * int(str(layout["num_devices"]))
        asked = {**last, "num_devices": count}
        result = estimated(asked, catalog)
        if result is not None and result.verdict.status in FEASIBLE and result.under_load is not None:
            first = result.under_load().ttft_seconds.p95
            found = _Fleet(count, first.expected if first else 0.0, asked, result)
            if best is None or (found.count, found.first_seconds) < (best.count, best.first_seconds):
                best = found
    return best, last


def _alone(request: Request, layout: Request, catalog: Catalog) -> Estimate | None:
    """One request on one copy of the model."""
    return estimated({**without(request, *LIMITS), **layout, "concurrency": 1}, catalog)


def _layouts(request: Request, most: int, catalog: Catalog) -> Iterator[dict[str, object]]:
    """Yield layouts of one copy of the model: each tensor-parallel size with the fewest stages that fit, at most so
    many devices.
    """
    probe = _alone(request, {"num_devices": 1}, catalog)
    if probe is None:
        return
    node = probe.scenario.devices_per_node
    sizes = [
        size
        for size in tensor_parallel_sizes(probe.scenario.model.architecture, min(node, 16))
        if not size & (size - 1)
    ]
    for tp in sizes if request.get("tp") is None else [int(str(request["tp"]))]:
        stages = 1
        while stages <= MOST_STAGES and tp * stages <= most:
            layout: dict[str, object] = {"tp": tp, "pp": stages, "num_devices": tp * stages}
            alone = _alone(request, layout, catalog)
            if alone is not None and alone.verdict.status in FEASIBLE:
                yield layout
                break
            stages *= 2


def _replicas(request: Request, devices: int, catalog: Catalog) -> int | None:
    """How many copies of the model on so many devices at most keep to rate and targets; None where no number does."""
    wanted = estimated(request, catalog)
    if wanted is None:
        return None
    scenario = wanted.scenario
    targets = Targets(ttft_seconds=scenario.ttft_seconds, tpot_seconds=scenario.tpot_seconds)
    server = replace(server_of(scenario), replicas=1)
    most = max(1, devices // (scenario.tp * scenario.pp))
    return fewest_replicas(server, lengths_of(scenario), arrivals_of(scenario), targets, most)[0]

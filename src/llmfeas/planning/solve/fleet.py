"""The fewest devices of a server that keeps up with its requests and with targets."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.store import Catalog
from ...errors import UsageError
from ...feasibility.result import Estimate
from ...feasibility.served_load import arrivals_of, lengths_of, server_of
from ...load.targets import Targets, fewest_replicas
from ...record import replace
from ...settle.layout import tensor_parallel_sizes
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


def fewest_devices(request: Request, catalog: Catalog) -> Answer:
    """The fewest devices that keep up with a load and its targets, over tensor-parallel sizes, stages and replicas.

    Of equal counts the one whose first tokens come soonest.
    """
    request = served(request)
    found: list[tuple[int, float, Request, Estimate]] = []
    best: Request = {**request, "num_devices": 1}
    for layout in _layouts(request, catalog):
        best = {**request, **layout}
        copies = _replicas(best, catalog)
        if copies is None:
            continue
        count = copies * int(str(layout["num_devices"]))
        asked = {**best, "num_devices": count}
        result = estimated(asked, catalog)
        if result is not None and result.verdict.status in FEASIBLE and result.under_load is not None:
            first = result.under_load().ttft_seconds.p95
            found.append((count, first.expected if first else 0.0, asked, result))
    if not found:
        last = {"num_devices": best["num_devices"], **outcome(best, catalog)}
        return Answer("min-devices", {"num_devices": None}, None, last, (f"not even {MOST} devices work",))
    count, _, chosen, result = min(found, key=lambda one: one[:2])
    scenario, each = result.scenario, result.scenario.tp * result.scenario.pp
    spread = {"dp": count // each, **{name: getattr(scenario, name) for name in LAYOUT}}
    beyond = None
    if count > each:
        fewer = count - each
        beyond = {"num_devices": fewer, **outcome({**chosen, "num_devices": fewer}, catalog)}
    return Answer("min-devices", {"num_devices": count, "layout": spread}, result, beyond)


def _layouts(request: Request, catalog: Catalog) -> Iterator[dict[str, object]]:
    """Yield layouts of one copy of the model: each tensor-parallel size with the fewest stages that fit."""
    probe = estimated({**without(request, *LIMITS), "num_devices": 1, "concurrency": 1}, catalog)
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
        while stages <= MOST_STAGES:
            layout: dict[str, object] = {"tp": tp, "pp": stages, "num_devices": tp * stages}
            alone = estimated({**without(request, *LIMITS), **layout, "concurrency": 1}, catalog)
            if alone is not None and alone.verdict.status in FEASIBLE:
                yield layout
                break
            stages *= 2


def _replicas(request: Request, catalog: Catalog) -> int | None:
    """How many copies of the model keep to rate and targets; None where no number does."""
    wanted = estimated(request, catalog)
    if wanted is None:
        return None
    scenario = wanted.scenario
    targets = Targets(ttft_seconds=scenario.ttft_seconds, tpot_seconds=scenario.tpot_seconds)
    server = replace(server_of(scenario), replicas=1)
    most = MOST // (scenario.tp * scenario.pp)
    return fewest_replicas(server, lengths_of(scenario), arrivals_of(scenario), targets, most)[0]

"""The fewest devices of a server that keeps up with its requests and with targets."""

from __future__ import annotations

from ...catalog.store import Catalog
from ...errors import LlmfeasError, UsageError
from ...settle import before_layout
from ..changes.change import AUTO
from .answer import Answer, Request, outcome, without
from .lots import LIMITS, MOST, Fleet, Fleets, Lot

LAYOUT = ("tp", "pp", "ep", "cp", "zero", "interleave")


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


def follows(request: Request, catalog: Catalog) -> bool:
    """Whether what a model answers under a load is known (`Scenario.has_load`); of a refused one the search tells."""
    try:
        return before_layout({**request, "concurrency": 2}, catalog).scenario.model.architecture.source is None
    except LlmfeasError:
        return True


def fewest_devices(request: Request, catalog: Catalog) -> Answer:
    """The fewest devices that keep up with a load and its targets, over tensor-parallel sizes, stages and replicas.

    Formats of the server too, where none is said: one of fewer bits only where it takes fewer devices. Of equal counts
    the layout whose first tokens come soonest.
    """
    request = served(request)
    best, search = fewest(request, catalog)
    if best is None:
        last = search.last or {**request, "num_devices": 1}
        beyond = {"num_devices": last["num_devices"], **outcome(last, catalog)}
        return Answer("min-devices", {"num_devices": None}, None, beyond, (f"not even {MOST} devices work",))
    scenario = best.estimate.scenario
    answer: dict[str, object] = {"num_devices": best.count, "layout": layout_of(best)}
    if best.gives_up:
        answer["quant"] = scenario.quant
    if request.get("engine") is None:
        answer["engine"] = scenario.engine
    fewer, notes = best.count - best.copy, _told(best, request, catalog)
    if not fewer:
        return Answer("min-devices", answer, best.estimate, None, notes)
    beyond = {"num_devices": fewer, **outcome({**best.asked, "num_devices": fewer}, catalog)}
    return Answer("min-devices", answer, best.estimate, beyond, notes)


def layout_of(fleet: Fleet) -> dict[str, object]:
    """How the devices of a fleet share the model."""
    scenario = fleet.estimate.scenario
    return {"dp": fleet.count // fleet.copy, **{name: getattr(scenario, name) for name in LAYOUT}}


def fewest(request: Request, catalog: Catalog, *, sure: bool = False) -> tuple[Fleet | None, Fleets]:
    """The fewest devices that do, only those that surely do if `sure`, and the search for them."""
    device = str(request["device"])
    search = Fleets(without(request, "device", "num_devices"), catalog, sure=sure)
    lot = Lot(device=device, settings={"device": device})
    return next(search.found([lot]), None), search


def _told(best: Fleet, request: Request, catalog: Catalog) -> tuple[str, ...]:
    """Say what a format of fewer bits gives up, and what it takes as published."""
    if not best.gives_up:
        return ()
    published, _ = fewest({**request, "quant": AUTO}, catalog)
    count = f"{published.count} devices" if published else "no count of devices works"
    return (f"{best.gives_up}; as published {count} (--quant says the format)",)

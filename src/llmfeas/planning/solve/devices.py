"""The fewest devices that work."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.store import Catalog
from ...errors import UsageError
from ...settle import hardware_named
from .answer import FEASIBLE, Answer, Request, estimated, outcome
from .fleet import LAYOUT, MOST, asks_for_load, fewest_devices


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

    Counts are those that people build (`counts`); the one before the answer does not work.

    Raises:
        UsageError: where a count is given.
    """
    hardware = hardware_named(str(request["device"]), catalog)
    if hardware.count is not None or request.get("num_devices") is not None:
        hint = f"Write --device {hardware.device.id} and leave --num-devices out."
        raise UsageError("contradiction", "solve min-devices searches the number of devices", hint)
    if asks_for_load(request):
        return fewest_devices(request, catalog)
    node = int(str(request.get("devices_per_node") or hardware.device.devices_per_node))
    before: int | None = None
    for count in counts(max(1, min(node, 8))):
        result = estimated({**request, "num_devices": count}, catalog)
        if result is not None and result.verdict.status in FEASIBLE:
            scenario = result.scenario
            layout = {"dp": scenario.dp, **{name: getattr(scenario, name) for name in LAYOUT}}
            beyond = None
            if before is not None:
                beyond = {"num_devices": before, **outcome({**request, "num_devices": before}, catalog)}
            return Answer("min-devices", {"num_devices": count, "layout": layout}, result, beyond)
        if result is not None and result.verdict.software == "unsupported":
            beyond = {"num_devices": count, **outcome({**request, "num_devices": count}, catalog)}
            return Answer("min-devices", {"num_devices": None}, None, beyond, ("more devices do not help",))
        before = count
    last = {"num_devices": before, **outcome({**request, "num_devices": before}, catalog)}
    return Answer("min-devices", {"num_devices": None}, None, last, (f"not even {before} devices work",))

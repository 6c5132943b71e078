"""How many devices a model's memory takes, where those asked for do not do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..catalog.store import Catalog
from ..errors import UsageError
from ..feasibility.bounds import memory_lower_bound
from ..feasibility.result import Estimate
from ..memory.peak import memory as memory_of
from ..memory.runtime import own_memory
from ..memory.usable import usable_bytes
from ..scenario import Scenario
from ..settle import as_said, resolution
from ..settle.weighed import UNWEIGHED

MOST_DEVICES = 4096
OPEN = ("tp", "pp", "ep", "num_devices")
UNLIKE = UNWEIGHED - {"host_memory_bytes"} | {"device", "tables"}
"""Settings in which two questions may differ that take equally many devices."""


class Needed:
    """Finds the scenario on as many devices as memory takes: the count asked for, else doubled until it does.

    Processors that differ in nothing but their speed take equally many: one count is found for all of them. Elsewhere
    speed may have chosen the layout, and the count is found for each.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.counts: dict[tuple[object, ...], int | None] = {}
        """Devices that questions took so far by what they depend on; None where no number would do."""

    def __call__(self, request: Mapping[str, object], estimated: Estimate) -> Scenario | None:
        """The scenario; None where no number of devices would do."""
        scenario = estimated.scenario
        if estimated.memory.verdict != "exceeds":
            return scenario
        tried = {key: value for key, value in request.items() if key not in OPEN}
        tried["device"] = scenario.device.id
        if scenario.is_training:
            tried["micro_batch"] = 1
        try:
            count = self._count(tried, scenario, alike=_alike(request, scenario))
            return None if count is None else resolution({**tried, "num_devices": count}, self.catalog).scenario
        except UsageError:
            return None

    def _count(self, tried: Mapping[str, object], scenario: Scenario, alike: tuple[object, ...] | None) -> int | None:
        """The least number of devices that do, found once for what is `alike`.

        Raises:
            UsageError: one of them cannot be asked for.
        """
        if alike is None:
            return _least(tried, scenario, self.catalog)
        if alike not in self.counts:
            self.counts[alike] = _least(tried, scenario, self.catalog)
        return self.counts[alike]


def _alike(request: Mapping[str, object], scenario: Scenario) -> tuple[object, ...] | None:
    """What the number depends on; None where more than that may."""
    device = scenario.device
    chosen_by_speed = scenario.is_training and scenario.engine_record.training.layout == "fastest"
    if device.kind != "cpu" or request["device"] != device.id or chosen_by_speed:
        return None
    settled = (value for name, value in vars(scenario).items() if name not in UNLIKE)
    rates = device.tflop_per_s
    formats = device.has_matrix_units, rates.bf16 is None, rates.fp8 is None, rates.int8 is None
    own = own_memory(scenario)
    return usable_bytes(scenario), own, device.generation, device.target, device.memory_channels, *formats, *settled


def _least(tried: Mapping[str, object], scenario: Scenario, catalog: Catalog) -> int | None:
    """The least double of the number asked for that does.

    Raises:
        UsageError: one of them cannot be asked for.
    """
    hopeless = None
    for count in _doubled(scenario):
        settled = as_said({**tried, "num_devices": count}, catalog)
        if memory_of(settled).memory.verdict != "exceeds":
            return count
        if hopeless is None:  # only now: the most devices have the most layouts to weigh
            hopeless = _hopeless_engine(as_said({**tried, "num_devices": _most(scenario)}, catalog))
        if settled.engine == hopeless:
            return None
    return None


def _most(scenario: Scenario) -> int:
    """The largest double of the number asked for that is tried."""
    return scenario.num_devices << (MOST_DEVICES // scenario.num_devices).bit_length() - 1


def _doubled(scenario: Scenario) -> Iterator[int]:
    """Yield the counts to try: doubles of the one asked for, without those that weights alone are too much for."""
    count = scenario.num_devices * 2
    while count <= MOST_DEVICES:
        if memory_lower_bound({"num_devices": count}, scenario) <= scenario.memory_bytes:
            yield count
        count *= 2


def _hopeless_engine(most: Scenario) -> str:
    """The engine of so many devices where fewer cannot do under it: what divides their number divides this one too, so
    that their tensors are no smaller. Empty where they might, as buffers of communication may be.
    """
    held = memory_of(most).memory
    tensors = held.peak_bytes.expected - held.components["runtime_bytes"] - held.components["workspace_bytes"]
    return most.engine if tensors > held.usable_bytes else ""

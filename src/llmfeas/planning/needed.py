"""How many devices a model's memory takes, where those asked for do not do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..catalog.store import Catalog
from ..errors import UsageError
from ..feasibility.bounds import Bounds
from ..feasibility.result import Estimate
from ..findings import COSTS
from ..memory.peak import memory as memory_of
from ..memory.runtime import own_memory
from ..memory.usable import usable_bytes
from ..record import dataclass
from ..scenario import BATCH, Scenario
from ..settle import as_said, before_layout, resolution

MOST_DEVICES = 4096
FINEST = 16
"""Into no more parts a count is divided to find the fewest."""
PATIENCE = 3
"""Counts that do not do before it is looked whether any does: the most devices have the most layouts to weigh."""
OPEN = ("tp", "pp", "ep", "num_devices")
UNLIKE = COSTS | {"device", "tables", "origins", "shared", "engine_record", "asked_by", *BATCH}
"""Settings in which two questions may differ whose memory holds equally much."""


@dataclass(frozen=True, slots=True)
class LookedAt:
    """Whether the memory of so many devices does, and of those that have no more than tensors in it."""

    engine: str
    fits: bool
    tensors_fit: bool


class Needed:
    """Finds the scenario on the fewest devices that memory takes: the count asked for, else doubled until it does, then
    counted from the last that did not, by whole machines.

    Devices that differ in nothing but their speed hold equally much, though it may choose another layout: what a
    training chooses fits if any layout does. They are looked at once; so are processors that serve, while cards that
    serve are joined by links of their own.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.held: dict[tuple[object, ...], LookedAt] = {}
        """What was found so far, by what it depends on."""

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
            count = self._least(tried, scenario)
            return None if count is None else resolution({**tried, "num_devices": count}, self.catalog).scenario
        except UsageError:
            return None

    def _least(self, tried: Mapping[str, object], scenario: Scenario) -> int | None:
        """The least number that does: between the doubles of the number asked for of which one does not and one does.

        Raises:
            UsageError: one of them cannot be asked for.
        """
        hopeless = ""
        for failed, count in enumerate(_doubled(scenario)):
            held = self._held({**tried, "num_devices": count})
            if held.fits:
                between = _between(count, max(1, min(scenario.devices_per_node, 8)))
                return next((n for n in between if self._held({**tried, "num_devices": n}).fits), count)
            if failed == PATIENCE:
                hopeless = _hopeless_engine(self._held({**tried, "num_devices": _most(scenario)}))
            if held.engine == hopeless:
                return None
        return None

    def _held(self, question: Mapping[str, object]) -> LookedAt:
        """What memory says, found once for what is alike.

        Raises:
            UsageError: it cannot be asked for.
        """
        alike = _alike(question, before_layout(question, self.catalog).scenario)
        if alike is None:
            return _found(question, self.catalog)
        if alike not in self.held:
            self.held[alike] = _found(question, self.catalog)
        return self.held[alike]


def _alike(question: Mapping[str, object], scenario: Scenario) -> tuple[object, ...] | None:
    """What memory depends on, of a question that has no layout yet; None where more than that may."""
    device = scenario.device
    if question["device"] != device.id or not (scenario.is_training or device.kind == "cpu"):
        return None
    settled = (value for name, value in vars(scenario).items() if name not in UNLIKE)
    batch = (question.get(name) for name in BATCH)
    return device.backend, device.is_unified, usable_bytes(scenario), own_memory(scenario), *batch, *settled


def _found(question: Mapping[str, object], catalog: Catalog) -> LookedAt:
    settled = as_said(question, catalog)
    memory = memory_of(settled).memory
    tensors = memory.peak_bytes.expected - memory.components["runtime_bytes"] - memory.components["workspace_bytes"]
    return LookedAt(settled.engine, memory.verdict != "exceeds", tensors <= memory.usable_bytes)


def _most(scenario: Scenario) -> int:
    """The largest double of the number asked for that is tried."""
    return scenario.num_devices << (MOST_DEVICES // scenario.num_devices).bit_length() - 1


def _doubled(scenario: Scenario) -> Iterator[int]:
    """Yield the counts to try: doubles of the one asked for, without those that weights alone are too much for."""
    count = scenario.num_devices * 2
    while count <= MOST_DEVICES:
        if Bounds({"num_devices": count}, scenario).least_device_bytes <= scenario.memory_bytes:
            yield count
        count *= 2


def _between(count: int, node: int) -> range:
    """Numbers from half of `count` to it: inside a machine all, beyond of whole machines, not too many."""
    step = 1 if count <= node else node * max(1, count // (FINEST * node))
    return range(count // 2 + 1 if step == 1 else (count // 2 // step + 1) * step, count, step)


def _hopeless_engine(most: LookedAt) -> str:
    """The engine of so many devices where fewer cannot do under it: what divides their number divides this one too, so
    that their tensors are no smaller. Empty where they might, as buffers of communication may be.
    """
    return "" if most.tensors_fit else most.engine

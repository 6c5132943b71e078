"""What was found out for one scenario and holds for others, which differ in their batch, or in their hardware too."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, wraps
from operator import attrgetter
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from .record import dataclass, fields
from .scenario import BATCH, Scenario

MAX_SHARED = 64
"""Findings that scenarios share at most."""
MAX_COMMON = 512
"""Questions without their hardware whose findings are kept."""

COSTS: Final = frozenset(
    (
        *("price_usd_per_hour", "price_provider", "price_as_of", "purchase_usd", "lifetime_seconds"),
        *("electricity_usd_per_kwh", "pue", "region", "offer", "session_hours", "weekly_hours", "device_mtbf_seconds"),
        *("deadline_seconds", "budget_usd"),
    )
)
"""What a job costs and when it has to be done: neither its memory nor its speed depend on it."""
HARDWARE: Final = COSTS | {
    *("device", "devices_per_node", "network_bytes_per_s", "memory_bytes", "reserve_bytes", "wired_limit_bytes"),
    *("host_memory_bytes", "host_gb_per_s", "power_limit_w", "storage_gb_per_s", "loader_tokens_per_s"),
}
"""What a job runs on, but for the number of devices."""
OWN: Final = frozenset((*BATCH, "asked_by", "origins", "shared"))
"""What else belongs to one scenario alone."""

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """All of a device that what it is to run depends on, however much memory it has and however fast it is."""

    backend: str
    is_unified: bool


def cached_across_batches(function: Callable[Concatenate[Scenario, P], R]) -> Callable[Concatenate[Scenario, P], R]:
    """Keep what a function finds in a scenario, for all that differ from it in their batch alone.

    The function looks at no setting of `BATCH` but through its further arguments, which are few and hashable. A
    scenario that it gives is that of some batch (`in_batch_of`).
    """

    @wraps(function)
    def kept(scenario: Scenario, *more: Any) -> R:
        key = (function, *more) if more else function
        try:  # dearer where there is nothing yet, but it is asked ten times as often
            return scenario.shared[key]  # type: ignore[no-any-return]
        except KeyError:
            pass
        if len(scenario.shared) >= MAX_SHARED:
            scenario.shared.clear()
        found = scenario.shared[key] = function(scenario, *more)  # type: ignore[call-arg]
        return found

    return kept  # type: ignore[return-value]


def cached_across_devices(function: Callable[Concatenate[Scenario, P], R]) -> Callable[Concatenate[Scenario, P], R]:
    """Keep what a function finds in a scenario, for all that differ from it in their batch and hardware alone.

    Of the hardware it is shown a `DeviceKind`, and of the batch nothing where it has no further arguments, which are
    then what it looks at of it; what it asks for beyond that fails.
    """

    @wraps(function)
    def kept(scenario: Scenario, *more: Any) -> R:
        key = (function, *more) if more else function
        common = scenario.shared.get(_COMMON)
        if common is None:
            common = _common(scenario)
        try:
            return common[key]  # type: ignore[no-any-return]
        except KeyError:
            pass
        if len(common) >= MAX_SHARED:
            common.clear()
        shown = _showing_less(scenario, common, BATCH if more else ())
        found = common[key] = function(shown, *more)  # type: ignore[call-arg]
        return found

    return kept  # type: ignore[return-value]


_COMMON: Final = "common"
_SEEN: Final = "seen"
_questions: dict[tuple[object, ...], dict[object, Any]] = {}
"""Findings so far, by all settings but those of the hardware."""


def _common(scenario: Scenario) -> dict[object, Any]:
    """What is known of the question on any device of the kind."""
    device = scenario.device
    key = device.backend, device.is_unified, *_settings()(scenario)
    found = _questions.get(key)
    if found is None:
        if len(_questions) >= MAX_COMMON:  # the oldest goes; it refers to itself
            _questions.pop(next(iter(_questions)), {}).clear()
        found = _questions[key] = {}
    scenario.shared[_COMMON] = found
    return found


@cache
def _settings() -> attrgetter[tuple[object, ...]]:
    """What reads all settings that are neither hardware nor a scenario's own."""
    return attrgetter(*(each.name for each in fields(Scenario) if each.name not in HARDWARE | OWN))


_UNSEEN: Final[Any] = object()
"""Stands for what no finding for many devices may look at."""
_HIDDEN: Final = dict.fromkeys((*HARDWARE, *BATCH, "origins"), _UNSEEN)


def _showing_less(scenario: Scenario, common: dict[object, Any], batch: Collection[str]) -> Scenario:
    """The scenario as a finding for many devices may see it, whose own findings are for all of them too; `batch`: what
    it may see of that.
    """
    seen = common.get(_SEEN)
    if seen is None:
        kind = DeviceKind(scenario.device.backend, scenario.device.is_unified)
        seen = common[_SEEN] = {**vars(scenario), **_HIDDEN, "device": kind, "shared": None}
    twin = object.__new__(Scenario)
    twin.__dict__ = shown = seen.copy()
    shown["shared"] = common
    for name in batch:
        shown[name] = getattr(scenario, name)
    return twin

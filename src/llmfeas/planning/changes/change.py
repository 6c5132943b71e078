"""One step away from what was asked, and the axes along which such steps lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ...catalog.store import Catalog
from ...feasibility.result import Estimate
from ...record import dataclass
from ...scenario import Scenario

AUTO = "auto"
"""The value that means: as if nothing had been said."""
FULL = ("pretrain", "finetune")
"""Tasks and methods that train all weights."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One step away from what was asked: the settings it changes, and the price that is paid for it.

    Compared by identity, like an axis: what is known of a change or of several is kept by the changes themselves.
    """

    settings: Mapping[str, object]
    gives_up: str
    pain: float = 2.0
    """How little a person wants it, beside others of its tier."""
    tier: int = 0
    """Its place among the tiers of data/changes.yaml: 0 costs nothing."""
    heavier: bool = False
    """Buys speed with memory: no use where memory alone is short."""
    alone: tuple[str, ...] = ()
    """Settings that no other change may touch beside this one."""


def change(
    scenario: Scenario,
    kind: str,
    settings: Mapping[str, object],
    gives_up: str = "",
    *,
    more: float = 0.0,
    alone: tuple[str, ...] = (),
) -> Change:
    """A change of a kind of data/changes.yaml, and what it gives up where the kind does not say it; `more` is what it
    hurts beyond its kind. What a kind says may name settings, for their values.
    """
    order = scenario.tables.changes
    cost = order.changes[kind]
    text = gives_up or cost.gives_up
    for name, value in settings.items():
        text = text.replace(f"{{{name}}}", str(value))
    return Change(settings, text, cost.pain + more, tier_of(scenario, cost.tier), cost.heavier, alone)


def tier_of(scenario: Scenario, name: str) -> int:
    """The place of a tier among those of data/changes.yaml."""
    return tuple(scenario.tables.changes.tiers).index(name)


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One thing that can change, with its alternatives: mild to harsh, the one that saves most memory last."""

    name: str
    alternatives: tuple[Change, ...]


Source = Callable[[Estimate, Catalog], Iterator[Change]]
"""Yields the alternatives of one axis."""

Changes = tuple[Change, ...]


def settings_of(changes: Sequence[Change]) -> dict[str, object]:
    """All settings that the changes set."""
    return {name: value for change in changes for name, value in change.settings.items()}


def clash(changes: Sequence[Change]) -> bool:
    """Whether one change touches what another has for itself."""
    pairs = [(one, other) for one in changes for other in changes if one is not other]
    return any(name in other.settings for one, other in pairs for name in one.alone)


def picked(axes: Sequence[Axis], pick: Callable[[Changes], Change]) -> Changes | None:
    """Pick an alternative of each axis among those that go together, the last axis first; None where none do."""
    chosen: Changes = ()
    for axis in reversed(axes):
        fitting = tuple(change for change in axis.alternatives if not clash((change, *chosen)))
        if not fitting:
            return None
        chosen = (pick(fitting), *chosen)
    return chosen


def together(changes: Sequence[Change]) -> Changes:
    """Leave out of changes what cannot go with those before it."""
    kept: Changes = ()
    for change in changes:
        if not clash((*kept, change)):
            kept = (*kept, change)
    return kept


def changes_format(found: Scenario, asked: Scenario, changes: Sequence[Change]) -> bool:
    """Whether changes of a server's other settings bring another format in, which is a way of its own."""
    hardware = ("quant", "engine", "task", "device", "memory", "num_devices")
    open_ = any(name in change.settings for change in changes for name in hardware)
    named = asked.was_given("engine") and not asked.engine_record.serving.automatic
    return named and not open_ and not asked.is_training and found.quant != asked.quant

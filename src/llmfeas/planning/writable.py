"""Whether what an engine's launchers can write holds a change: nothing else is worth proposing for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..record import replace
from ..scenario import Scenario
from .expressed import expressed_by

if TYPE_CHECKING:
    from .expressed.expressible import Expressible


def is_written(scenario: Scenario, changed: Collection[str]) -> bool:
    """Whether a launcher of the engine writes what changed; yes where none would write the rest, so that none tells."""
    told = _told(scenario, changed)
    return True in told or False not in told


def is_surely_written(scenario: Scenario, changed: Collection[str]) -> bool:
    """Whether a launcher of the engine writes what changed, and the rest."""
    return True in _told(scenario, changed)


def expressions(launchers: Iterable[str]) -> Iterator[Expressible]:
    """What launchers can express, those of one's own too, which alone are imported to tell."""
    for launcher in launchers:
        if (found := expressed_by(launcher) or _own(launcher)) is not None:
            yield found


def _own(launcher: str) -> Expressible | None:
    from . import launch

    own = launch.LAUNCHERS.get(launcher)
    return None if own is None else own.expressed


def _told(scenario: Scenario, changed: Collection[str]) -> list[bool | None]:
    own = expressions(scenario.engine_record.launchers)
    return [_writes(each, scenario, changed) for each in own if scenario.task in each.tasks]


def _writes(engine: Expressible, scenario: Scenario, changed: Collection[str]) -> bool | None:
    """Whether a launcher has no objection to what changed; None where it objects to something else.

    What nobody said gives way, as it does in a launch.
    """
    for _ in scenario.origins:
        objection = engine.refused(scenario)
        if objection is None or objection.setting in changed:
            return objection is None
        if objection.instead is None or scenario.was_given(objection.setting):
            return None
        given: dict[str, Any] = {objection.setting: objection.instead}
        scenario = replace(scenario, **given)
    return None

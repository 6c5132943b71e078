"""One step away from what was asked, and the axes along which such steps lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ..catalog.store import Catalog
from ..estimate.result import Estimate
from ..record import dataclass

AUTO = "auto"
"""The value that means: as if nothing had been said."""


@dataclass(frozen=True, slots=True)
class Change:
    """One step away from what was asked: the settings it changes, and the price that is paid for it."""

    settings: Mapping[str, object]
    gives_up: str
    pain: float = 2.0
    """How little a person wants it: 0 costs nothing, 9 is another job than the one that was asked for."""
    heavier: bool = False
    """Buys speed with memory: no use where memory alone is short."""
    alone: tuple[str, ...] = ()
    """Settings that no other change may touch beside this one."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One thing that can change, with its alternatives: mild to harsh, the one that saves most memory last."""

    name: str
    alternatives: tuple[Change, ...]


Source = Callable[[Estimate, Catalog], Iterator[Change]]
"""Yields the alternatives of one axis."""

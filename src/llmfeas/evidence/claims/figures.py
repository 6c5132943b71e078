"""Figures that claims read beside those of an estimate, with their units."""

from __future__ import annotations

from collections.abc import Mapping

from ...check.figures import COUNT, FIGURES, FLOP, GIBIBYTES, SHARE, USD, Figure, Unit
from ...estimate.result import Estimate
from ...ranges import Range


def _nothing(estimate: Estimate) -> None:
    return None


def _figure(name: str, unit: Unit) -> Figure:
    return Figure(name=name, unit=unit, help="Read from the catalog or computed.", read=_nothing)


_MORE: Mapping[Unit, tuple[str, ...]] = {
    COUNT: (
        *("active", "active_min", "active_max", "ratio", "hours_per_week", "hours_per_session"),
        *("tokens_wanted", "tokens_per_parameter", "parameters_wanted", "num_devices"),
    ),
    USD: ("usd_per_hour",),
    GIBIBYTES: ("memory_gib",),
    FLOP: ("flop",),
    SHARE: ("share",),
}

KNOWN: Mapping[str, Figure] = {
    **FIGURES,
    **{name: _figure(name, unit) for unit, names in _MORE.items() for name in names},
}
"""Every figure that a claim may read, by name."""

Value = Range | float | str | None

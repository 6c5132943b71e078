"""Our figures beside measurements: error, bias, coverage and width by kind and backend, and the rows we miss most."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from ..catalog.hardware import find_hardware
from ..catalog.search import find_backend
from ..catalog.store import catalog
from ..errors import LlmfeasError, UsageError
from ..text import printable
from .compare import Comparison, compared
from .measurements import KINDS, Measurement, measurement_files, read_measurements
from .measurements import Backend as RanOn

RAN_ON: tuple[str, ...] = get_args(RanOn)
SAME = {"habana": "hpu"}
"""Names of software that mean a backend of the catalog."""
SOFTWARE = {"metal": ("mlx",), "xpu": ("sycl",)}
"""Software that runs on one backend of the catalog alone, by that backend; measurements tell it apart."""

Progress = Callable[[int], None]
"""Told of each row that is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One kind on one backend (`all`: every backend). Errors are shares of the measured value; None: not meaningful."""

    kind: str
    backend: str
    rows: int
    groups: int
    sources: int
    median_error: float
    p90_error: float
    bias: float | None
    """Median of ours over measured, less 1."""
    inside: float | None
    """Share of measurements inside our ranges (`fits`: share that we answer rightly)."""
    width: float | None
    """Median of high over low."""
    naive_median_error: float | None
    naive_p90_error: float | None

    def to_dict(self, *, naive: bool) -> dict[str, object]:
        """Give the line as the JSON contract shapes it; the rule of thumb beside it where asked for."""
        line: dict[str, object] = {
            name: getattr(self, name)
            for name in (
                "kind",
                "backend",
                "rows",
                "groups",
                "sources",
                "median_error",
                "p90_error",
                "bias",
                "inside",
                "width",
            )
        }
        if naive:
            line["naive_median_error"] = self.naive_median_error
            line["naive_p90_error"] = self.naive_p90_error
        return line


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """The whole answer: lines by kind and backend, the rows that we miss most, the rows that could not be used."""

    lines: tuple[Line, ...]
    worst: tuple[Comparison, ...]
    errors: tuple[LlmfeasError, ...]
    naive: bool

    def to_dict(self) -> dict[str, object]:
        """Give the result as the JSON contract shapes it."""
        result: dict[str, object] = {"kinds": [line.to_dict(naive=self.naive) for line in self.lines]}
        if self.worst:
            result["worst"] = [worst_row(comparison) for comparison in self.worst]
        if self.errors:
            result["errors"] = [error.to_dict() for error in self.errors]
        return result


def worst_row(comparison: Comparison) -> dict[str, object]:
    """Give a row that we miss, with its reason if known."""
    measurement = comparison.measurement
    return {
        "id": measurement.id,
        "kind": comparison.kind,
        "backend": comparison.backend,
        "group": measurement.group,
        "quantity": comparison.quantity,
        "measured": comparison.measured,
        "found": comparison.found.to_dict(),
        "error": comparison.error,
        "source": measurement.source,
        "reason": measurement.reason or None,
    }


def quantile(values: Sequence[float], share: float) -> float:
    """Give the value below which a share of the values lies (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def line_of(kind: str, backend: str, comparisons: Sequence[Comparison]) -> Line:
    """Summarise comparisons of one kind."""
    errors = [comparison.error for comparison in comparisons]
    thumbs = [comparison.naive_error for comparison in comparisons if comparison.naive_error is not None]
    ranged = kind not in ("fits", "tensor-memory", "flops", "cache", "file-size")
    ratios = [comparison.found.expected / comparison.measured for comparison in comparisons if comparison.measured]
    inside = [comparison.inside for comparison in comparisons]
    return Line(
        kind=kind,
        backend=backend,
        rows=len(comparisons),
        groups=len({comparison.measurement.group for comparison in comparisons}),
        sources=len({comparison.measurement.source for comparison in comparisons}),
        median_error=statistics.median(errors),
        p90_error=quantile(errors, 0.9),
        bias=None if kind == "fits" or not ratios else statistics.median(ratios) - 1,
        inside=sum(inside) / len(inside) if ranged or kind == "fits" else None,
        width=statistics.median(comparison.width for comparison in comparisons) if ranged else None,
        naive_median_error=statistics.median(thumbs) if thumbs else None,
        naive_p90_error=quantile(thumbs, 0.9) if thumbs else None,
    )


def lines_of(comparisons: Iterable[Comparison]) -> list[Line]:
    """Summarise by kind, then by kind and backend."""
    found: dict[tuple[int, str], list[Comparison]] = {}
    for comparison in comparisons:
        order = KINDS.index(comparison.kind)
        for backend in ("all", comparison.backend):
            found.setdefault((order, backend), []).append(comparison)
    keys = sorted(found, key=lambda key: (key[0], key[1] != "all", -len(found[key]), key[1]))
    return [line_of(KINDS[order], backend, found[order, backend]) for order, backend in keys]


def backends_named(names: Sequence[str]) -> frozenset[str]:
    """Give what measurements call the backends of these names: the catalog's, its aliases, or that of a software.

    Raises:
        UsageError: `unknown-backend`, with all that are known.
    """
    known, found = catalog().backends, set[str]()
    for name in names:
        text = name.strip().lower()
        if text in RAN_ON and text not in known:
            found.add(SAME.get(text, text))
            continue
        try:
            meant = str(find_backend(text, catalog()).record.id)
        except UsageError:
            able = tuple(dict.fromkeys((*known, *(text for text in RAN_ON if text not in SAME))))
            hint = f"Backends: {', '.join(able)}."
            raise UsageError("unknown-backend", f"unknown backend '{printable(name, 40)}'", hint, able) from None
        found |= {meant, *SOFTWARE.get(meant, ())}
    return frozenset(found)


def _backend_of(row: Measurement) -> str | None:
    """Name what a row ran on: as it says, else the backend of its device; None where that is not known."""
    if row.backend is not None:
        return row.backend
    try:
        return find_hardware(str(row.scenario.get("device", "")), catalog()).device.backend
    except UsageError:
        return None


def wanted(
    measurements: Iterable[Measurement], backends: Sequence[str], devices: Sequence[str], *, variants: bool
) -> list[Measurement]:
    """Keep the rows of some backends and devices; variants only where asked for.

    Raises:
        UsageError: an unknown backend.
    """
    named = backends_named(backends)
    return [
        row
        for row in measurements
        if (variants or not row.variant)
        and (not named or _backend_of(row) in named)
        and (not devices or row.scenario.get("device") in devices)
    ]


def backtest(
    *,
    kinds: Sequence[str] = (),
    backends: Sequence[str] = (),
    devices: Sequence[str] = (),
    worst: int = 0,
    file: Path | None = None,
    naive: bool = False,
    variants: bool = False,
    progress: Progress | None = None,
) -> Backtest:
    """Run the calculator on measurements, the built-in ones or those of `file`.

    Raises:
        UsageError: an unknown kind or backend, or nothing left to compare.
        DataError: the file cannot be read at all.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError("unknown-kind", f"unknown kind '{kind}'", f"Kinds: {', '.join(KINDS)}.", KINDS)
    rows, bad = read_measurements([file] if file else measurement_files())
    errors: list[LlmfeasError] = list(bad)
    found: list[Comparison] = []
    chosen = wanted(rows, backends, devices, variants=variants)
    for row in chosen:
        if progress is not None:
            progress(1)
        try:
            found += [item for item in compared(row) if not kinds or item.kind in kinds]
        except LlmfeasError as error:
            errors.append(error)
    if not found and not errors:
        raise UsageError("nothing-to-compare", "no measurement is left to compare", "Ask for other kinds or devices.")
    missed = sorted(found, key=_miss, reverse=True)[:worst]
    return Backtest(lines=tuple(lines_of(found)), worst=tuple(missed), errors=tuple(errors), naive=naive)


def _miss(comparison: Comparison) -> float:
    if comparison.kind == "fits":
        return comparison.error
    return abs(comparison.log_error)

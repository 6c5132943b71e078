"""Our figures beside measurements: error, bias, coverage and width by kind and backend, and the rows we miss most."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from ..catalog.document import Document, read_yaml
from ..catalog.hardware import find_hardware
from ..catalog.search import find_backend
from ..catalog.store import catalog
from ..catalog.types import Count, Fraction, PositiveOrZero, Strict
from ..catalog.validation import validated
from ..contract import ABSENT, Absent, MayBeNull, Published, hidden, published
from ..errors import LlmfeasError, UsageError
from ..ranges import Range
from ..record import dataclass
from ..text import printable
from .compare import ComparedFigure, compared, may_tell
from .measurements import KINDS, Kind, Measurement, measurement_files, read_measurements
from .measurements import Backend as RanOn

RAN_ON: tuple[str, ...] = get_args(RanOn)
SAME = {"habana": "hpu"}
"""Names of software that mean a backend of the catalog."""
SOFTWARE = {"metal": ("mlx",), "xpu": ("sycl",)}
"""Software that runs on one backend of the catalog alone, by that backend; measurements tell it apart."""

Progress = Callable[[int], None]
"""Told of each row that is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestLine(Published):
    """One kind on one backend (`all`: every backend). Errors are shares of the measured value; null: not meaningful."""

    kind: str
    backend: str
    rows: int
    groups: int
    sources: int
    median_error: MayBeNull[float]
    p90_error: MayBeNull[float]
    bias: float | None
    """Median of ours over measured, less 1."""
    inside: float | None
    """Share of measurements inside our ranges (`fits`: share that we answer rightly)."""
    width: float | None
    """Median of high over low."""
    naive_median_error: float | Absent | None = ABSENT
    """That of the rule of thumb, where it was asked for."""
    naive_p90_error: float | Absent | None = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedRow(Published):
    """A row that we miss, with its reason if known."""

    id: str
    kind: str
    backend: str
    group: str
    quantity: str
    measured: float
    found: Range
    error: float
    """Share of the measured value; for `fits` 0 or 1."""
    source: str
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest(Published):
    """The whole answer: lines by kind and backend, the rows that we miss most, the rows that could not be used.

    Or, where that is what was asked, how far off answers were when sources were first asked (`blind`).
    """

    kinds: tuple[BacktestLine, ...]
    worst: tuple[MissedRow, ...] | Absent
    blind: tuple[BlindScore, ...] | Absent = ABSENT
    faults: tuple[LlmfeasError, ...] = hidden()

    @published
    def errors(self) -> tuple[LlmfeasError, ...] | Absent:
        """What is wrong with the rows that could not be used."""
        return self.faults or ABSENT


def missed_row(comparison: ComparedFigure) -> MissedRow:
    """The row of a comparison."""
    measurement = comparison.measurement
    return MissedRow(
        id=measurement.id,
        kind=comparison.kind,
        backend=comparison.backend,
        group=measurement.group,
        quantity=comparison.quantity,
        measured=comparison.measured,
        found=comparison.found,
        error=comparison.error,
        source=measurement.source,
        reason=measurement.reason or None,
    )


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which a share of the values lies (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def line_of(kind: str, backend: str, comparisons: Sequence[ComparedFigure], *, naive: bool) -> BacktestLine:
    """Summarise comparisons of one kind; `naive`: the rule of thumb beside ours."""
    errors = [comparison.error for comparison in comparisons]
    thumbs = [comparison.naive_error for comparison in comparisons if comparison.naive_error is not None]
    ranged = kind not in ("fits", "tensor-memory", "flops", "cache", "file-size")
    ratios = [comparison.found.expected / comparison.measured for comparison in comparisons if comparison.measured]
    inside = [comparison.inside for comparison in comparisons]
    return BacktestLine(
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
        naive_median_error=(statistics.median(thumbs) if thumbs else None) if naive else ABSENT,
        naive_p90_error=(quantile(thumbs, 0.9) if thumbs else None) if naive else ABSENT,
    )


def lines_of(comparisons: Iterable[ComparedFigure], *, naive: bool) -> tuple[BacktestLine, ...]:
    """Summarise by kind, then by kind and backend."""
    groups: dict[tuple[int, str], list[ComparedFigure]] = {}
    for comparison in comparisons:
        order = KINDS.index(comparison.kind)
        for backend in ("all", comparison.backend):
            groups.setdefault((order, backend), []).append(comparison)
    keys = sorted(groups, key=lambda key: (key[0], key[1] != "all", -len(groups[key]), key[1]))
    return tuple(line_of(KINDS[order], backend, groups[order, backend], naive=naive) for order, backend in keys)


def backends_named(names: Sequence[str]) -> frozenset[str]:
    """What measurements call the backends of these names: the catalog's, its aliases, or that of a software.

    Raises:
        UsageError: `unknown-backend`, with all that are known.
    """
    known, meant_names = catalog().backends, set[str]()
    for name in names:
        text = name.strip().lower()
        if text in RAN_ON and text not in known:
            meant_names.add(SAME.get(text, text))
            continue
        try:
            meant = str(find_backend(text, catalog()).record.id)
        except UsageError:
            able = tuple(dict.fromkeys((*known, *(text for text in RAN_ON if text not in SAME))))
            hint = f"Backends: {', '.join(able)}."
            raise UsageError("unknown-backend", f"unknown backend '{printable(name, 40)}'", hint, able) from None
        meant_names |= {meant, *SOFTWARE.get(meant, ())}
    return frozenset(meant_names)


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
    _check(kinds, KINDS)
    rows, bad = read_measurements([file] if file else measurement_files())
    errors: list[LlmfeasError] = list(bad)
    comparisons: list[ComparedFigure] = []
    chosen = wanted(rows, backends, devices, variants=variants)
    for row in (row for row in chosen if may_tell(row, kinds)):
        if progress is not None:
            progress(1)
        try:
            comparisons += [item for item in compared(row) if not kinds or item.kind in kinds]
        except LlmfeasError as error:
            errors.append(error)
    if not comparisons and not errors:
        raise UsageError("nothing-to-compare", "no measurement is left to compare", "Ask for other kinds or devices.")
    missed = tuple(map(missed_row, sorted(comparisons, key=_miss, reverse=True)[:worst]))
    return Backtest(kinds=lines_of(comparisons, naive=naive), worst=missed or ABSENT, faults=tuple(errors))


def asked_blind(kinds: Sequence[str] = (), file: Path | None = None) -> Backtest:
    """How far off answers were when sources were first asked, those of some kinds.

    Raises:
        UsageError: an unknown kind, or no score of these.
        DataError: a file cannot be read.
    """
    _check(kinds, BLIND_KINDS)
    scores = blind_scores([file] if file else measurement_files())
    left = tuple(score for score in scores if not kinds or score.kind in kinds)
    if not left:
        raise UsageError("nothing-to-compare", "no blind score is written down there", "Ask for other kinds or files.")
    return Backtest(kinds=(), worst=ABSENT, blind=left, faults=())


def _check(kinds: Sequence[str], known: tuple[str, ...]) -> None:
    for kind in kinds:
        if kind not in known:
            named = printable(kind, 40)
            raise UsageError("unknown-kind", f"unknown kind '{named}'", f"Kinds: {', '.join(known)}.", known)


def _miss(comparison: ComparedFigure) -> float:
    if comparison.kind == "fits":
        return comparison.error
    return abs(comparison.log_error)


BlindKind = Kind | Literal["output"]
"""A kind of figure; `output`: tokens of a server under load, which a backtest counts with decoding."""
BLIND_KINDS: tuple[str, ...] = (*KINDS, "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindLine(Strict):
    """One kind of figure of a file, as it was scored then. Errors are shares of the measured value."""

    kind: BlindKind
    rows: Count
    of: str = ""
    """Which of the file's sources, where it is not all of them."""
    median_error: PositiveOrZero | None = None
    p90_error: PositiveOrZero | None = None
    inside: Fraction | None = None
    """Share of measurements inside our ranges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind(Strict):
    """What a file of measurements says under `blind`."""

    asked: str
    of: str
    scores: Sequence[BlindLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindScore(Published):
    """One kind of figure of a file of measurements when it was first asked. Errors are shares of the measured value."""

    asked: str
    """The day."""
    file: str
    of: str
    """What ran."""
    kind: str
    rows: int
    median_error: float | None
    """null: it was not written down."""
    p90_error: float | None
    inside: float | None


def blind_scores(paths: Iterable[Path]) -> tuple[BlindScore, ...]:
    """Read the scores of measurement files, the newest first.

    Raises:
        DataError: a file is missing, no YAML, or says something else under `blind`.
    """
    found = [score for path in paths for score in _scores(path.stem, read_yaml(path))]
    return tuple(sorted(found, key=lambda score: score.asked, reverse=True))


def _scores(file: str, document: Document) -> Iterable[BlindScore]:
    data: Any = document.data
    if not isinstance(data, Mapping) or "blind" not in data:
        return
    said = validated(Blind, data["blind"], document, ("blind",))
    for line in said.scores:
        yield BlindScore(
            asked=said.asked,
            file=file,
            of=line.of or said.of,
            kind=line.kind,
            rows=line.rows,
            median_error=line.median_error,
            p90_error=line.p90_error,
            inside=line.inside,
        )

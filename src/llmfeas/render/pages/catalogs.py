"""The listings of the catalogs: which columns each has, and what stands in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

from ...text import printable
from ...units import digits, format_count, format_usd
from ..report import Column, Json, Phrase, Report, Table

Columns = Sequence[tuple[Column, Callable[[Json], str]]]
"""The columns of a listing, each with the text of its cell in a row."""


def _words(key: str, prose: bool = False, spare: bool = False) -> tuple[Column, Callable[[Json], str]]:
    return Column(title=key, prose=prose, spare=spare), itemgetter(key)


def _figure(
    title: str, key: str, written: Callable[[float], str], spare: bool = False
) -> tuple[Column, Callable[[Json], str]]:
    return Column(title=title, figures=True, spare=spare), lambda row: "" if row[key] is None else written(row[key])


def _five_digits(value: float) -> str:
    return digits(value, 5)


def _price(usd: float) -> str:
    return format_usd(usd).removeprefix("$")


NAME = _words("name", prose=True, spare=True)
"""Stands last, where it may be long, and goes first: the id says nearly the same."""
DEVICES: Columns = (
    _words("id"),
    _figure("GiB", "memory_gib", _five_digits),
    _figure("GB/s", "bandwidth_gb_per_s", _five_digits),
    _figure("TFLOP/s", "tflop_per_s_16bit", _five_digits, spare=True),
    _figure("$/h", "usd_per_hour", _price),
    _words("backend", spare=True),
    NAME,
)
MODELS: Columns = (
    _words("id"),
    _figure("parameters", "parameters", format_count),
    (
        Column(title="active", figures=True),
        lambda row: "" if row["active_parameters"] == row["parameters"] else format_count(row["active_parameters"]),
    ),
    _figure("context", "context", lambda tokens: f"{tokens:,}", spare=True),
    NAME,
)
BACKENDS: Columns = (_words("id"), _words("name"), _words("vendor"), _words("software", prose=True))
OFFERS: Columns = (
    _words("id"),
    (Column(title="devices"), lambda row: f"{row['count']} x {row['device']}"),
    _figure("$/h", "usd_per_hour", _price),
    _figure("h/session", "hours_per_session", digits, spare=True),
    _figure("h/week", "hours_per_week", digits, spare=True),
    NAME,
)
LISTINGS: Mapping[str, Columns] = {"devices": DEVICES, "models": MODELS, "backends": BACKENDS, "offers": OFFERS}
LEGENDS = {
    "devices": "TFLOP/s: dense, in 16 bits with fp32 accumulation where it has that. $/h: what an estimate takes.",
}
"""How to read the columns of a listing."""


def report(rows: Sequence[Json], plural: str) -> Report:
    """The rows of the catalog `plural` under its columns."""
    title = f"{len(rows)} {plural.removesuffix('s') if len(rows) == 1 else plural}"
    return listing(title, LISTINGS[plural], rows, LEGENDS.get(plural, ""))


def listing(title: str, columns: Columns, rows: Sequence[Json], legend: str = "") -> Report:
    """Rows under columns, or the title alone where there is none; the texts are made safe to show."""
    if not rows:
        return Report(title=title)
    cells = tuple(tuple(Phrase(printable(text(row), 120)) for _, text in columns) for row in rows)
    table = Table(columns=tuple(column for column, _ in columns), rows=cells)
    return Report(title=title, context=(legend,) if legend else (), blocks=(table,))

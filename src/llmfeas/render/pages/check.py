"""The report of a check: one line an expectation, with what was found, by how much, and where it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ...text import printable
from ...units import (
    GIB,
    digits,
    format_bytes,
    format_count,
    format_duration,
    format_energy,
    format_flop,
    format_percent,
    format_usd,
)
from ..report import GLUE, Column, Json, Phrase, Report, Table, Topic, glued
from ..words import judged

WRITTEN: Mapping[str, Callable[[float], str]] = {
    "GiB": lambda value: format_bytes(value * GIB) if value >= 0 else f"-{format_bytes(-value * GIB)}",
    "GB": lambda value: f"{digits(value)} GB",
    "seconds": format_duration,
    "USD": format_usd,
    "kWh": format_energy,
    "tokens/s": lambda value: f"{format_count(value)} tokens/s",
    "FLOP": format_flop,
    "share": format_percent,
    "": lambda value: f"{value:,.0f}" if value.is_integer() else format_count(value),
}


def finding(row: Json) -> str:
    """What was found, in the unit of the expectation."""
    value = row["found"]
    if value is None:
        return "unknown"
    if isinstance(value, bool | str):
        return str(value).lower()
    return WRITTEN.get(row["unit"] or "", digits)(value)


def margin(row: Json) -> str:
    """The distance to the bound as a share of it: `+12 %`, `-3 %`."""
    value = row["margin"]
    if value is None:
        return ""
    if abs(value) > 10:
        return "> +1000 %" if value > 0 else "< -1000 %"
    return f"{'+' if value >= 0 else ''}{format_percent(value)}"


def where(row: Json) -> str:
    """Where the expectation is written: `checks.yaml:12`."""
    return f"{row['file']}:{row['line']}"


def in_words(row: Json) -> str:
    """What was expected and found, in one line: for annotations and test reports."""
    by = f" ({margin(row)})" if row["margin"] is not None else ""
    return f"{row['id']}: {row['expectation']}, found {finding(row)}{by}"


def report(envelope: Mapping[str, Any]) -> Report:
    """The expectations of an envelope in their order, and how many hold."""
    result = envelope["result"]
    rows = result["expectations"]
    columns = (
        Column(title="Expected", prose=True),
        Column(title="Found", figures=True),
        Column(title="Margin", figures=True, spare=True),
        Column(title="Where"),
    )
    table = Table(columns=columns, rows=tuple(_cells(row) for row in rows))
    unknown = sum(row["found"] is None for row in rows)
    notes = [f"{unknown} unknown: no price or no figure is known there; --price gives one."] if unknown else []
    blocks: list[Topic | Table] = [table]
    blocks += [Topic(label="Note", paragraphs=((Phrase(note),),)) for note in notes]
    good = result["failed"] == 0
    return Report(
        title="Check",
        verdict=Phrase(
            glued(f"{result['passed']} passed, {result['failed']} failed"), "feasible" if good else "infeasible"
        ),
        blocks=tuple(blocks),
    )


def _kept(text: str) -> str:
    """`text` with glue between figures and their units."""
    return re.sub(r"(?<=\d) (?=[^\d\s])", GLUE, text)


def _cells(row: Json) -> tuple[Phrase, ...]:
    return (
        judged("feasible" if row["ok"] else "infeasible", _kept(printable(f"{row['id']}: {row['expectation']}", 200))),
        Phrase(glued(finding(row))),
        Phrase(glued(margin(row))),
        Phrase(printable(where(row), 120)),
    )

"""The derivation behind an estimate: each quantity with its formula, what went in and where that came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..text import printable
from ..units import (
    digits,
    format_bandwidth,
    format_bytes,
    format_count,
    format_duration,
    format_energy,
    format_flop,
    format_flop_rate,
    format_percent,
    format_usd,
)
from .assumptions import settings
from .report import Phrase, Report, Topic, glued

Json = Mapping[str, Any]

WRITERS: Mapping[str, Callable[[float], str]] = {
    "bytes": format_bytes,
    "seconds": format_duration,
    "s": format_duration,
    "FLOP": lambda value: f"{format_flop(value)} FLOP",
    "FLOP/s": format_flop_rate,
    "bytes/s": format_bandwidth,
    "USD": format_usd,
    "kWh": format_energy,
    "parameters": format_count,
    "tokens": format_count,
    "fraction": format_percent,
    "": lambda value: format_count(value) if value >= 10**6 else digits(value, 6),
}

WHOLE = 0.9995
"""From this share on a term is not called a part of the whole."""


def quantity(value: object, unit: str) -> str:
    """A value in its unit, as people write it; what is no number as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return glued(printable(value, 60))
    if not unit and isinstance(value, int) and abs(value) < 10**6:
        return str(value)
    written = WRITERS.get(unit)
    return glued(written(value) if written else f"{digits(value)} {printable(unit, 30)}")


def explained(report: Report, inputs: Json, explanation: Sequence[Json]) -> Report:
    """A report with every setting, its origin, and every term of the derivation below it."""
    terms = tuple(_term(term) for term in explanation)
    return Report(
        title=report.title,
        verdict=report.verdict,
        context=report.context,
        blocks=(*report.blocks, settings(inputs), *terms),
    )


def _term(term: Json) -> Topic:
    share = f", {glued(format_percent(term['share']))} of the whole" if _is_part(term) else ""
    result = Phrase(quantity(term["value"], term["unit"]) + share, "figure")
    formula = Phrase(f"{printable(term['formula'], 300)} = ")
    origins = "; ".join(_origin(entry) for entry in term["inputs"])
    lines: list[tuple[Phrase, ...]] = [(formula, result)]
    if origins:
        lines.append((Phrase(f"where {origins}", "dim"),))
    return Topic(label=printable(term["quantity"], 60), paragraphs=tuple(lines))


def _is_part(term: Json) -> bool:
    return term.get("share") is not None and term["share"] < WHOLE


def _origin(entry: Json) -> str:
    value, origin = quantity(entry["value"], entry["unit"]), printable(entry["origin"], 80)
    return f"{printable(entry['name'], 60)} {value} ({glued(origin)})"

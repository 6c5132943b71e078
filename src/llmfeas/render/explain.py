"""The derivation behind an estimate: each quantity with its formula, what went in and where that came from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

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
from .report import GLUE, Json, Phrase, Report, Topic, glued

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

MOST_EXACT = 1e15
"""Counts above it are told to seven digits too."""
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
    numbers = {entry["name"]: exact(entry["value"]) for entry in term["inputs"]}
    lines: list[tuple[Phrase, ...]] = [(Phrase(printable(term["text"], 300)),)] if term.get("text") else []
    formula, filled = spelled(term["formula"]), spelled(term["formula"], numbers)
    if formula != filled:
        lines.append((Phrase(f"= {formula}", "dim"),))
    lines.append((Phrase(f"= {filled}"),))
    lines.append((Phrase(f"= {result(term['value'], term['unit'])}{share}", "figure"),))
    lines += [(Phrase(_tensor(group), "dim"),) for group in term.get("tensors") or ()]
    origins = "; ".join(_origin(entry) for entry in term["inputs"])
    lines.append((Phrase(f"where {origins}", "dim"),))
    return Topic(label=printable(term["quantity"], 60), paragraphs=tuple(lines))


_NAME = re.compile(r"[a-z_][a-z_0-9]*")
_SIGNS = {"**": "^", "*": "×"}


def spelled(formula: str, numbers: Mapping[str, str] | None = None) -> str:
    """A formula as people write it, with the numbers in place of their names if there are any.

    `max` and `min` stay; no line is broken inside a number.
    """
    known = numbers or {}
    text = _NAME.sub(lambda match: known.get(match[0], match[0]), printable(formula, 2000))
    return re.sub(r"\*\*|\*", lambda match: _SIGNS[match[0]], text)


def exact(value: object) -> str:
    """A number to compute with: every digit of a count, seven of anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return printable(value, 60)
    if value == int(value) and abs(value) < MOST_EXACT:
        return f"{int(value):,}"
    return f"{value:.7g}"


def result(value: float, unit: str) -> str:
    """A value to compare with what one has computed, and as people say it where that differs."""
    shown, said = exact(value), quantity(value, unit)
    unit = {"s": "s", "bytes": "bytes", "fraction": ""}.get(unit, unit)
    plain = glued(f"{shown} {printable(unit, 30)}".strip())
    return plain if said.replace(GLUE, " ") == plain.replace(GLUE, " ") or unit == "parameters" else f"{plain}, {said}"


def _tensor(group: Json) -> str:
    """Tensors alike: how many, of what shape and type, made by what."""
    shape = " × ".join(f"{extent:,}" for extent in group["shape"])
    each = {1: "byte"}.get(group["bytes_per_element"], "bytes")
    sized = f"{group['count']} × ({shape}) × {group['bytes_per_element']} {each}"
    return f"{glued(sized)} = {glued(format_bytes(group['bytes']))}: {printable(group['operator'], 60)}"


def _is_part(term: Json) -> bool:
    return term.get("share") is not None and term["share"] < WHOLE


def _origin(entry: Json) -> str:
    value, unit, origin = exact(entry["value"]), printable(entry["unit"], 30), printable(entry["origin"], 80)
    return f"{printable(entry['name'], 60)} {glued(f'{value} {unit}'.strip())} ({glued(origin)})"

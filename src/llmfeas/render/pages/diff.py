"""The report of a diff: what was asked otherwise, the data behind it, then each figure that moved."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ...options import BY_NAME
from ...text import printable
from ...units import (
    digits,
    format_bytes,
    format_duration,
    format_energy,
    format_flop,
    format_percent,
    format_usd,
    separated,
)
from ..report import Column, Phrase, Report, Table, Topic, glued
from ..words import setting

TITLES: Mapping[str, str] = {
    "program": "Program",
    "catalog": "Catalog",
    "input": "Asked otherwise",
    "settled": "Settled otherwise",
    "origin": "From elsewhere",
    "figure": "Figures",
    "warning": "Warnings",
}


WRITTEN: Mapping[str, Callable[[float], str]] = {
    "_bytes": format_bytes,
    "_seconds": format_duration,
    "usd": format_usd,
    "mfu": format_percent,
    "_kwh": format_energy,
    "_kwh_per_million_tokens": format_energy,
    "usd_per_million_tokens": format_usd,
    "price": lambda value: f"{format_usd(value)} an hour",
    "budget": format_usd,
    "tokens_per_second_per_sequence": lambda value: f"{_plain(value)} tokens/s",
    "tokens_per_second": lambda value: f"{_plain(value)} tokens/s",
    "rule_of_thumb": lambda value: f"{format_flop(value)} FLOP",
    "model": lambda value: f"{format_flop(value)} FLOP",
    "hardware": lambda value: f"{format_flop(value)} FLOP",
    "forward_per_token": lambda value: f"{format_flop(value)} FLOP",
    "requests_per_second": lambda value: f"{_plain(value)} requests/s",
}
"""How a figure is written, by the end of its name."""


UNITS = ("_bytes", "_seconds")
"""Ends of names that the figures beside them say too."""


def _plain(value: float) -> str:
    return separated(digits(value, 4))


def _value(path: str, value: object) -> str:
    name = path.rpartition(".")[2]
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return printable(_messages(value) if name == "reasons" else value, 300)
    if name in BY_NAME and name not in WRITTEN:
        return glued(setting(name, value))
    sign, size = ("-", -value) if value < 0 else ("", value)
    written = next((write for end, write in WRITTEN.items() if name.endswith(end)), _plain)
    if path.startswith("parameters."):
        written = "{:,.0f}".format  # in full: another architecture may differ in few
    return glued(sign + written(size))


def _messages(value: object) -> str:
    """Reasons as sentences, from the JSON in which they are compared."""
    try:
        found = json.loads(str(value))
        return "; ".join(str(reason["message"]) for reason in found)
    except (ValueError, TypeError, KeyError):
        return str(value)


def _relative(change: Mapping[str, Any]) -> str:
    share = change["relative"]
    return "" if share is None else glued(f"{'+' if share >= 0 else ''}{format_percent(share)}")


def report(envelope: Mapping[str, Any], before: str, after: str) -> Report:
    """The changes of an envelope between two files, kind by kind."""
    changes = envelope["result"]["changes"]
    blocks: list[Topic | Table] = []
    columns = (
        Column(title="What", prose=True),
        Column(title="Before", prose=True),
        Column(title="After", prose=True),
        Column(title="Change", figures=True),
    )
    for kind, title in TITLES.items():
        own = [change for change in changes if change["kind"] == kind]
        if own:
            told = [_cells(change) for change in own if not change["path"].endswith((".low", ".high"))]
            seen = tuple(row for row in told if row[1] != row[2])
            less = f", {len(told) - len(seen)} of them by less than is shown" if len(seen) < len(told) else ""
            blocks.append(Topic(label=title, paragraphs=((Phrase(f"{len(own)} differ{less}"),),)))
            if seen:
                blocks.append(Table(columns=columns, rows=seen))
    count = f"{len(changes)} change{'' if len(changes) == 1 else 's'}" if changes else "no change"
    return Report(title=f"{count} from {printable(before, 60)} to {printable(after, 60)}", blocks=tuple(blocks))


def _cells(change: Mapping[str, Any]) -> tuple[Phrase, ...]:
    path = change["path"].removeprefix("result.").removeprefix("inputs.").removesuffix(".expected")
    name = next((path.removesuffix(unit) for unit in UNITS if path.endswith(unit)), path)
    return (
        Phrase(printable(name.replace("_", " ").replace(".", " "), 120)),
        Phrase(_value(path, change["before"])),
        Phrase(_value(path, change["after"])),
        Phrase(_relative(change)),
    )

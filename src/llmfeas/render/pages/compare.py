"""The report of a comparison: one line a device, with a bar for its time or speed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ...text import printable
from ...units import GIB, digits, format_count, format_duration, format_energy, format_usd
from ..report import GLUE, Bar, Column, Phrase, Report, Table, Topic, glued, lines_of
from ..words import TASKS, figure, judged, speed_of


def _time(row: Mapping[str, Any]) -> Mapping[str, float]:
    time: Mapping[str, Any] = row["time"]
    value: Mapping[str, float] = time.get("total_seconds") or speed_of(time, under_load=row["under_load"])
    return value


MISSED = {
    "ttft-missed": "first tokens come after --ttft",
    "tpot-missed": "tokens come slower than --tpot",
    "overloaded": "requests pile up",
}
"""What a load that is missed comes to, by the reason's code."""
MOST_DRAWN = 20.0
"""Largest figure over smallest up to which bars are as long as figures are large; beyond, a bar would vanish."""


def _proportional(rows: Sequence[Mapping[str, Any]]) -> bool:
    figures = [_time(row)["expected"] for row in rows]
    return max(figures) <= MOST_DRAWN * min(figures)


def _bars(rows: Sequence[Mapping[str, Any]]) -> list[Phrase | Bar]:
    """Each row's bar: its figure over the largest; where these differ much a tenth of the length at the smallest, all
    of it at the largest, logarithmic between; none where they are equal."""
    figures = [max(_time(row)["expected"], 1e-12) for row in rows]
    if min(figures) == max(figures):
        return [Phrase("")] * len(rows)
    if _proportional(rows):
        return [Bar(value / max(figures)) for value in figures]
    low, high = math.log(min(figures)), math.log(max(figures))
    return [Bar(0.1 + 0.9 * (math.log(value) - low) / (high - low)) for value in figures]


def _money(row: Mapping[str, Any]) -> str:
    cost = row["cost"]
    value = cost["usd"]["expected"] if cost["usd"] else cost["usd_per_million_tokens"]
    return "" if value is None else glued(format_usd(value)) if value else "free"


def _energy(row: Mapping[str, Any]) -> str:
    cost = row["cost"]
    value = cost["energy_kwh"]["expected"] if cost["energy_kwh"] else cost["energy_kwh_per_million_tokens"]
    return "" if value is None else glued(format_energy(value))


def _needed(row: Mapping[str, Any]) -> str:
    count = row["devices_needed"]
    return "too many" if count is None else f"{count}×"


def _name(row: Mapping[str, Any]) -> str:
    count = row["num_devices"]
    return row["device"] if count == 1 or row["memory"].get("parts") else f"{count}x{row['device']}"


def _format(row: Mapping[str, Any]) -> str:
    """What the weights are in: each device is asked with its own default, so that rows may differ in it."""
    return str(row["quant"] or row["precision"])


def _serves(row: Mapping[str, Any]) -> bool:
    return not row["time"].get("total_seconds")


def _cells(row: Mapping[str, Any], bar: Phrase | Bar, *, models: bool) -> tuple[Phrase | Bar, ...]:
    memory, relative = row["memory"], None if models else row["relative_speed"]
    written = format_count if _serves(row) else format_duration
    expected, _, ends = figure(_time(row), written).partition("(")
    needs, has = digits(memory["peak_bytes"]["expected"] / GIB), digits(memory["usable_bytes"] / GIB)
    ratios = "" if relative is None else f"{digits(relative['low'])} – {digits(relative['high'])}"
    return (
        judged(row["verdict"]["status"], printable(row["model"] if models else _name(row), 60)),
        Phrase(glued(f"{needs} of {has}")),
        Phrase(_format(row) if _serves(row) else ""),
        Phrase(expected.strip(GLUE)),
        Phrase(f"({ends}" if ends else ""),
        Phrase("" if relative is None else f"{digits(relative['expected'])}×"),
        Phrase(_needed(row)),
        Phrase(_money(row)),
        bar,
        Phrase(row["backend"]),
        Phrase(row["engine"]),
        Phrase("" if _serves(row) else _format(row)),
        Phrase(_energy(row)),
        Phrase(glued(ratios) if relative and relative["low"] < relative["high"] else ""),
    )


def _columns(sort: str, *, inference: bool, models: bool, proportional: bool) -> tuple[Column, ...]:
    """The columns; without room for all, spare ones are left out from the right: never the one sorted by."""
    return (
        Column(title="Model" if models else "Device"),
        Column(title="GiB", figures=True),
        Column(title="Format"),
        Column(title="Tokens/s" if inference else "Time", figures=True),
        Column(title="from – to", figures=True, spare=True),
        Column(title="Speed", figures=True, spare=True),
        Column(title="Takes", figures=True),
        Column(title="$/1M" if inference else "Cost", figures=True, spare=sort != "cost"),
        Column(title=("Speed" if inference else "Time") + (", bar" if proportional else ", log"), spare=True),
        Column(title="Backend", spare=True),
        Column(title="Engine", spare=True),
        Column(title="Precision", spare=True),
        Column(title="Energy/1M" if inference else "Energy", figures=True, spare=sort != "energy"),
        Column(title="Speed from – to", figures=True, spare=True),
    )


def _table(rows: Sequence[Mapping[str, Any]], sort: str, *, models: bool = False) -> Table:
    """Rows as a table, without columns that say nothing; `models`: of one device, a row a model."""
    inference = _serves(rows[0])
    columns = _columns(sort, inference=inference, models=models, proportional=_proportional(rows))
    cells = [_cells(row, bar, models=models) for row, bar in zip(rows, _bars(rows), strict=True)]
    one_format = len({_format(row) for row in rows}) == 1
    alike = {
        "Takes": all(row["devices_needed"] == row["num_devices"] for row in rows),
        "Format": one_format,
        "Precision": one_format,
        "Engine": len({row["engine"] for row in rows}) == 1,
    }
    shown = [
        index
        for index, column in enumerate(columns)
        if any(row[index] != Phrase("") for row in cells) and not alike.get(column.title, False)
    ]
    return Table(
        columns=tuple(columns[index] for index in shown),
        rows=tuple(tuple(row[index] for index in shown) for row in cells),
    )


def _remarks(rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[Phrase, ...], ...]:
    """What limits the rows, each remark and each group of devices that some hold for once."""
    texts: dict[str, list[str]] = {}
    for row in rows:
        for text in _limits(row):
            texts.setdefault(text, []).append(row["device"])
    groups: dict[str, list[str]] = {}
    for text, devices in texts.items():
        groups.setdefault(_few(devices), []).append(text)
    return tuple((Phrase(printable(f"{devices}: {'; '.join(said)}", 900)),) for devices, said in groups.items())


def _few(devices: Sequence[str]) -> str:
    shown = list(dict.fromkeys(devices))
    return ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")


def _limits(row: Mapping[str, Any]) -> list[str]:
    """What speaks against a row, or limits it: software without the device's name, time, budget, load."""
    verdict = row["verdict"]
    software = [reason["message"] for reason in verdict["reasons"] if reason["code"].startswith("software")]
    missed = [MISSED[reason["code"]] for reason in verdict["reasons"] if reason["code"] in MISSED]
    causes = {"over_deadline": "misses the deadline", "impractical": "would take years", "over_budget": "over budget"}
    return [
        *(text.split(": ", 1)[-1].removeprefix("it ") for text in software),
        *(causes[verdict[key]] for key in ("time", "budget") if verdict[key] in causes),
        *([" and ".join(missed)] if missed else ()),
    ]


def report(
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    task: str,
    baseline: str | None,
    left_out: int,
    sort: str = "time",
) -> Report:
    """Rows ranked by `sort` of the models `names`; `left_out` rows below them are not shown."""
    blocks: list[Topic | Table] = []
    models = list(dict.fromkeys(row["model"] for row in rows))
    one_each = len(models) > 1 and len(models) == len(rows)
    if one_each:
        blocks.append(_table(rows, sort, models=True))
    for model in () if one_each else models:
        own = [row for row in rows if row["model"] == model]
        if len(models) > 1:
            blocks.append(Topic(label="Model", paragraphs=((Phrase(printable(model, 80), "label"),),)))
        blocks.append(_table(own, sort))
    remarks = _remarks(rows)
    if remarks:
        blocks.append(Topic(label="Limits", paragraphs=remarks))
    sizes = [
        f"{row['device']} {digits(row['memory']['capacity_bytes'] / GIB)} GiB" for row in rows if row["memory_assumed"]
    ]
    if sizes:
        text = f"{_few(sizes)}: the memory of each machine, which has other sizes too (--memory)."
        blocks.append(Topic(label="Assumed", paragraphs=lines_of((text,), "dim")))
    notes = [_legend(rows, baseline, one_each=one_each)]
    if left_out:
        notes.append(f"{left_out} more not shown; --top {left_out + len(rows)} shows all.")
    blocks.append(Topic(label="Read", paragraphs=lines_of(notes)))
    count = (len(rows) + left_out) // len(names)
    many = "1 device" if count == 1 else f"{count} devices"
    title = f"{', '.join(printable(name, 60) for name in names)} on {many}"
    context = (TASKS.get(task, task), "defaults of each device where nothing is said")
    return Report(title=title, context=context, blocks=tuple(blocks))


def _legend(rows: Sequence[Mapping[str, Any]], baseline: str | None, *, one_each: bool) -> str:
    """How to read the columns."""
    parts = ["✓ feasible, ! tight, ✗ not.", "GiB needed of usable."]
    if baseline and not one_each and any(row["relative_speed"] for row in rows):
        parts.append(f"Speed as a multiple of that of {baseline}.")  # that of the first row is seen: 1×
    if len({row["quant"] for row in rows}) > 1:
        parts.append("Formats differ, each the best that fits, and speed with them; --quant asks all for one.")
    if any(row["devices_needed"] != row["num_devices"] for row in rows):
        parts.append("Takes says how many of the device have memory enough.")
    return " ".join(parts)

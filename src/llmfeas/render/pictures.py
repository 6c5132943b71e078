"""Pictures of an answer, drawn from its envelope: memory, layout, devices side by side, measured against computed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..contract import Json
from ..units import format_bytes, format_count, format_duration, format_usd
from .drawing import (
    WIDE,
    Picture,
    Scale,
    Sheet,
    box,
    framed,
    legend,
    line,
    mark,
    number_on,
    paragraph,
    path,
    powers_around,
    text,
    whisker,
)
from .words import COMPONENTS, copies_of, speed_of

MOST_POINTS = 24
"""Rows of a comparison that are named in its picture."""
MOST_CELLS = 32
MINUTE, HOUR, DAY, YEAR = 60.0, 3600.0, 86400.0, 31_557_600.0
TIMES = (1.0, 10.0, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, 90 * DAY, YEAR, 10 * YEAR, 100 * YEAR)
"""Durations at which a time axis is marked, in seconds."""


def pictures(envelope: Mapping[str, Any], sheet: Sheet = WIDE) -> tuple[Picture, ...]:
    """The pictures that an envelope can be shown in, the most telling first."""
    drawn = _BY_COMMAND.get(str(envelope["schema"]).split(".")[1].split("/")[0])
    return tuple(drawn(dict(envelope), sheet)) if drawn else ()


def _estimate(envelope: Json, sheet: Sheet) -> Iterator[Picture]:
    yield memory(envelope["result"]["memory"], sheet)
    layout = cluster(envelope["inputs"], sheet)
    if layout is not None:
        yield layout


def memory(found: Json, sheet: Sheet = WIDE) -> Picture:
    """What is alive at the peak on one device, part by part, beside what can be used."""
    peak, usable, capacity = found["peak_bytes"], found["usable_bytes"], found["capacity_bytes"]
    sizes = [
        (series, label, found["components"].get(name) or 0.0) for series, (name, label) in enumerate(COMPONENTS.items())
    ]
    parts = sorted((part for part in sizes if part[2] > 0), key=lambda part: -part[2])
    scale = Scale(0, max(peak["high"], capacity, usable) * 1.06, 20, sheet.right)
    marks, end, top = [], 0.0, 42
    for number, (series, _, size) in enumerate(parts, 1):
        start, width = scale(end), scale(end + size) - scale(end)
        marks.append(box(start, top, width, 44, series))
        if width > 16:
            marks.append(number_on(start + width / 2, top + 27, number, series))
        end += size
    marks.append(whisker(scale(peak["low"]), top + 56, scale(peak["high"]), top + 56))
    needed = f"needs {format_bytes(peak['expected'])} ({format_bytes(peak['low'])} to {format_bytes(peak['high'])})"
    marks += [
        text(min(scale(peak["low"]), sheet.width - 300), top + 78, needed),
        line(scale(usable), top - 12, scale(usable), top + 64, "limit"),
    ]
    near_the_end = scale(usable) > sheet.width / 2
    beside = f"usable {format_bytes(usable)}" + ("" if usable == capacity else f" of {format_bytes(capacity)}")
    marks.append(text(scale(usable), top - 18, beside, anchor="end" if near_the_end else "start"))
    named, height = legend(
        [(series, f"{label}, {format_bytes(size)}") for series, label, size in parts], top + 106, sheet
    )
    marks += named
    words = "; ".join(f"{label} {format_bytes(size)}" for _, label, size in parts)
    summary = f"At the peak one device {needed}; {beside}. {words}."
    return Picture("memory", "Memory of one device at the peak", summary, height, tuple(marks), sheet.width)


def cluster(inputs: Json, sheet: Sheet = WIDE) -> Picture | None:
    """How devices divide one copy of the model, and how many copies there are; None for a single device."""
    size = {name: (inputs.get(name) or {}).get("value") or 1 for name in ("num_devices", "tp", "pp", "cp", "ep")}
    across, down = size["pp"], size["tp"] * size["cp"]
    if size["num_devices"] == 1:
        return None
    copies = copies_of(inputs)
    columns, rows = min(across, MOST_CELLS), min(down, 8)
    cell = min(56.0, (sheet.right - 100) / columns)
    marks = []
    for column in range(columns):
        for row in range(rows):
            marks.append(box(80 + column * cell, 50 + row * 30, cell - 3, 27, column))
            if cell > 24 and row == 0:
                middle = 80 + column * cell + (cell - 3) / 2
                marks.append(number_on(middle, 50 + 18, column + 1, column))
    more = " (the first are shown)" if columns < across or rows < down else ""
    marks.append(text(80, 38, f"{across} pipeline stages{more}" if across > 1 else "all layers"))
    marks.append(text(10, 68, f"{down} devices" if down > 1 else "1 device"))
    below = 50 + rows * 30 + 24
    # ranks that train, or share experts, are no copies of the model
    whole = inputs["task"]["value"] == "inference" and size["ep"] == 1
    beside = [f"{copies} {'copies' if whole else 'data-parallel ranks'} of this side by side"] if copies > 1 else []
    names = (("tp", "tensor parallel"), ("pp", "pipeline"), ("cp", "context parallel"), ("ep", "expert parallel"))
    parts = beside + [f"{words} {size[name]}" for name, words in names if size[name] > 1]
    words = f"{size['num_devices']} devices: {', '.join(parts)}"
    described, end = paragraph(80 if sheet is WIDE else 10, below, words, sheet)
    marks += described
    return Picture("layout", "How the devices divide the model", f"{words}.", end + 16, tuple(marks), sheet.width)


def _compare(envelope: Json, sheet: Sheet) -> Iterator[Picture]:
    rows = [row for row in envelope["result"]["rows"] if row["verdict"]["status"] in ("feasible", "tight")]
    points = [(row, x, y) for row in rows for x, y in [_time_and_money(row)] if x and y]
    if len(points) < 2:
        return
    training = bool(points[0][0]["time"].get("total_seconds"))
    across = powers_around([point[1] for point in points], sheet.left, sheet.right, TIMES if training else ())
    up = powers_around([point[2] for point in points], 350, 40)
    labels = ("time", "cost") if training else ("tokens a second", "USD a million tokens")
    name = format_duration if training else format_count
    marks = [*framed(across, up, *labels, name, format_usd)]
    front = _front(points, less_is_better=training)
    marks.append(path([(across(x), up(y)) for _, x, y in front], 7))
    named = []
    for number, (row, x, y) in enumerate(points[:MOST_POINTS], 1):
        best, tight = (row, x, y) in front, row["verdict"]["status"] == "tight"
        marks.append(mark(across(x), up(y), 0 if best else 4, hollow=tight))
        marks.append(text(across(x) + 8, up(y) - 6, number))
        place = (20 + (number - 1) % 2 * 350, 418 + (number - 1) // 2 * 20)
        count = f"{row['num_devices']} x " if row["num_devices"] > 1 and not row["memory"].get("parts") else ""
        label = f"{number}: {count}{row['device']}, {name(x)}, {format_usd(y)}"
        named.append(text(*place, label + (" (tight)" if tight else "")))
    best_ones = ", ".join(row["device"] for row, _, _ in front)
    summary = f"No other device shown is both faster and cheaper than {best_ones}."
    height = 418 + (len(named) + 1) // 2 * 20
    yield Picture(
        "devices", f"{'Time' if training else 'Speed'} and cost of devices", summary, height, (*marks, *named)
    )


def _time_and_money(row: Json) -> tuple[float | None, float | None]:
    total, usd = row["time"].get("total_seconds"), row["cost"]["usd"]
    if total:
        return total["expected"], usd["expected"] if usd else None
    return speed_of(row["time"], under_load=row["under_load"])["expected"], row["cost"]["usd_per_million_tokens"]


def _front(points: Sequence[tuple[Json, float, float]], *, less_is_better: bool) -> list[tuple[Json, float, float]]:
    """The points that none betters in both ways, from the fastest on."""
    sign = 1 if less_is_better else -1
    found: list[tuple[Json, float, float]] = []
    for point in sorted(points, key=lambda point: (sign * point[1], point[2])):
        if not found or point[2] < found[-1][2]:
            found.append(point)
    return found


def _backtest(envelope: Json, sheet: Sheet) -> Iterator[Picture]:
    rows = [row for row in envelope["result"].get("worst", ()) if row["measured"] > 0 and row["found"]["low"] > 0]
    for kind in dict.fromkeys(row["kind"] for row in rows):
        yield _measured(kind, [row for row in rows if row["kind"] == kind], sheet)


def _measured(kind: str, rows: Sequence[Json], sheet: Sheet) -> Picture:
    """Ours against the measured, in powers of ten; a point on the slanted line is met."""
    values = [row["measured"] for row in rows] + [row["found"][name] for row in rows for name in ("low", "high")]
    across, up = powers_around(values, sheet.left, 540), powers_around(values, 480, 40)
    name = format_bytes if "memory" in kind else _plain_number
    marks = [*framed(across, up, "measured", "computed", name, name)]
    marks.append(line(across(across.low), up(up.low), across(across.high), up(up.high), "ink"))
    backends = list(dict.fromkeys(row["backend"] for row in rows))
    for row in rows:
        series, x, found = backends.index(row["backend"]), across(row["measured"]), row["found"]
        marks.append(whisker(x, up(found["low"]), x, up(found["high"]), series))
        marks.append(mark(x, up(found["expected"]), series))
    for series, backend in enumerate(backends):
        marks += [mark(572, 60 + series * 22, series), text(586, 64 + series * 22, backend)]
    inside = sum(row["found"]["low"] <= row["measured"] <= row["found"]["high"] for row in rows)
    summary = f"{inside} of the {len(rows)} measurements shown lie within our range."
    slug = "".join(letter if letter.isalnum() else "-" for letter in kind)
    return Picture(f"measured-{slug}", f"Measured and computed: {kind}", summary, 540, tuple(marks))


def _plain_number(value: float) -> str:
    return format_count(value) if value >= 1 else f"{value:.{max(0, -math.floor(math.log10(value)))}f}"


_BY_COMMAND = {"estimate": _estimate, "compare": _compare, "backtest": _backtest}

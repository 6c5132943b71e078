"""Pictures for which a question is followed further: along the step, over lengths, batches, users, under the roof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from ..catalog.store import Catalog
from ..feasibility.result import Estimate
from ..memory.peak import COMPONENTS as PARTS
from ..memory.peak import Memory
from ..memory.training import step_timeline
from ..planning.curves import memory_over_length, speed_over_batch
from ..ranges import Range
from ..timing.inference import InferenceTime
from ..timing.roofline import Roofline, roofline
from ..units import GIB, format_bytes, format_count, format_duration
from .drawing import (
    WIDE,
    Picture,
    Scale,
    Sheet,
    band,
    framed,
    legend,
    line,
    mark,
    path,
    powers_around,
    text,
    whisker,
)
from .words import COMPONENTS

STEP_PARTS = ("runtime", "weights", "optimizer", "gradients", "activations", "logits", "workspace")
"""What is alive in a step, what stays first."""
SERIES_OF = {name: series for series, name in enumerate(COMPONENTS)}
"""The colour of a component is the same in every picture."""
TOP, BOTTOM = 40, 330
LABEL_WIDTH = 52


def further(request: Mapping[str, object], found: Estimate, catalog: Catalog) -> Iterator[Picture]:
    """The pictures that an answer alone does not hold; each that tells something."""
    for pictures in FURTHER.values():
        yield from pictures(request, found, catalog, WIDE)


def _step(request: Mapping[str, object], found: Estimate, catalog: Catalog, sheet: Sheet) -> Iterator[Picture]:
    if found.scenario.is_training:
        yield along_the_step(found, sheet)


def _lengths(request: Mapping[str, object], found: Estimate, catalog: Catalog, sheet: Sheet) -> Iterator[Picture]:
    name, lengths = memory_over_length(request, found, catalog)
    if len(lengths) > 1:
        label = "tokens of context" if name == "context" else "tokens in one sequence"
        yield over_length(lengths, getattr(found.scenario, name), label, sheet)


def _roofline(request: Mapping[str, object], found: Estimate, catalog: Catalog, sheet: Sheet) -> Iterator[Picture]:
    roof = roofline(found.scenario, found.time)
    if roof.runs:
        yield under_the_roof(roof, sheet)


def along_the_step(found: Estimate, sheet: Sheet) -> Picture:
    """What is alive along one training step, part by part, from forward to the optimizer."""
    levels, memory = step_timeline(found.scenario), found.memory
    fullest = max(levels, key=lambda level: level.bytes)
    beside = memory.peak_bytes.expected - fullest.bytes
    sizes = {f"{name}_bytes": [getattr(level, name, beside) for level in levels] for name in STEP_PARTS}
    parts = {name: along for name, along in sizes.items() if any(along)}
    served = " and server" if memory.components["kv_cache_bytes"] else ""
    across = Scale(0, len(levels) - 1, sheet.left, sheet.right)
    up = _memory_axis(max(memory.peak_bytes.expected, memory.usable_bytes))
    marks = [*_rungs(up, sheet), *_stack(across, up, range(len(levels)), parts)]
    start = 0
    for moment, group in groupby(levels, key=lambda level: level.moment):
        size = len(list(group))
        marks.append(line(across(start), up.start, across(start), up.end))
        if across(start + size) - across(start) > LABEL_WIDTH or moment == "optimizer":
            marks.append(_moment(across, start, size, moment))
        start += size
    at = levels.index(fullest)
    near_the_end = at > len(levels) / 2
    named = f"peak {format_bytes(memory.peak_bytes.expected)}, {fullest.moment}"
    marks.append(mark(across(at), up(memory.peak_bytes.expected / GIB), 7))
    place = across(at) + (-10 if near_the_end else 10), up(memory.peak_bytes.expected / GIB) - 8
    marks.append(text(*place, named, anchor="end" if near_the_end else "start"))
    marks.append(_limit(up, memory.usable_bytes, sheet))
    labels = [COMPONENTS[name] + (served if name == "runtime_bytes" else "") for name in parts]
    keys, height = legend([(SERIES_OF[name], label) for name, label in zip(parts, labels, strict=True)], 392, sheet)
    return Picture("step", "Memory along one training step", f"The {named}.", height, (*marks, *keys), sheet.width)


def _moment(across: Scale, start: int, size: int, moment: str) -> str:
    if moment == "optimizer":
        return text(across.end, BOTTOM + 18, moment, kind="dim", anchor="end")
    return text(across(start + size / 2), BOTTOM + 18, moment, kind="dim", anchor="middle")


def over_length(points: Sequence[tuple[float, Memory]], asked: float, label: str, sheet: Sheet) -> Picture:
    """Memory of one device over a length, part by part, with its range and what can be used."""
    lengths = [length for length, _ in points]
    usable_bytes = points[0][1].usable_bytes
    across = powers_around(lengths, sheet.left, sheet.right)
    up = _memory_axis(max(usable_bytes, *(found.peak_bytes.high for _, found in points)))
    sizes = {name: [found.components[name] for _, found in points] for name in PARTS}
    parts = {name: along for name, along in sizes.items() if any(along)}
    marks = [*framed(across, up, label, "GiB", format_count, lambda value: f"{value:g}")]
    marks += _stack(across, up, lengths, parts)
    for length, found in points:
        x, peak = across(length), found.peak_bytes
        marks.append(whisker(x, up(peak.low / GIB), x, up(peak.high / GIB)))
        marks.append(mark(x, up(peak.expected / GIB), 7, hollow=length != asked))
    marks.append(_limit(up, usable_bytes, sheet))
    fitting = [length for length, found in points if found.peak_bytes.expected <= usable_bytes]
    most = f"fits up to {format_count(max(fitting))} of the lengths shown" if fitting else "fits at no length shown"
    keys, height = legend([(SERIES_OF[name], COMPONENTS[name]) for name in parts], 404, sheet)
    return Picture("length", f"Memory over {label}", f"Expected memory {most}.", height, (*marks, *keys), sheet.width)


def _at_once(request: Mapping[str, object], found: Estimate, catalog: Catalog, sheet: Sheet) -> Iterator[Picture]:
    if not found.scenario.model.architecture.writes:
        return
    name, answers = speed_over_batch(request, found, catalog)
    asked = getattr(found.scenario, name)
    if len(answers) > 1:
        yield _speed(answers, asked, sheet)
    loads = [(count, one.under_load()) for count, one in answers if one.under_load is not None]
    waits = [
        (count, load.output_tokens_per_second.expected, load.ttft_seconds.p50.shown, load.ttft_seconds.p95.shown)
        for count, load in loads
        if load.ttft_seconds.p50 is not None and load.ttft_seconds.p95 is not None
    ]
    if len(waits) > 2:
        yield _waits(waits, asked, sheet)


def _speed(answers: Sequence[tuple[float, Estimate]], asked: float, sheet: Sheet) -> Picture:
    """Speed over what is worked on at once: of all together, and where users wait for it of each."""
    counts = [count for count, _ in answers]
    series: list[tuple[str, list[Range]]] = [("all together", [found.speed for _, found in answers])]
    times = [found.time for _, found in answers]
    what = "sequences of a micro-batch"
    if all(isinstance(time, InferenceTime) for time in times):
        each = [time.tokens_per_second_per_sequence for time in times if isinstance(time, InferenceTime)]
        series, what = [*series, ("each of them", each)], "users at once"
    across = powers_around(counts, sheet.left, sheet.right)
    up = powers_around([value for _, speeds in series for one in speeds for value in (one.low, one.high)], BOTTOM, TOP)
    marks = [*framed(across, up, what, "tokens a second", format_count, format_count)]
    for place, (_, speeds) in enumerate(series):
        marks += _ranged(across, up, counts, speeds, place, asked)
    best = max(zip(series[0][1], counts, strict=True), key=lambda pair: pair[0].expected)
    words = f"At most {format_count(best[0].expected)} tokens a second, at {format_count(best[1])} {what}."
    keys, height = legend([*enumerate(label for label, _ in series)], 404, sheet) if len(series) > 1 else ([], 384.0)
    return Picture("speed", f"Speed over {what}", words, height, (*marks, *keys), sheet.width)


def _waits(waits: Sequence[tuple[float, float, Range, Range]], asked: float, sheet: Sheet) -> Picture:
    """First token against throughput, from few users to many."""
    across = powers_around([speed for _, speed, _, _ in waits], sheet.left, sheet.right)
    up = powers_around([value for *_, p50, p95 in waits for value in (p50.low, p95.high)], BOTTOM, TOP)
    named = "generated tokens a second, all users", "seconds to the first token"
    marks = [*framed(across, up, *named, format_count, format_duration)]
    for series in (1, 0):
        ends = [(speed, (p50, p95)[series]) for _, speed, p50, p95 in waits]
        marks.append(path([(across(speed), up(wait.expected)) for speed, wait in ends], series))
        for (count, speed, p50, _), (_, wait) in zip(waits, ends, strict=True):
            marks.append(whisker(across(speed), up(wait.low), across(speed), up(wait.high), series))
            marks.append(mark(across(speed), up(wait.expected), series, hollow=count != asked))
            if not series:
                marks.append(text(across(speed) + 8, up(p50.expected) + 16, f"{count:g}"))
    keys, height = legend([(0, "half of the requests wait less"), (1, "19 of 20 wait less")], 404, sheet)
    count, speed, p50, _ = waits[-1]
    first = format_duration(p50.expected)
    words = f"With {count:g} users {format_count(speed)} tokens a second, half of the first tokens within {first}."
    return Picture("waits", "First token against throughput, by users", words, height, (*marks, *keys), sheet.width)


def under_the_roof(roof: Roofline, sheet: Sheet) -> Picture:
    """What a device does at most for each byte that it reads, and what the run does."""
    peak = roof.peak_flop_per_s
    ridge = peak / roof.bandwidth_bytes_per_s
    across = powers_around([ridge / 30, ridge * 30, *(run.flop_per_byte for run in roof.runs)], sheet.left, sheet.right)
    least = min(run.flop_per_s.low for run in roof.runs)
    up = powers_around([least, peak, peak / 100], BOTTOM, TOP)
    low = max(across.low, up.low / roof.bandwidth_bytes_per_s)
    corners = [
        (low, low * roof.bandwidth_bytes_per_s),
        (ridge, peak),
        (across.high, peak),
    ]
    marks = [*framed(across, up, "FLOP for each byte read", "FLOP/s", format_count, _flops)]
    marks.append(path([(across(x), up(y)) for x, y in corners], 7))
    marks.append(text(sheet.right, up(peak) - 8, f"peak {_flops(peak)}FLOP/s", anchor="end"))
    words = []
    for series, run in enumerate(roof.runs):
        x, speed = across(run.flop_per_byte), run.flop_per_s
        marks.append(whisker(x, up(speed.low), x, up(speed.high), series))
        marks.append(mark(x, up(speed.expected), series))
        reach = min(peak, run.flop_per_byte * roof.bandwidth_bytes_per_s)
        words.append(f"{run.name}: {100 * speed.expected / reach:.0f} % of what the roof allows")
    keys, height = legend([*enumerate(words)], 404, sheet, columns=1)
    return Picture("roofline", "Roofline of one device", "; ".join(words) + ".", height, (*marks, *keys), sheet.width)


def _flops(value: float) -> str:
    return f"{value / 1e12:g} T" if value >= 1e12 else f"{value / 1e9:g} G"


def _ranged(
    across: Scale, up: Scale, places: Sequence[float], values: Sequence[Range], series: int, asked: float
) -> Iterator[str]:
    """A line through expected values, with the band of their ranges; the one asked for is filled."""
    upper, lower, middle = (
        [(across(place), up(getattr(value, end))) for place, value in zip(places, values, strict=True)]
        for end in ("high", "low", "expected")
    )
    yield band(upper, lower, series)
    yield path(middle, series)
    for point, place in zip(middle, places, strict=True):
        yield mark(*point, series, hollow=place != asked)


def _stack(across: Scale, up: Scale, places: Sequence[float], parts: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Bytes upon bytes, by component."""
    below = [0.0] * len(places)
    for name, sizes in parts.items():
        above = [low + size for low, size in zip(below, sizes, strict=True)]
        upper, lower = (
            [(across(place), up(level / GIB)) for place, level in zip(places, levels, strict=True)]
            for levels in (above, below)
        )
        yield band(upper, lower, SERIES_OF[name], 0.85)
        below = above


def _memory_axis(most_bytes: float) -> Scale:
    return Scale(0, most_bytes / GIB * 1.08, BOTTOM, TOP)


def _rungs(up: Scale, sheet: Sheet) -> Iterator[str]:
    for value in up.ticks():
        yield line(sheet.left, up(value), sheet.right, up(value))
        yield text(sheet.left - 8, up(value) + 4, f"{value:g}", kind="dim", anchor="end")
    yield text(sheet.left - 64, up.end - 12, "GiB")


def _limit(up: Scale, usable_bytes: float, sheet: Sheet) -> str:
    level = up(usable_bytes / GIB)
    return line(sheet.left, level, sheet.right, level, "limit") + text(
        sheet.left + 6, level - 6, f"usable {format_bytes(usable_bytes)}"
    )


FURTHER: Mapping[str, Callable[[Mapping[str, object], Estimate, Catalog, Sheet], Iterator[Picture]]] = {
    "step": _step,
    "length": _lengths,
    "at once": _at_once,
    "roofline": _roofline,
}
"""What a question is followed for, in the order in which it is shown."""

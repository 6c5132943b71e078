"""What a parser of logs is: it is shown the lines that it asked for, and says at the end what ran and how fast."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import ClassVar

from ...contract import Published
from ...record import dataclass, field

MOST_SAMPLES = 10_000
"""Figures of one kind that are kept; a log of weeks has more, which say the same."""
MOST_RUNS = 200
"""Runs that one log tells of."""
DRAFTED = "tokens were drafted ahead, and the log does not say by what: no figure of plain decoding"
"""Why lines of a server with a draft are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRun:
    """One run, or one stage of it, as a log tells it: figures are in base units, names those of measurements."""

    engine: str
    what: str
    """A few words: start-up, pp512, decoding 8 requests."""
    settings: Mapping[str, str | int | float]
    measured: Mapping[str, float]
    memory_kind: str = "unknown"
    line: int
    """Where the first of its figures stands."""
    samples: int = 1
    """Lines that its figures are from."""
    missing: tuple[str, ...] = ()
    """Settings that its figures mean nothing without, and the log does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedLines(Published):
    """Lines with a speed that no figure was taken from."""

    what: str
    line: int
    """Where the first of them stands."""
    lines: int
    why: str


class LogParser:
    """A reader of what one program prints; it keeps figures, never lines."""

    marks: ClassVar[tuple[str, ...]] = ()
    """A line is shown to it where one of these occurs."""

    def take(self, text: str, number: int) -> None:
        """Read a line, which has a number from 1."""
        raise NotImplementedError

    def runs(self) -> Iterator[LoggedRun]:
        """What ran, when all lines were shown."""
        yield from ()

    def skipped(self) -> Iterator[SkippedLines]:
        """Speeds that it saw and took no figure from, by the reason."""
        yield from ()

    def about(self) -> Mapping[str, str | int | float]:
        """What it learned of the machine and the model, for all runs of the log; `peak_bytes` is a figure."""
        return {}


def model_of(settings: Mapping[str, str | int | float]) -> Mapping[str, str | int | float]:
    """The model alone, where the settings name it."""
    return {"model": settings["model"]} if "model" in settings else {}


@dataclass(slots=True)
class Samples:
    """Figures of one kind with where the first stands."""

    line: int = 0
    count: int = 0
    values: list[float] = field(default_factory=list)

    def add(self, value: float, line: int) -> None:
        """Keep one more figure."""
        self.line = self.line or line
        self.count += 1
        if len(self.values) < MOST_SAMPLES:
            self.values.append(value)

    @property
    def median(self) -> float:
        """The middle one."""
        return median(self.values)


@dataclass(slots=True)
class Unused:
    """Lines of one kind that are counted and left out, by the reason."""

    what: str
    found: dict[str, list[int]] = field(default_factory=dict)
    """Where the first of each stands, and how many there are."""

    def add(self, why: str, line: int) -> None:
        """Count one more."""
        self.found.setdefault(why, [line, 0])[1] += 1

    def lines(self) -> Iterator[SkippedLines]:
        """Yield those of each reason."""
        for why, (line, count) in self.found.items():
            yield SkippedLines(what=self.what, line=line, lines=count, why=why)


class ServerLog(LogParser):
    """A reader of what a server prints: its settings, the room of its cache, decoding at each number of requests."""

    engine: ClassVar[str]
    drafted = False
    """Tokens were drafted ahead, so that its speeds are none of plain decoding."""

    def __init__(self) -> None:
        self.settings: dict[str, str | int | float] = {}
        self.pool: dict[str, float] = {}
        self.line = 0
        """Where the first that is said of the pool stands."""
        self.speeds: dict[int, Samples] = {}
        """By the number of requests that run."""
        self.filled: dict[int, Samples] = {}
        """How much of the cache they take, in the server's own measure."""
        self.before = 0
        """Requests that ran in the stretch before."""

    def held(self, running: int) -> float:
        """Tokens of one of so many requests in the cache, on average."""
        raise NotImplementedError

    def keep(self, running: int, speed: float, filled: float, line: int) -> None:
        """Keep a stretch of decoding."""
        self.speeds.setdefault(running, Samples()).add(speed, line)
        self.filled.setdefault(running, Samples()).add(filled, line)

    def runs(self) -> Iterator[LoggedRun]:
        """The start, and decoding at the number of requests that was measured most often."""
        if self.pool:
            yield LoggedRun(
                engine=self.engine, what="start-up", settings=self._whole({}), measured=self.pool, line=self.line
            )
        if self.speeds and not self.drafted:
            running, samples = max(self.speeds.items(), key=lambda each: each[1].count)
            held = max(1, round(self.held(running)))
            yield LoggedRun(
                engine=self.engine,
                what=f"decoding {running} request{'s' * (running > 1)} of {held} tokens",
                settings=self._whole({"concurrency": running, "prompt": held, "context": held + 2}),
                measured={"decode_tokens_per_second": samples.median},
                line=samples.line,
                samples=samples.count,
            )

    def _whole(self, more: Mapping[str, str | int | float]) -> dict[str, str | int | float]:
        """Settings of a run on as many devices as the layout takes."""
        settings = {**self.settings, **more}
        count = int(settings.get("tp", 1)) * int(settings.get("pp", 1))
        return {"task": "inference", "engine": self.engine, **settings, "num_devices": count}

    def about(self) -> Mapping[str, str | int | float]:
        """The model."""
        return model_of(self.settings)


OTHERS = "another number of requests was measured more often"


def unused_counts(what: str, speeds: Mapping[int, Samples], why: str = "") -> Iterator[SkippedLines]:
    """Speeds at other numbers of requests than the one that is shown; all of them, where there is a reason."""
    most = max(speeds, key=lambda count: speeds[count].count, default=None)
    others = [each for count, each in speeds.items() if why or count != most]
    if others:
        first_line, lines = min(each.line for each in others), sum(each.count for each in others)
        yield SkippedLines(what=what, line=first_line, lines=lines, why=why or OTHERS)


NUMBER = r"([0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)"
"""A number as programs print it: `2,264,597`, `10.12`, `5.153e+05`."""


MOST = 1e30


def number(text: str) -> float:
    """Read what NUMBER found; beyond what anything can be it is no more than that."""
    value = min(float(text.replace(",", "")), MOST)
    return value if value > 1 / MOST else 0.0


def first(pattern: re.Pattern[str], text: str) -> float | None:
    """The first number that a pattern finds."""
    found = pattern.search(text)
    return None if found is None else number(found[1])


def options(text: str, names: Sequence[str]) -> dict[str, str]:
    """Settings written as `name=value`, `name='value'` or `'name': value`, without those that say nothing."""
    found = {}
    for name in names:
        match = re.search(
            rf"(?<![\w-])['\"]?{name}['\"]?\s?[=:]\s?('[^']{{0,300}}'|\"[^\"]{{0,300}}\"|[^\s,)}}]{{1,300}})", text
        )
        if match is not None:
            value = match[1].strip("'\"")
            if value.lower() not in ("none", "null", "auto", ""):
                found[name] = value
    return found


def whole(text: str | None, most: int = 10**9) -> int | None:
    """A positive whole number that a program printed; None where it is none."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 12 and 0 < int(text) <= most else None

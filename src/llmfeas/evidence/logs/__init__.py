"""What engines print while they run, read as measurements: a parser a file, found by itself.

A log is what a stranger wrote: lines and their number are bounded, escape codes are taken out, nothing of it is
executed, and what no parser knows is passed over.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import BinaryIO

from ...record import dataclass, replace
from .parser import MOST, MOST_RUNS, LoggedRun, LogParser, SkippedLines

LONGEST_LINE = 20_000
"""Characters of a line that are read; servers print their whole configuration in one."""
MOST_BYTES = 256_000_000
"""What is read of one log."""
CHUNK_BYTES = 65536
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True, slots=True)
class ReadLog:
    """What a log tells."""

    runs: tuple[LoggedRun, ...]
    about: Mapping[str, str | int | float]
    """What it says of model and machine, whatever ran."""
    skipped: tuple[SkippedLines, ...]
    lines: int
    cut: bool
    """Whether there was more than is read of one log."""


def parsers() -> list[LogParser]:
    """A fresh parser of each kind."""
    names = [module.name for module in iter_modules(__path__) if module.name != "parser"]
    return [import_module(f"{__name__}.{name}").PARSER() for name in sorted(names)]


def read_log(source: BinaryIO) -> ReadLog:
    """Read a log to its end, or as far as is read of one."""
    known = parsers()
    stream = _Stream(source)
    count = 0
    for count, line in enumerate(stream.lines(), 1):
        for parser in known:
            if any(mark in line for mark in parser.marks):
                parser.take(line, count)
    about = {name: value for parser in known for name, value in parser.about().items()}
    runs = _with_peak([run for parser in known for run in parser.runs()][:MOST_RUNS], about)
    possible = tuple(run for each in runs if (run := _possible(each)).measured)
    skipped = tuple(each for parser in known for each in parser.skipped())
    return ReadLog(possible, about, skipped, count, stream.cut)


def _possible(run: LoggedRun) -> LoggedRun:
    """A run without figures that nothing can have."""
    return replace(run, measured={name: value for name, value in run.measured.items() if 1 / MOST < value < MOST})


def _with_peak(runs: list[LoggedRun], about: dict[str, str | int | float]) -> list[LoggedRun]:
    """The runs, with the peak that a monitor saw where one run alone may have had it, and has no peak of its own.

    Without any run the peak comes as a run of its own. It is taken out of `about`.
    """
    peak = about.pop("peak_bytes", None)
    if peak is None or len(runs) > 1 or (runs and "peak_bytes" in runs[0].measured):
        return runs
    alone = LoggedRun(engine="", what="memory in use", settings={}, measured={}, line=1, missing=("task",))
    (run,) = runs or [alone]
    return [replace(run, measured={**run.measured, "peak_bytes": float(peak)}, memory_kind="device")]


class _Stream:
    """The lines of a log: ended by LF or CR (bars of progress), without escape codes, each cut at its longest."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.cut = False

    def lines(self) -> Iterator[str]:
        """Yield each line."""
        chunk = self._source.read(CHUNK_BYTES)
        encoding = "utf-16" if chunk[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
        decoder, rest, read = getincrementaldecoder(encoding)(errors="replace"), "", 0
        while read < MOST_BYTES:
            read += len(chunk)
            *whole, rest = re.split("[\n\r]", rest + decoder.decode(chunk, final=not chunk))
            yield from map(_plain, whole)
            if not chunk:
                if rest:
                    yield _plain(rest)
                return
            rest = rest[: 2 * LONGEST_LINE]
            chunk = self._source.read(CHUNK_BYTES)
        self.cut = True


def _plain(line: str) -> str:
    line = line[: 2 * LONGEST_LINE]
    return (ESCAPES.sub("", line) if "\x1b" in line else line)[:LONGEST_LINE]

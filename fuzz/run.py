"""Attacks in a process that is watched: one after the other, each from its own seed, for a time.

The watching process has read and computed what most attacks begin with, once; those that attack are forked from it.
"""

from __future__ import annotations

import collections
import functools
import gc
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from .holds import MEMORY_BYTES, SLOW

KINDS: Mapping[str, str] = {
    "command-lines": "words:command_lines",
    "settings": "words:settings",
    "sweeps": "words:sweeps",
    "config": "files:config",
    "gguf": "files:gguf",
    "safetensors": "files:safetensors",
    "overlays": "files:overlays",
    "expectations": "files:expectations",
    "measurements": "files:measurements",
    "texts": "texts:texts",
    "logs": "texts:logs",
    "recipes": "texts:recipes",
    "calls": "texts:calls",
    "surroundings": "texts:surroundings",
    "laws": "words:laws",
    "agreements": "words:agreements",
    "processes": "processes:processes",
}
"""Each kind of attack with the function that makes one: seed and empty folder in, what does not hold out."""
HANG_CPU_SECONDS, HANG_SECONDS = 60, 300.0
"""An attack is given up after this much CPU, or time."""
MOST_ADDRESSES = 4_000_000_000
"""A process that wants more than this gets no more, instead of the machine's last memory."""
LIFE = 1_000
"""Attacks in one process; the next one begins anew."""
TOLD_SECONDS = 0.5
"""How often a process says how far it is; a failure it says at once."""
SHOWN = 5
"""Failures of a kind that are shown; the others are named."""

Attack = Callable[[Random, Path], Iterator[str]]


def attack_of(kind: str) -> Attack:
    """The function of a kind."""
    module, _, name = KINDS[kind].partition(":")
    found: Attack = getattr(import_module(f"fuzz.{module}"), name)
    return found


def attacked(kind: str, seed: int, number: int) -> list[str]:
    """Make one attack in surroundings of its own, and say what did not hold."""
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=_fast_folder()) as name:
        folder = Path(name)
        os.chdir(folder)
        os.environ.update(HOME=name, XDG_CONFIG_HOME=str(folder / "config"), COLUMNS="80")
        for variable in ("LLMFEAS_CATALOG", "LLMFEAS_DEBUG", "FORCE_COLOR"):
            os.environ.pop(variable, None)
        try:
            return list(attack_of(kind)(Random(f"{seed}/{kind}/{number}"), folder))
        finally:
            os.chdir("/")
            _forget_catalogs()


@functools.cache
def _fast_folder() -> str | None:
    """Where a folder is made in no time: in memory; None for the usual place."""
    return "/dev/shm" if "TMPDIR" not in os.environ and os.access("/dev/shm", os.W_OK) else None


def _forget_catalogs() -> None:
    """Let no catalog of this attack be that of the next one."""
    from llmfeas.catalog import store

    store._installed.clear()


def peak_bytes() -> int:
    """The most memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _read_once() -> None:
    """Have every catalog of this process share the built-in files: reading them is most of what an overlay takes."""
    from llmfeas.catalog import store

    store.data_file = functools.cache(store.data_file)  # type: ignore[assignment]


FIRST = (
    "estimate -m gpt2 -d rtx-4090 -t pretrain --json",
    "estimate -m llama-3-8b -d h100-sxm -t qlora",
    "estimate -m nothing -d nothing",
    "estimate -m gpt2",
    "plan -m llama-3-8b -d rtx-4090 -t finetune",
    "compare -m gpt2 -d rtx-4090 -d t4 -f markdown",
    "models list -f csv",
)
"""Questions that load what most others need."""


def warmed() -> None:
    """Load and compute once what the processes that are forked from this one share."""
    from .holds import answered

    _read_once()
    for line in FIRST:
        answered(line.split())
    gc.collect()
    gc.freeze()


def _work(connection: Connection, kinds: list[str], seed: int, numbers: dict[str, int], place: Any) -> None:
    """Attack in turns, for a life or until killed: `place` holds the attack that runs; how they ended is sent."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    spent, counts = dict.fromkeys(kinds, 0.0), dict.fromkeys(kinds, 0)
    told = time.monotonic()
    for _ in range(LIFE):
        kind = min(kinds, key=lambda each: spent[each])  # each has its share of the time
        numbers[kind] += 1
        number, begin = numbers[kind], time.monotonic()
        place[:] = [kinds.index(kind), number]
        signal.setitimer(signal.ITIMER_PROF, HANG_CPU_SECONDS)
        try:
            found = attacked(kind, seed, number)
        except Exception as error:
            found = [f"the attack itself failed: {type(error).__name__}: {error}"]
        place[0] = -1
        spent[kind] += time.monotonic() - begin
        counts[kind] += 1
        peak = peak_bytes()
        if peak > MEMORY_BYTES:
            found.append(f"{peak / 1e6:.0f} MB of memory")
        if found or time.monotonic() - told > TOLD_SECONDS:
            connection.send((counts, f"{kind}/{seed}/{number}", found, peak))
            counts, told = dict.fromkeys(kinds, 0), time.monotonic()
        if peak > MEMORY_BYTES:
            break
    connection.send((counts, "", [], peak_bytes()))


@dataclass
class Report:
    """What was attacked, and what did not hold."""

    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: dict[str, list[str]] = field(default_factory=dict)
    slow: list[str] = field(default_factory=list)
    """What held, but took longer than it should; on a busy machine that happens."""
    seed: int = 0
    peak_bytes: int = 0

    def failed(self, kind: str, name: str, faults: list[str]) -> None:
        """Keep a failure, and show the first ones of a kind; what was slow alone is none."""
        if all(fault.endswith(SLOW) for fault in faults):
            self.slow.append(name)
            print(f"{name}: {faults[0]}", flush=True)
            return
        self.failures[name] = faults
        if sum(each.startswith(f"{kind}/") for each in self.failures) <= SHOWN:
            print(f"{name}: {faults[0][:400]}", flush=True)

    def written(self) -> str:
        """The counts by kind, and the names of what failed."""
        lines = [f"{count:>9,} {kind}" for kind, count in self.counts.items()]
        lines.append(f"{sum(self.counts.values()):>9,} attacks, {len(self.failures)} failures, ")
        lines[-1] += f"{len(self.slow)} slow, most memory {self.peak_bytes / 1e6:.0f} MB"
        if self.failures or self.slow:
            lines.append("again with: python -m fuzz --again " + " ".join([*self.failures, *self.slow][:200]))
        return "\n".join(lines)


def attack(kinds: list[str], report: Report, seconds: float) -> None:
    """Attack for a time; a process that dies, hangs or grows is a failure, and the next one goes on after it."""
    numbers, end = dict.fromkeys(kinds, 0), time.monotonic() + seconds
    context = multiprocessing.get_context("fork")
    place = context.RawArray("q", [-1, 0])
    warmed()
    while time.monotonic() < end:
        before = sum(report.counts.values()) + len(report.failures)
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(theirs, kinds, report.seed, dict(numbers), place), daemon=True)
        worker.start()
        theirs.close()
        ended = _watched(ours, end, numbers, report)
        worker.kill()
        worker.join()
        if ended and place[0] >= 0:
            kind, number = kinds[place[0]], place[1]
            report.failed(kind, f"{kind}/{report.seed}/{number}", [ended])
            numbers[kind] = number
        place[0] = -1
        made = sum(report.counts.values()) + len(report.failures)
        if made == 0 or (made == before and time.monotonic() < end):
            raise RuntimeError("no attack could be made")


def _watched(connection: Connection, end: float, numbers: dict[str, int], report: Report) -> str:
    """Take what a process says of its attacks until it ends or the time is over; return how the last one ended it."""
    while (left := end - time.monotonic()) > 0:
        if not connection.poll(min(left, HANG_SECONDS)):
            if left > HANG_SECONDS:
                return f"waits for more than {HANG_SECONDS:g} s"
            continue
        try:
            counts, name, found, peak = connection.recv()
        except EOFError:
            return "the process died: a hang, or no memory"
        for kind, count in counts.items():
            numbers[kind] += count
            report.counts[kind] += count
        report.peak_bytes = max(report.peak_bytes, peak)
        if found:
            report.failed(name.partition("/")[0], name, found)
    return ""

"""What this process may use of the machine: control groups (containers, batch systems) and processor affinity."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from ..record import replace
from ..units import GIB
from .probe import Found, text_of

CGROUP = PurePosixPath("/sys/fs/cgroup")
Read = Callable[[str], str]


def allowed_processors(read: Read = text_of) -> float | None:
    """Processors' worth of time a second that the control groups allow; None: no limit."""
    limits = []
    for folder in _folders("cpu", read):
        words = read(f"{folder}/cpu.max").split() or [
            read(f"{folder}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")
        ]
        if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):
            limits.append(int(words[0]) / int(words[1]))
    return min(limits, default=None)


def allowed_bytes(read: Read = text_of) -> int | None:
    """Bytes of main memory that the control groups allow; None: no limit."""
    limits = []
    for folder in _folders("memory", read):
        text = (read(f"{folder}/memory.max") or read(f"{folder}/memory.limit_in_bytes")).strip()
        if text.isdigit() and int(text) < 2**60:  # larger: how version 1 says that there is none
            limits.append(int(text))
    return min(limits, default=None)


def _folders(controller: str, read: Read) -> Iterator[str]:
    """The folders of this process's groups of a controller, innermost first, of both versions of control groups."""
    for line in read("/proc/self/cgroup").splitlines()[:64]:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and controller not in controllers.split(","):
            continue
        root, inner = CGROUP / controllers, PurePosixPath(path)
        yield from (str(root / str(each).strip("/")) for each in (inner, *inner.parents))


def limited(processor: Found, threads_here: int | None, quota: float | None, memory_bytes: int | None) -> Found:
    """A processor as this process may use it.

    `threads_here` is how many hardware threads its affinity has, `quota` how many processors' time it gets,
    `memory_bytes` what it may hold.
    """
    cores, said = processor.cores, list(processor.limits)
    if cores:
        threads_a_core = max(1, (processor.threads or cores) // cores)
        able = float(cores)
        if threads_here is not None:
            able = min(able, math.ceil(threads_here / threads_a_core))
        if quota is not None:
            able = min(able, quota)
        if able < cores:
            said.append(f"{able:g} of {cores} cores are for this process")
            processor = replace(processor, cores=max(1, round(able)))
    total = processor.memory_bytes
    if memory_bytes is not None and total is not None and memory_bytes < total:
        said.append(f"{memory_bytes / GIB:.3g} of {total / GIB:.3g} GiB are for this process")
        processor = replace(processor, memory_bytes=memory_bytes)
    return replace(processor, limits=tuple(said))


def affinity() -> int | None:
    """How many hardware threads this process may run on; None where the system does not say."""
    ask = getattr(os, "sched_getaffinity", None)
    return len(ask(0)) if ask is not None else None

"""Asking this machine: tools and files that may be missing or stuck, and what they tell of one device."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ..catalog.device import BackendId
from ..record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One kind of device as tools or the system describe it, with how many there are of it."""

    backend: BackendId
    vendor: str
    name: str
    count: int = 1
    memory_bytes: int | None = None
    """What the driver or the system calls its total memory."""
    target: str | None = None
    """CUDA compute capability or ROCm target."""
    cores: int | None = None
    gpu_cores: int | None = None
    clock_ghz: float | None = None
    simd: tuple[str, ...] = ()
    generation: str | None = None
    """Micro-architecture where the processor's family and model number tell it."""
    memory_type: str | None = None
    memory_channels: int | None = None
    memory_mt_per_s: float | None = None
    power_w: float | None = None
    driver: str | None = None
    source: str = ""
    """The tool or file that said so."""


def grouped(devices: list[Found]) -> list[Found]:
    """Put equal devices together, with their count; order of first appearance."""
    counts: dict[Found, int] = {}
    for device in devices:
        counts[device] = counts.get(device, 0) + device.count
    return [_with_count(device, count) for device, count in counts.items()]


def _with_count(device: Found, count: int) -> Found:
    from dataclasses import replace

    return replace(device, count=count)


LIMIT_SECONDS = 2.0
MAX_CHARACTERS = 4 * 2**20

T = TypeVar("T")


def output(command: Sequence[str], timeout: float = LIMIT_SECONDS) -> str:
    """What a command prints, empty where it is missing, fails or takes longer than `timeout` seconds.

    A process that does not even die (a stuck driver) is left behind instead of being waited for.
    """
    program = shutil.which(command[0])
    if program is None:
        return ""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        process = subprocess.Popen(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except OSError:
        return ""
    try:
        raw, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _kill(process)
        return ""
    return raw.decode("utf-8", "replace")[:MAX_CHARACTERS] if process.returncode == 0 else ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    # Mark it as waited for: the interpreter must not complain about, or wait for, a process that cannot die.
    process.returncode = -9


def text_of(path: str | Path) -> str:
    """The start of a small file of the system, empty where it cannot be read."""
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as stream:
            return stream.read(MAX_CHARACTERS)
    except (OSError, ValueError):
        return ""


def together(probes: Sequence[Callable[[], T]], limit: float = LIMIT_SECONDS + 0.5) -> list[T | None]:
    """Run probes at the same time; None for one that failed or was not done after `limit` seconds."""
    results: list[T | None] = [None] * len(probes)

    def run(place: int, probe: Callable[[], T]) -> None:
        with contextlib.suppress(Exception):
            results[place] = probe()

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(probes)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + limit
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return list(results)

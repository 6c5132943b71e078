"""Ask tools and the system, each for at most two seconds; a tool that is missing, fails or hangs says nothing."""

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

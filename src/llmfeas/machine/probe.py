"""Asking this machine: tools and files that may be missing or stuck, and what they tell of one device."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ..catalog.device import BackendId
from ..catalog.store import built_in
from ..errors import reason_of
from ..record import dataclass
from ..text import printable
from ..units import MIB


def words_of_machines() -> Mapping[str, Any]:
    """What systems say of themselves, in the words of the catalog: data/machine.yaml."""
    return built_in().raw("machine")


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
    threads: int | None = None
    """Hardware threads of all cores."""
    gpu_cores: int | None = None
    """GPU cores of Apple's, compute units of AMD's."""
    clock_ghz: float | None = None
    simd: tuple[str, ...] = ()
    generation: str | None = None
    """Micro-architecture where the processor's family and model number tell it."""
    vector_units: str | None = None
    """What its flags say of its vector units: a key of `vector_units` in data/processors.yaml."""
    share: float = 1.0
    """Part of the device's arithmetic that is here: 2/7 of a card's in a slice `2g.10gb`."""
    limits: tuple[str, ...] = ()
    """What keeps this process from using all of it, in words."""
    memory_type: str | None = None
    memory_channels: int | None = None
    memory_mt_per_s: float | None = None
    measured_gb_per_s: float | None = None
    """What its cores were measured to read from the main memory."""
    power_w: float | None = None
    source: str = ""
    """The tool or file that said so."""


def grouped(devices: list[Found]) -> list[Found]:
    """Put equal devices together, with their count; order of first appearance.

    A limit on its power makes no other device: the lowest one is kept.
    """
    from ..record import replace

    groups: dict[Found, list[Found]] = {}
    for device in devices:
        groups.setdefault(replace(device, power_w=None, count=1), []).append(device)
    return [
        replace(
            alike[0],
            count=sum(each.count for each in alike),
            power_w=min((each.power_w for each in alike if each.power_w is not None), default=None),
        )
        for alike in groups.values()
    ]


LIMIT_SECONDS = 2.0
MAX_CHARACTERS = 4 * MIB

T = TypeVar("T")


Trouble = list[str]
"""What tools that are there failed with, one sentence each."""
NOTHING = ("no devices were found", "no device", "not found", "no gpu")
"""How tools say that there is nothing, which is no trouble."""


def output(command: Sequence[str], timeout: float = LIMIT_SECONDS, trouble: Trouble | None = None) -> str:
    """What a command prints, empty where it is missing, fails or takes longer than `timeout` seconds.

    What a tool that is there fails with goes to `trouble`. A process that does not even die (a stuck driver) is left
    behind instead of being waited for.
    """
    program = shutil.which(command[0])
    if program is None:
        return ""
    environment = {**os.environ, "LC_ALL": "C"}
    said = [] if trouble is None else trouble
    try:
        process = subprocess.Popen(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if trouble is None else subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        said.append(f"{command[0]} cannot be started ({printable(reason_of(error), 80)})")
        return ""
    try:
        raw, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _kill(process)
        said.append(f"{command[0]} does not answer within {timeout:g} s")
        return ""
    text = raw.decode("utf-8", "replace")[:MAX_CHARACTERS]
    if process.returncode == 0:
        return text
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if not any(word in first.lower() for word in NOTHING):
        said.append(f"{command[0]} fails ({printable(first, 160) or f'exit code {process.returncode}'})")
    return ""


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


def parse_meminfo(text: str) -> int | None:
    """Read MemTotal of /proc/meminfo, in bytes."""
    match = re.search(r"^MemTotal:\s*(\d{1,15})\s*kB", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


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


def named_values(text: str) -> dict[str, str]:
    """Read `name: value` lines."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}

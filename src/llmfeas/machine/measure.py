"""How fast a processor reads its main memory: every core streams a block that no cache holds, for a moment."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Sequence

from ..record import replace
from ..units import GB, MIB
from . import Machine
from .probe import Found

BLOCK_BYTES = 256 * MIB
LEAST_BYTES = 16 * MIB
MEMORY_SHARE = 8
"""At most one in so many bytes of the main memory is read, all cores together."""
MOST_CORES = 256
SECONDS = 1.0
LIMIT_SECONDS = 20.0

READER = f"""
import sys, time
block = b"\\2" * int(sys.argv[1])
print(flush=True)
sys.stdin.readline()
start, read = time.process_time(), 0
while time.process_time() - start < {SECONDS}:
    block.find(b"\\1")
    read += len(block)
print(read / (time.process_time() - start))
"""
"""Looking for a byte that is not there reads all of them, at the rate of memory; waiting for others does not count."""


def measured(machine: Machine) -> Machine:
    """The same machine, its processor with the bandwidth that its cores read at; unchanged where that failed."""
    found = machine.processor
    if found is None:
        return machine
    speed = read_gb_per_s(found)
    if speed is None:
        return replace(machine, trouble=(*machine.trouble, "the bandwidth of the main memory could not be measured"))
    return replace(machine, processor=replace(found, measured_gb_per_s=speed))


def read_gb_per_s(found: Found) -> float | None:
    """What all cores of a processor read together, in 10^9 bytes a second; None where it failed."""
    cores = max(1, min(found.cores or 1, MOST_CORES))
    size = max(LEAST_BYTES, min(BLOCK_BYTES, (found.memory_bytes or 0) // (MEMORY_SHARE * cores)))
    command = [sys.executable, "-I", "-S", "-c", READER, str(size)]
    try:
        with contextlib.ExitStack() as ended:
            readers = []
            for _ in range(cores):
                reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                readers.append(ended.enter_context(reader))
                ended.callback(reader.kill)
            return round(sum(_together(readers)) / GB, 1)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _together(readers: Sequence[subprocess.Popen[str]]) -> list[float]:
    """What each reader reports, once all of them have begun at the same time."""
    for reader in readers:
        assert reader.stdout is not None
        reader.stdout.readline()
    for reader in readers:
        assert reader.stdin is not None
        reader.stdin.write("\n")
        reader.stdin.flush()
    return [float(reader.communicate(timeout=LIMIT_SECONDS)[0]) for reader in readers]

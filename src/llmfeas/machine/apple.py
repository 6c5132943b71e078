"""Apple silicon by sysctl and system_profiler."""

from __future__ import annotations

import json
import sys

from ..text import printable
from .probe import Found, named_values, output

SYSCTL = ("machdep.cpu.brand_string", "hw.memsize", "hw.physicalcpu", "hw.ncpu")


def apple_devices() -> list[Found]:
    """Describe this Mac's GPU; empty on anything else."""
    if sys.platform != "darwin":
        return []
    displays = output(["system_profiler", "SPDisplaysDataType", "-json"])
    return parse_apple(output(["sysctl", *SYSCTL]), displays)


def parse_apple(sysctl: str, displays: str) -> list[Found]:
    """Read `sysctl` lines (`hw.memsize: 17179869184`) and `system_profiler SPDisplaysDataType -json`."""
    values = named_values(sysctl)
    chip = values.get("machdep.cpu.brand_string", "")
    if not chip.startswith("Apple"):
        return []
    memory = values.get("hw.memsize", "")
    return [
        Found(
            backend="metal",
            vendor="apple",
            name=printable(chip),
            memory_bytes=int(memory) if memory.isdigit() else None,
            cores=_count(values.get("hw.physicalcpu", "")) or _count(values.get("hw.ncpu", "")),
            gpu_cores=_gpu_cores(displays),
            source="sysctl, system_profiler",
        )
    ]


def _count(text: str) -> int | None:
    return int(text) if text.isdigit() and 0 < int(text) < 10_000 else None


def _gpu_cores(displays: str) -> int | None:
    try:
        entries = json.loads(displays).get("SPDisplaysDataType", []) if displays.strip() else []
    except (ValueError, AttributeError, RecursionError):
        return None
    rows = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    counts = [_count(str(row.get("sppci_cores", ""))) for row in rows]
    return next((count for count in counts if count), None)

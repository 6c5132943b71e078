"""NVIDIA devices by nvidia-smi."""

from __future__ import annotations

import csv
import io

from ..text import printable
from .probe import Found, grouped, output

FIELDS = ("name", "memory.total", "compute_cap", "driver_version", "power.limit")
OLD_FIELDS = ("name", "memory.total", "driver_version", "power.limit")
"""Drivers before 470 do not know compute_cap."""


def nvidia_devices() -> list[Found]:
    """Ask nvidia-smi for all devices; empty where there is none."""
    for fields in (FIELDS, OLD_FIELDS):
        text = output(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,nounits"])
        devices = parse_nvidia_smi(text)
        if devices or not text:
            return devices
    return []


def parse_nvidia_smi(text: str) -> list[Found]:
    """Read the CSV of `nvidia-smi --query-gpu=... --format=csv`, with its header, with or without units."""
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if row]
    if len(rows) < 2 or not any(cell.startswith("name") for cell in rows[0]):
        return []
    names = [cell.partition(" [")[0] for cell in rows[0]]
    devices = []
    for row in rows[1:]:
        entry = dict(zip(names, row, strict=False))
        memory = number(entry.get("memory.total"))
        devices.append(
            Found(
                backend="cuda",
                vendor="nvidia",
                name=printable(entry.get("name") or "NVIDIA GPU"),
                memory_bytes=None if memory is None else int(memory * 2**20),
                target=entry.get("compute_cap") if number(entry.get("compute_cap")) is not None else None,
                power_w=number(entry.get("power.limit")),
                driver=entry.get("driver_version") or None,
                source="nvidia-smi",
            )
        )
    return grouped(devices)


def number(text: object) -> float | None:
    """Read the number at the start of a text such as `24564 MiB`; None for `[N/A]` and the like."""
    words = str(text).split() if text is not None else []
    try:
        value = float(words[0]) if words else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < 1e18 else None

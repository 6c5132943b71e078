"""NVIDIA devices by nvidia-smi."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping

from ..record import replace
from ..text import printable
from ..units import GIB, MIB
from .probe import Found, Trouble, grouped, output, parse_meminfo, text_of

FIELDS = ("index", "uuid", "name", "memory.total", "compute_cap", "driver_version", "power.limit", "mig.mode.current")
OLD_FIELDS = ("index", "uuid", "name", "memory.total", "driver_version", "power.limit")
"""Drivers before 470 do not know compute_cap."""
BOARD = "/proc/device-tree/model"
SLICES = 7
"""Parts that a card's arithmetic divides into (MIG); its memory divides into eight."""


def nvidia_devices(trouble: Trouble | None = None, visible: str | None = None) -> list[Found]:
    """Ask nvidia-smi for the devices; empty where there is none.

    `visible` is CUDA_VISIBLE_DEVICES: those that it names; None: all.
    """
    for place, fields in enumerate((FIELDS, OLD_FIELDS)):
        command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,nounits"]
        last = place == 1
        failed: Trouble = []
        text = output(command, trouble=failed)
        listed = output(["nvidia-smi", "-L"]) if "Enabled" in text else ""
        devices = parse_nvidia_smi(text, listed, visible)
        if devices or text or last or any("not answer" in each for each in failed):
            if trouble is not None:
                trouble += failed
            return [on_board(each, text_of(BOARD), text_of("/proc/meminfo")) for each in devices]
    return []


def on_board(device: Found, board: str, meminfo: str) -> Found:
    """A Jetson's GPU by the name of its board, with the memory that it shares with the processor.

    Its own names (`Orin (nvgpu)`) tell no module from another.
    """
    name = printable(board.strip("\0 \n"), 100)
    if "Jetson" not in name or device.memory_bytes is not None:
        return device
    return replace(device, name=name, memory_bytes=parse_meminfo(meminfo), source="nvidia-smi, device tree")


def parse_nvidia_smi(text: str, listed: str = "", visible: str | None = None) -> list[Found]:
    """Read the CSV of `nvidia-smi --query-gpu=... --format=csv`, with its header, with or without units.

    Of a card that is divided (MIG) `listed`, the text of `nvidia-smi -L`, tells the slices; without it there is none.
    """
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if row]
    if len(rows) < 2 or not any(cell.startswith("name") for cell in rows[0]):
        return []
    names = [cell.partition(" [")[0] for cell in rows[0]]
    entries = [dict(zip(names, row, strict=False)) for row in rows[1:]]
    seen = None if visible is None else _named(visible)
    slices = _slices(listed)
    devices = []
    for place, entry in enumerate(entries):
        index, uuid = entry.get("index", str(place)), entry.get("uuid", "")
        whole = seen is None or index in seen or any(name and uuid.startswith(name) for name in seen)
        card = _card(entry)
        if entry.get("mig.mode.current") != "Enabled":
            devices += [card] if whole else []
            continue
        for profile, own in slices.get(index, ()):
            if whole or own in (seen or ()):
                devices.append(_slice(card, profile))
    return grouped(devices)


def _named(visible: str) -> tuple[str, ...]:
    """What CUDA_VISIBLE_DEVICES names, up to the first that is none, as the driver reads it."""
    names = [name.strip() for name in visible.split(",")]
    end = next((place for place, name in enumerate(names) if not name or name.startswith("-")), len(names))
    return tuple(names[:end])


def _card(entry: Mapping[str, str]) -> Found:
    memory = number(entry.get("memory.total"))
    return Found(
        backend="cuda",
        vendor="nvidia",
        name=printable(entry.get("name") or "NVIDIA GPU"),
        memory_bytes=None if memory is None else int(memory * MIB),
        target=entry.get("compute_cap") if number(entry.get("compute_cap")) is not None else None,
        power_w=number(entry.get("power.limit")),
        source="nvidia-smi",
    )


def _slices(listed: str) -> dict[str, list[tuple[str, str]]]:
    """Profile and UUID of each slice by the index of its card, from `nvidia-smi -L`."""
    slices: dict[str, list[tuple[str, str]]] = {}
    index = ""
    for line in listed.splitlines():
        card = re.match(r"GPU (\d+):", line)
        part = re.match(r"\s+MIG (\d+(?:c\.\d+)?g\.\d+gb\S*)\s.*\(UUID: (MIG-[^)]+)\)", line)
        if card:
            index = card[1]
        elif part:
            slices.setdefault(index, []).append((part[1], part[2]))
    return slices


def _slice(card: Found, profile: str) -> Found:
    """The part of a card that a profile such as `2g.10gb` names."""
    sizes = re.search(r"(\d+)g\.(\d+)gb", profile)
    if sizes is None:
        return card
    memory = int(sizes[2]) * GIB
    if card.memory_bytes:
        # profiles round: 5, 10 and 20 GB of a card of 40 are eighths of it
        eighths = min(8, max(1, round(8 * memory / card.memory_bytes)))
        memory = card.memory_bytes * eighths // 8
    limit = f"a slice {printable(profile, 30)} of it (MIG)"
    return replace(card, memory_bytes=memory, share=min(1.0, int(sizes[1]) / SLICES), power_w=None, limits=(limit,))


def number(text: object) -> float | None:
    """Read the number at the start of a text such as `24564 MiB`; None for `[N/A]` and the like."""
    words = str(text).split() if text is not None else []
    try:
        value = float(words[0]) if words else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < 1e18 else None

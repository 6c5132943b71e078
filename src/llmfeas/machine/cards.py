"""Graphics adapters where no vendor's tool answers, as the system lists them: /proc, PCI ids, Windows' registry."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..catalog.device import BackendId
from ..text import printable
from .probe import Found, grouped, text_of, words_of_machines

NVIDIA_PROC = Path("/proc/driver/nvidia/gpus")
DRM = Path("/sys/class/drm")
INTEL = "0x8086"
ADAPTER_CLASS = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"

VENDORS: tuple[tuple[str, BackendId, str], ...] = (
    (r"\bNVIDIA\b", "cuda", "nvidia"),
    (r"\bRadeon\b|\bInstinct\b", "rocm", "amd"),
    (r"\bArc\b|\bData Center GPU\b", "xpu", "intel"),
)
"""What an adapter's name holds, where it is one that computes."""


def parse_nvidia_proc(texts: Iterable[str]) -> list[Found]:
    """Read the texts of /proc/driver/nvidia/gpus/*/information: names alone, no memory."""
    names = (match[1].strip() for text in texts if (match := re.search(r"^Model:\s*(\S.*)$", text, re.MULTILINE)))
    return grouped(
        [
            Found(backend="cuda", vendor="nvidia", name=printable(name), source="/proc/driver/nvidia")
            for name in names
            if name != "Unknown"
        ]
    )


def nvidia_by_kernel() -> list[Found]:
    """Ask the kernel module for NVIDIA devices, where nvidia-smi is missing or too slow."""
    return parse_nvidia_proc(text_of(folder / "information") for folder in _entries(NVIDIA_PROC))


def parse_intel_pci(cards: Iterable[tuple[str, str]]) -> list[Found]:
    """Read vendor and device ids (`0x8086`, `0x56a0`) of DRM cards; integrated graphics are left out."""
    known = words_of_machines()["intel_pci"]
    names = (known.get(device.lower()) for vendor, device in cards if vendor.lower() == INTEL)
    return grouped([Found(backend="xpu", vendor="intel", name=name, source="PCI ids") for name in names if name])


def intel_by_kernel() -> list[Found]:
    """Look Intel GPUs up by the PCI ids that the kernel lists, where xpu-smi is missing."""
    cards = (folder / "device" for folder in _entries(DRM) if re.fullmatch(r"card\d+", folder.name))
    return parse_intel_pci((text_of(card / "vendor").strip(), text_of(card / "device").strip()) for card in cards)


def parse_adapters(adapters: Iterable[Mapping[str, object]]) -> list[Found]:
    """Read display adapters of Windows' registry: `DriverDesc` and `HardwareInformation.qwMemorySize` (bytes)."""
    devices = []
    for adapter in adapters:
        name = re.sub(r"\((?:R|TM)\)", "", str(adapter.get("DriverDesc") or "")).strip()
        memory = adapter.get("HardwareInformation.qwMemorySize")
        kind = next(((backend, vendor) for word, backend, vendor in VENDORS if re.search(word, name)), None)
        # Integrated graphics have names without a number: `AMD Radeon Graphics`.
        if kind is None or not re.search(r"\d", name):
            continue
        devices.append(
            Found(
                backend=kind[0],
                vendor=kind[1],
                name=printable(name),
                memory_bytes=memory if isinstance(memory, int) and memory > 0 else None,
                source="Windows registry",
            )
        )
    return grouped(devices)


def windows_adapters() -> list[Found]:
    """Read the display adapters of a Windows machine; empty on any other."""
    return parse_adapters(_registry()) if sys.platform == "win32" else []


def _registry() -> Iterator[dict[str, object]]:
    if sys.platform != "win32":
        return
    import winreg

    for index in range(32):
        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, rf"{ADAPTER_CLASS}\{index:04d}") as key:
                entry: dict[str, object] = {}
                for name in ("DriverDesc", "HardwareInformation.qwMemorySize"):
                    try:
                        entry[name] = winreg.QueryValueEx(key, name)[0]
                    except OSError:
                        continue
                yield entry
        except OSError:
            return


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())[:256]
    except OSError:
        return []

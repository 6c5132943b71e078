"""The processor and the main memory of this machine: /proc and dmidecode, sysctl, or Windows' own calls."""

from __future__ import annotations

import os
import platform
import re
import sys

from ..record import replace
from ..text import printable
from .apple import SYSCTL
from .limits import affinity, allowed_bytes, allowed_processors, limited
from .probe import Found, named_values, output, parse_meminfo, text_of, words_of_machines


def cpu_devices() -> list[Found]:
    """Describe this machine's processor and main memory; what cannot be read stays None."""
    if sys.platform == "darwin":
        return parse_sysctl_cpu(output(["sysctl", *SYSCTL]))
    if sys.platform == "win32":
        return [_windows()]
    memory = parse_meminfo(text_of("/proc/meminfo"))
    found = parse_cpuinfo(text_of("/proc/cpuinfo"), memory, output(["dmidecode", "-t", "memory"]))
    if found.clock_ghz is None:
        found = replace(found, clock_ghz=_frequency_ghz())
    return [limited(found, affinity(), allowed_processors(), allowed_bytes())]


def _frequency_ghz() -> float | None:
    """The clock that the kernel's scaling driver calls the base, else the highest; GHz."""
    folder = "/sys/devices/system/cpu/cpu0/cpufreq"
    for name in ("base_frequency", "cpuinfo_max_freq"):
        text = text_of(f"{folder}/{name}").strip()
        if text.isdigit() and 0 < int(text) < 10**8:
            return int(text) / 1e6
    return None


def parse_cpuinfo(cpuinfo: str, memory_bytes: int | None = None, dmi: str = "") -> Found:
    """Read /proc/cpuinfo, with the size of memory and the text of `dmidecode -t memory` where root may read it."""
    first = named_values(cpuinfo.split("\n\n", 1)[0])
    everything = cpuinfo if len(cpuinfo) < 2**21 else cpuinfo[: 2**21]
    sockets = set(re.findall(r"^physical id\s*:\s*(\d+)", everything, re.MULTILINE)) or {"0"}
    per_socket = first.get("cpu cores", "")
    processors = len(re.findall(r"^processor\s*:", everything, re.MULTILINE))
    cores = int(per_socket) * len(sockets) if per_socket.isdigit() else processors or os.cpu_count()
    flags = set((first.get("flags") or first.get("Features") or "").split())
    kind, channels, speed = parse_dmidecode(dmi)
    clock = re.search(r"@\s*([\d.]+)\s*GHz", first.get("model name", ""))
    return Found(
        backend="cpu",
        vendor={"AuthenticAMD": "amd", "GenuineIntel": "intel"}.get(first.get("vendor_id", ""), "unknown"),
        name=printable(first.get("model name") or first.get("Model") or platform.machine() or "processor"),
        count=1,
        memory_bytes=memory_bytes,
        cores=cores,
        threads=processors or None,
        clock_ghz=float(clock[1]) if clock else None,
        vector_units=_vector_units(flags, _generation(first)),
        simd=tuple(name for flag, name in words_of_machines()["simd"].items() if flag in flags),
        generation=_generation(first),
        memory_type=kind,
        memory_channels=channels,
        memory_mt_per_s=speed,
        source="/proc/cpuinfo",
    )


def _vector_units(flags: set[str], generation: str | None) -> str | None:
    words = words_of_machines()
    units: str | None = next((units for flag, units in words["vector_units"].items() if flag in flags), None)
    return None if units is None else words["of_generation"].get(generation or "", units)


def _generation(fields: dict[str, str]) -> str | None:
    part = fields.get("CPU part", "")
    if fields.get("CPU implementer", "").lower() == "0x41" and part:
        vendor, family, model = "ARM", "8", str(int(part, 16)) if re.fullmatch(r"0x[0-9a-fA-F]{3}", part) else ""
    else:
        vendor, family, model = (fields.get(key, "") for key in ("vendor_id", "cpu family", "model"))
    if not (family.isdigit() and model.isdigit()):
        return None
    for who, kind, first, last, name in words_of_machines()["generations"]:
        if (who, int(kind, 16)) == (vendor, int(family)) and int(first, 16) <= int(model) <= int(last, 16):
            return str(name)
    return None


def parse_dmidecode(text: str) -> tuple[str | None, int | None, float | None]:
    """Read `dmidecode -t memory`: type of memory, channels in use, million transfers a second.

    A channel is a letter (`CHANNEL A`, `DIMM_A1`) or number in the locators of modules that are there; where the
    locators name none, it stays unknown.
    """
    modules = [named_values(block) for block in re.split(r"\n\s*\n|\nHandle ", text) if "Memory Device" in block]
    present = [module for module in modules if re.match(r"\d", module.get("Size", ""))]
    speeds = [
        float(match[1])
        for module in present
        if (match := re.match(r"(\d+)", module.get("Configured Memory Speed") or module.get("Speed") or ""))
    ]
    channels = {channel for module in present if (channel := _channel(module)) is not None}
    kinds = {module["Type"] for module in present if module.get("Type", "").startswith(("DDR", "LPDDR"))}
    all_named = present and all(_channel(module) is not None for module in present)
    return min(kinds, default=None), len(channels) if all_named else None, min(speeds, default=None)


def _channel(module: dict[str, str]) -> str | None:
    for text in (module.get("Bank Locator", ""), module.get("Locator", "")):
        match = re.search(r"CHANNEL[ _]?([A-Z0-9])", text, re.IGNORECASE)
        if match:
            socket = re.search(r"(?:P|CPU|NODE)[ _]?(\d)", text, re.IGNORECASE)
            return f"{socket[1] if socket else 0}{match[1].upper()}"
    match = re.search(r"DIMM[ _]?([A-Z])\d?", module.get("Locator", ""))
    return f"0{match[1]}" if match else None


def parse_sysctl_cpu(text: str) -> list[Found]:
    """Read the processor of a Mac from `sysctl` lines."""
    values = named_values(text)
    name, memory = values.get("machdep.cpu.brand_string", ""), values.get("hw.memsize", "")
    cores = values.get("hw.physicalcpu", "")
    if not name:
        return []
    return [
        Found(
            backend="cpu",
            vendor="apple" if name.startswith("Apple") else "intel",
            name=printable(name),
            memory_bytes=int(memory) if memory.isdigit() else None,
            cores=int(cores) if cores.isdigit() else None,
            source="sysctl",
        )
    ]


def _windows() -> Found:
    """Ask Windows for the processor's name (registry) and the size of memory."""
    if sys.platform != "win32":
        raise OSError("not Windows")
    import ctypes
    import winreg

    class _Status(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ulong), ("load", ctypes.c_ulong), ("sizes", ctypes.c_ulonglong * 7))

    status = _Status()
    status.length = ctypes.sizeof(status)
    known = ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"HARDWARE\DESCRIPTION\System\CentralProcessor\0") as key:
        name = str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()
    return Found(
        backend="cpu",
        vendor="amd" if "AMD" in name else "intel" if "Intel" in name else "unknown",
        name=printable(name),
        memory_bytes=int(status.sizes[0]) if known else None,
        cores=None,
        source="Windows registry",
    )

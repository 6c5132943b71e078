"""The processor and main memory of this machine, and what of it this process may use (control groups, affinity)."""

from __future__ import annotations

import math
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from ..record import replace
from ..text import printable
from ..units import GIB
from .apple import SYSCTL
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

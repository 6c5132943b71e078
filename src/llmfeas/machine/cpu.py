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
from .probe import Found, named_values, output, parse_meminfo, text_of

SIMD = (
    ("amx_bf16", "AMX bf16"), ("amx_int8", "AMX int8"), ("avx512_bf16", "AVX-512 bf16"), ("avx512f", "AVX-512"),
    ("avx_vnni", "AVX-VNNI"), ("avx512_vnni", "AVX-512 VNNI"), ("avx2", "AVX2"), ("sve2", "SVE2"), ("sve", "SVE"),
    ("bf16", "bf16"), ("i8mm", "i8mm"), ("asimd", "NEON"),
)  # fmt: skip
"""Flags of /proc/cpuinfo -> names."""

GENERATIONS: tuple[tuple[str, int, range, str], ...] = (
    ("AuthenticAMD", 0x17, range(0x30, 0xFF), "zen2"),
    ("AuthenticAMD", 0x19, range(0x10), "zen3"),
    ("AuthenticAMD", 0x19, range(0x10, 0x20), "zen4"),
    ("AuthenticAMD", 0x19, range(0x20, 0x60), "zen3"),
    ("AuthenticAMD", 0x19, range(0x60, 0xB0), "zen4"),
    ("AuthenticAMD", 0x1A, range(0xFF), "zen5"),
    ("GenuineIntel", 6, range(0x55, 0x56), "skylake-server"),
    ("GenuineIntel", 6, range(0x6A, 0x6D), "ice-lake-server"),
    ("GenuineIntel", 6, range(0x8F, 0x90), "sapphire-rapids"),
    ("GenuineIntel", 6, range(0xCF, 0xD0), "sapphire-rapids"),
    ("GenuineIntel", 6, range(0xAD, 0xAF), "granite-rapids"),
    ("GenuineIntel", 6, range(0x97, 0x9B), "alder-lake"),
    ("GenuineIntel", 6, range(0xB7, 0xC0), "alder-lake"),
    ("GenuineIntel", 6, range(0xC5, 0xC7), "arrow-lake"),
    ("ARM", 8, range(0xD0C, 0xD0D), "neoverse-n1"),
    ("ARM", 8, range(0xD40, 0xD41), "neoverse-v1"),
    ("ARM", 8, range(0xD4F, 0xD50), "neoverse-v2"),
)
"""Vendor, family, models -> generation. Source: Linux, arch/x86/include/asm/intel-family.h and amd.c, asm/cputype.h."""


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
        simd=tuple(name for flag, name in SIMD if flag in flags),
        generation=_generation(first),
        memory_type=kind,
        memory_channels=channels,
        memory_mt_per_s=speed,
        source="/proc/cpuinfo",
    )


VECTOR_UNITS: tuple[tuple[str, str], ...] = (
    ("amx_bf16", "amx"),
    ("avx512_bf16", "avx512-half"),
    ("avx512_vnni", "avx512-vnni"),
    ("avx512f", "avx512"),
    ("avx_vnni", "avx2-vnni"),
    ("avx2", "avx2"),
    ("avx", "avx"),
    ("sse2", "sse"),
    ("i8mm", "neon-bf16"),
    ("asimddp", "neon"),
    ("asimd", "neon-v8"),
)
"""The first of a processor's flags that it has -> vector units as data/processors.yaml names them."""
OF_GENERATION = {"zen5": "avx512-bf16", "neoverse-v1": "neon-4x128", "neoverse-v2": "neon-4x128"}
"""Where the generation tells more than the flags do: how wide the units behind the same instructions are."""


def _vector_units(flags: set[str], generation: str | None) -> str | None:
    units = next((units for flag, units in VECTOR_UNITS if flag in flags), None)
    return None if units is None else OF_GENERATION.get(generation or "", units)


def _generation(fields: dict[str, str]) -> str | None:
    part = fields.get("CPU part", "")
    if fields.get("CPU implementer", "").lower() == "0x41" and part:
        vendor, family, model = "ARM", "8", str(int(part, 16)) if re.fullmatch(r"0x[0-9a-fA-F]{3}", part) else ""
    else:
        vendor, family, model = (fields.get(key, "") for key in ("vendor_id", "cpu family", "model"))
    if not (family.isdigit() and model.isdigit()):
        return None
    return next(
        (
            name
            for who, kind, models, name in GENERATIONS
            if (who, kind) == (vendor, int(family)) and int(model) in models
        ),
        None,
    )


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

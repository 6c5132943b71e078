"""The processor that this machine has: as the catalog or its generation says, by cores and clock; else by the rule of
cores, clock and vector units.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from ..catalog.device import Device, Rates
from ..catalog.processor import rates
from ..record import replace
from ..units import GIB
from .probe import Found

if TYPE_CHECKING:
    from ..catalog.store import Catalog

CORE_GB_PER_S = 15.0
"""What one core of a server streams alone, at least: 30 GB/s were measured for two in matrix-vector products (fp32,
8192 x 8192, 2 virtual cores of a server with AMX, torch 2.13)."""
CLOCK_GHZ = 2.4
"""All-core clock of a processor that does not say its own: judgement, as servers in clouds mostly have."""
DESKTOP_CORES, DESKTOP_GB_PER_S, DESKTOP_GIB = 16, 50.0, 16
"""Up to so many cores a processor is taken to have two channels of DDR4-3200 (51 GB/s)."""
SERVER_CORE_GB_PER_S = 5.0
"""Bandwidth for each core of a larger one: 3.2 (EPYC 7742) to 7 (Xeon Gold 6248) in data/processors.yaml."""
USUAL_UNITS = {"x86": "avx2", "arm": "neon"}
BY_RULE = ("tflop_per_s", "bandwidth_gb_per_s")


def processor_of(probed: Found, entry: Device | None, catalog: Catalog) -> Device:
    """The processor that is here; `entry` is its own in the catalog, if it has one."""
    base = entry or _of_generation(probed, catalog)
    return _by_rule(probed, catalog) if base is None else _scaled(probed, base, known=entry is not None)


def memory_type(probed: Found) -> str | None:
    """The type of memory as the catalog writes it, such as `DDR5-4800`; None where nothing told."""
    if probed.memory_type is None or probed.memory_mt_per_s is None:
        return probed.memory_type
    return f"{probed.memory_type}-{probed.memory_mt_per_s:.0f}"


def bandwidth_gb_per_s(probed: Found) -> float | None:
    """The bandwidth as measured, else as channels and transfers (8 bytes each) make it, in 10^9 bytes a second."""
    if probed.measured_gb_per_s is not None:
        return probed.measured_gb_per_s
    if probed.memory_channels is None or probed.memory_mt_per_s is None:
        return None
    return probed.memory_channels * probed.memory_mt_per_s * 8 / 1000


def _by_rule(probed: Found, catalog: Catalog) -> Device:
    """A processor of which the catalog knows nothing; the notes say what the system did not and is assumed."""
    cores, clock = probed.cores or 1, probed.clock_ghz or CLOCK_GHZ
    units = catalog.raw("processors")["vector_units"]
    simd = probed.vector_units if probed.vector_units is not None else USUAL_UNITS[_family()]
    stated, usual = bandwidth_gb_per_s(probed), _usual_gb_per_s(cores)
    size = (probed.memory_bytes or DESKTOP_GIB * GIB) / GIB
    guesses = (
        (probed.cores, "one core"),
        (probed.vector_units, f"{simd} vector units"),
        (probed.clock_ghz, f"{clock:g} GHz"),
        (stated, f"{usual:.3g} GB/s to memory"),
        (probed.memory_bytes, f"{size:g} GiB"),
    )
    assumed = ", ".join(text for said, text in guesses if said is None)
    return Device(
        id="this",
        name=probed.name,
        backend="cpu",
        vendor=probed.vendor,
        kind="cpu",
        generation=probed.generation or "generic-cpu",
        memory_gib=size,
        memory_options_gib=(size,),
        memory_type=memory_type(probed) or "unknown",
        memory_channels=probed.memory_channels,
        bandwidth_gb_per_s=stated or usual,
        tflop_per_s=Rates(**(rates({"cores": cores, "clock_ghz": clock, "simd": simd}, units) or {})),
        cores=cores,
        clock_ghz=clock,
        simd=simd,
        by_rule=_by_rule_alone(probed),
        notes=f"what its cores, clock and vector units give{f'; assumed: {assumed}' if assumed else ''}",
    )


def _by_rule_alone(probed: Found) -> tuple[str, ...]:
    """What nothing but the rule tells of a processor."""
    return BY_RULE if probed.measured_gb_per_s is None else BY_RULE[:1]


def _usual_gb_per_s(cores: int) -> float:
    """The bandwidth that a processor of so many cores mostly has, and its cores alone can stream."""
    usual = DESKTOP_GB_PER_S if cores <= DESKTOP_CORES else max(DESKTOP_GB_PER_S, SERVER_CORE_GB_PER_S * cores)
    return min(usual, CORE_GB_PER_S * cores)


def _family() -> str:
    return "arm" if platform.machine().lower().startswith(("arm", "aarch")) else "x86"


def _of_generation(probed: Found, catalog: Catalog) -> Device | None:
    """The catalog's processor of this generation that is nearest in cores."""
    if probed.generation is None:
        return None
    peek = catalog.devices.peek
    same = [
        catalog.devices[key]
        for key in catalog.devices
        if peek(key, "generation") == probed.generation and peek(key, "backend") == "cpu"
    ]
    return min(same, key=lambda device: abs((device.cores or 1) - (probed.cores or 1)), default=None)


def _scaled(probed: Found, base: Device, *, known: bool) -> Device:
    """Scale a processor to the cores, clock and memory that are here (a slice of a server has few of its cores)."""
    cores = probed.cores or base.cores or 1
    share = cores / (base.cores or cores)
    clock = 1.0
    if not known and probed.clock_ghz and base.clock_ghz:
        clock = probed.clock_ghz / base.clock_ghz
    same = share == 1 and clock == 1
    bandwidth = base.bandwidth_gb_per_s
    stated = bandwidth_gb_per_s(probed)
    if stated is not None:
        bandwidth = stated
    elif share < 1:
        bandwidth = min(bandwidth, max(bandwidth * share, CORE_GB_PER_S * cores))
    size = (probed.memory_bytes or base.memory_bytes) / GIB
    return replace(
        base,
        id=base.id if known else "this",
        name=base.name if known else probed.name,
        memory_gib=size,
        memory_options_gib=(size,),
        memory_type=memory_type(probed) or base.memory_type,
        memory_channels=probed.memory_channels or base.memory_channels,
        bandwidth_gb_per_s=bandwidth,
        cores=cores,
        tflop_per_s=base.tflop_per_s if same else base.tflop_per_s.scaled(share * clock),
        power_w=base.power_w if same or base.power_w is None else base.power_w * min(1.0, share),
        prices=base.prices if known and same else (),
        launch_usd=base.launch_usd if known and same else None,
        by_rule=base.by_rule if known else _by_rule_alone(probed),
        notes=base.notes if known else f"rates of {base.id} by cores and clock",
    )

"""What was found on this machine as an entry of the catalog, with null wherever nothing told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, TypedDict, cast

from ..units import GIB, MIB
from .found import Found
from .match import Matched, device_of, memory_type

if TYPE_CHECKING:
    from ..catalog.store import Catalog

UNKNOWN_RATES = {"fp32": None, "fp16": None, "bf16": None}
KINDS = {"cpu": "cpu", "metal": "unified"}


class DeviceEntry(TypedDict, total=False):
    """A device's entry; null where neither catalog nor machine tells. Those of the catalog have further fields."""

    id: str
    name: str
    backend: str
    vendor: str
    kind: str | None
    generation: str | None
    target: str | None
    memory_gib: float | None
    memory_reported_mib: float | None
    memory_type: str | None
    memory_channels: int | None
    bandwidth_gb_per_s: float | None
    tflop_per_s: Mapping[str, float | None]
    cores: int | None
    gpu_cores: int | None
    clock_ghz: float | None
    power_w: float | None
    notes: str


class DetectedDevice(DeviceEntry, total=False):
    """A device of this machine: its entry, what it was matched to, and what the machine said."""

    matched: str | None
    """Its id in the catalog."""
    count: int
    differences: Sequence[Mapping[str, object]]
    """Where the machine is not as the catalog says."""
    detected: Mapping[str, object]


class DetectedMachine(DetectedDevice, total=False):
    """The device that this machine would be taken for, with what else there is."""

    host_memory_bytes: float | None
    others: Sequence[Mapping[str, object]]
    """Further devices of this machine."""


def entry_of(match: Matched, catalog: Catalog) -> DeviceEntry:
    """The device entry of a found device: the catalog's with this machine's figures, or one with gaps."""
    device = device_of(match, catalog)
    if device is not None:
        return cast(DeviceEntry, asdict(device))
    probed = match.found
    return {
        "id": re.sub(r"[^a-z0-9]+", "-", probed.name.lower()).strip("-")[:100] or "this",
        "name": probed.name,
        "backend": probed.backend,
        "vendor": probed.vendor,
        "kind": KINDS.get(probed.backend),
        "generation": probed.generation,
        "target": probed.target,
        "memory_gib": None if probed.memory_bytes is None else round(probed.memory_bytes / GIB, 2),
        "memory_reported_mib": _reported(probed),
        "memory_type": memory_type(probed),
        "memory_channels": probed.memory_channels,
        "bandwidth_gb_per_s": bandwidth_gb_per_s(probed),
        "tflop_per_s": dict(UNKNOWN_RATES),
        "cores": probed.cores,
        "gpu_cores": probed.gpu_cores,
        "clock_ghz": probed.clock_ghz,
        "power_w": probed.power_w,
    }


def _reported(probed: Found) -> int | None:
    if probed.memory_bytes is None or probed.backend in KINDS:
        return None
    return round(probed.memory_bytes / MIB)


def bandwidth_gb_per_s(probed: Found) -> float | None:
    """The bandwidth that channels and transfers a second make (8 bytes a transfer), in 10^9 bytes a second."""
    if probed.memory_channels is None or probed.memory_mt_per_s is None:
        return None
    return probed.memory_channels * probed.memory_mt_per_s * 8 / 1000


def detected(match: Matched, catalog: Catalog) -> DetectedDevice:
    """A found device as `detect` reports it."""
    probed = match.found
    return {
        **entry_of(match, catalog),
        "matched": match.entry.id if match.entry is not None else None,
        "count": probed.count,
        "differences": [asdict(difference) for difference in match.differences],
        "detected": asdict(probed),
    }

"""The device that this machine really has, and as an entry of a catalog file, with null wherever nothing told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, TypedDict, cast

from ..catalog.device import Device
from ..units import GIB, MIB
from .match import Matched
from .probe import Found
from .processor import bandwidth_gb_per_s, memory_type, processor_of

if TYPE_CHECKING:
    from ..catalog.store import Catalog


def device_of(match: Matched, catalog: Catalog) -> Device | None:
    """Make the device that this machine really is: the catalog's entry with this machine's memory, cores and links.

    A processor that the catalog does not have takes the rates of one of its generation, by cores and clock, else what
    the rule gives of its cores, clock and vector units. None: an accelerator that the catalog does not have.
    """
    probed, entry = match.found, match.entry
    if probed.backend == "cpu":
        return processor_of(probed, entry, catalog)
    if entry is None:
        return None
    if probed.share < 1 and probed.memory_bytes is not None:
        return _slice(entry, probed.share, probed.memory_bytes)
    if entry.backend == "rocm" and (probed.gpu_cores or 0) < (entry.gpu_cores or 0) and probed.gpu_cores:
        return _part(entry, probed.gpu_cores / (entry.gpu_cores or 1), probed.memory_bytes)
    memory = probed.memory_bytes
    if memory is None:
        return entry
    if entry.backend == "metal":
        share = (probed.gpu_cores / entry.gpu_cores) if probed.gpu_cores and entry.gpu_cores else 1.0
        size = float(round(memory / GIB))
        return replace(
            entry,
            memory_gib=size,
            memory_options_gib=(size,),
            gpu_cores=probed.gpu_cores or entry.gpu_cores,
            tflop_per_s=entry.tflop_per_s if share == 1 else entry.tflop_per_s.scaled(share),
        )
    changed = any(difference.field == "memory_gib" for difference in match.differences)
    reported = memory / MIB
    return replace(
        entry,
        memory_reported_mib=reported,
        memory_gib=max(entry.memory_gib, memory / GIB) if changed else entry.memory_gib,
    )


def _part(entry: Device, share: float, memory_bytes: int | None) -> Device:
    """A partition of an Instinct: those of one card may be told the same memory, of which each has its share."""
    own = round((entry.reported_bytes or entry.memory_bytes) * share)
    return _slice(entry, share, min(own, memory_bytes or own))


def _slice(entry: Device, share: float, memory_bytes: int) -> Device:
    """A slice of a card: its share of the arithmetic, of memory and of the bandwidth to it."""
    part = memory_bytes / (entry.reported_bytes or entry.memory_bytes)
    return replace(
        entry,
        memory_gib=min(entry.memory_gib, memory_bytes / GIB),
        memory_reported_mib=None,
        bandwidth_gb_per_s=entry.bandwidth_gb_per_s * min(1.0, part),
        tflop_per_s=entry.tflop_per_s.scaled(share),
        power_w=None if entry.power_w is None else entry.power_w * share,
        devices_per_node=1,
        links=(),
        prices=(),
    )


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

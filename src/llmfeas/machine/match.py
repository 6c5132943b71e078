"""From what was found to a device of the catalog: same name, nearest memory, rates scaled where cores differ; and as an
entry, with null wherever nothing told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, TypedDict, cast

from ..catalog.device import Device, Rates
from ..catalog.search import find_device, index_of, tokens_of
from ..errors import UsageError
from ..record import dataclass
from ..units import GIB, MIB
from .probe import Found

if TYPE_CHECKING:
    from ..catalog.store import Catalog

CORE_GB_PER_S = 15.0
"""What one core of a server streams alone, at least: 30 GB/s were measured for two in matrix-vector products (fp32,
8192 x 8192, 2 virtual cores of a server with AMX, torch 2.13)."""

NOISE = re.compile(
    r"\b\d+(?:st|nd|rd|th) Gen\b|\bwith .*|\bw/.*|\b\w+-Core\b|\bProcessor\b|\bCPU\b|\(R\)|\(TM\)|@.*", re.IGNORECASE
)
"""What processors write around their names: `13th Gen`, `16-Core Processor`, `with Radeon Graphics`."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A figure of this machine that is not the catalog's."""

    field: str
    catalog: float | str | None
    here: float | str | None


@dataclass(frozen=True, slots=True)
class Matched:
    """A found device beside its catalog entry (None: the catalog has none), and where they differ."""

    found: Found
    entry: Device | None
    differences: tuple[Deviation, ...] = ()


def matched(probed: Found, catalog: Catalog) -> Matched:
    """Find the catalog's entry of a found device; among variants the one with its memory and cores."""
    entries = _candidates(probed, catalog)
    if not entries:
        return Matched(probed, None)
    entry = min(entries, key=lambda device: _distance(probed, device))
    return Matched(probed, entry, differences(probed, entry))


def _candidates(probed: Found, catalog: Catalog) -> list[Device]:
    if not any(character.isdigit() for character in probed.name):
        return []
    for name in _names(probed.name):
        try:
            match = find_device(name, catalog)
            ids = [match.record.id, *match.others]
        except UsageError as error:
            ids = list(error.candidates) if error.code == "ambiguous-device" else _same_words(name, catalog)
        devices = [catalog.devices[key] for key in ids if key in catalog.devices]
        devices = [device for device in devices if device.backend == probed.backend]
        if devices:
            return devices
    return []


def _names(name: str) -> Iterator[str]:
    """Spellings under which the catalog may know a name, the fullest first."""
    yield name
    plain = " ".join(NOISE.sub(" ", name).split())
    yield plain
    inside = re.search(r"\[([^\]]+)\]", name)
    if inside:
        yield inside[1]
    # EPYC 9654P is the 9654 for one socket.
    if re.search(r"\d{4}P$", plain):
        yield plain[:-1]


def _same_words(name: str, catalog: Catalog) -> list[str]:
    """Find entries of the same words in another order (`A100 80GB PCIe`)."""
    wanted = sorted(tokens_of(name))
    return list(dict.fromkeys(key for tokens, key in index_of(catalog.devices).names if sorted(tokens) == wanted))


def _distance(probed: Found, device: Device) -> tuple[float, float]:
    memory, cores = 0.0, 0.0
    reported = device.reported_bytes or device.memory_bytes
    if probed.memory_bytes and not device.memory_options_gib and device.backend != "cpu":
        memory = abs(probed.memory_bytes / reported - 1)
    if probed.gpu_cores and device.gpu_cores:
        cores = abs(probed.gpu_cores - device.gpu_cores)
    return memory, cores


def differences(probed: Found, entry: Device) -> tuple[Deviation, ...]:
    """List where this machine is not as the catalog says; what was not found out is no difference."""
    pairs: list[tuple[str, float | str | None, float | str | None]] = [
        ("target", entry.target or None, probed.target),
        ("gpu_cores", entry.gpu_cores, probed.gpu_cores),
        ("cores", entry.cores, probed.cores if entry.backend == "cpu" else None),
        ("memory_channels", entry.memory_channels, probed.memory_channels),
        ("memory_type", entry.memory_type, memory_type(probed)),
        ("power_w", entry.power_w, probed.power_w),
    ]
    unlike = [Deviation(name, ours, here) for name, ours, here in pairs if here is not None and here != ours]
    return (*_memory_difference(probed, entry), *unlike)


def _memory_difference(probed: Found, entry: Device) -> tuple[Deviation, ...]:
    """Compare memory: the driver's total for a GPU (2 % of slack), the sizes that are sold for a Mac."""
    if probed.memory_bytes is None or entry.backend == "cpu":
        return ()
    here = probed.memory_bytes / GIB
    sold = entry.memory_options_gib or ((entry.reported_bytes or entry.memory_bytes) / GIB,)
    if any(abs(here / size - 1) < 0.02 for size in sold):
        return ()
    return (Deviation("memory_gib", entry.memory_gib, round(here, 2)),)


def memory_type(probed: Found) -> str | None:
    """The type of memory as the catalog writes it, such as `DDR5-4800`; None where nothing told."""
    if probed.memory_type is None or probed.memory_mt_per_s is None:
        return probed.memory_type
    return f"{probed.memory_type}-{probed.memory_mt_per_s:.0f}"


def device_of(match: Matched, catalog: Catalog) -> Device | None:
    """Make the device that this machine really is: the catalog's entry with this machine's memory, cores and links.

    A processor that the catalog does not have takes the rates of one of its generation, by cores and clock. None: the
    catalog has nothing that it could stand on.
    """
    probed, entry = match.found, match.entry
    if probed.backend == "cpu":
        base = entry or _of_generation(probed, catalog)
        return None if base is None else _processor(probed, base, known=entry is not None)
    if entry is None:
        return None
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
            tflop_per_s=entry.tflop_per_s if share == 1 else scaled(entry.tflop_per_s, share),
        )
    changed = any(difference.field == "memory_gib" for difference in match.differences)
    reported = memory / MIB
    return replace(
        entry,
        memory_reported_mib=reported,
        memory_gib=max(entry.memory_gib, memory / GIB) if changed else entry.memory_gib,
    )


def _of_generation(probed: Found, catalog: Catalog) -> Device | None:
    """The catalog's processor of this generation that is nearest in cores."""
    same = [
        catalog.devices[key]
        for key in catalog.devices
        if catalog.devices[key].backend == "cpu" and catalog.devices[key].generation == probed.generation
    ]
    return min(same, key=lambda device: abs((device.cores or 1) - (probed.cores or 1)), default=None)


def _processor(probed: Found, base: Device, *, known: bool) -> Device:
    """Scale a processor to the cores, clock and memory that are here (a slice of a server has few of its cores)."""
    cores = probed.cores or base.cores or 1
    share = cores / (base.cores or cores)
    clock = 1.0
    if not known and probed.clock_ghz and base.clock_ghz:
        clock = probed.clock_ghz / base.clock_ghz
    same = share == 1 and clock == 1
    bandwidth = base.bandwidth_gb_per_s
    if probed.memory_channels and probed.memory_mt_per_s:
        bandwidth = probed.memory_channels * probed.memory_mt_per_s * 8 / 1000
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
        tflop_per_s=base.tflop_per_s if same else scaled(base.tflop_per_s, share * clock),
        power_w=base.power_w if same or base.power_w is None else base.power_w * min(1.0, share),
        prices=base.prices if known and same else (),
        notes=base.notes if known else f"rates of {base.id} by cores and clock",
    )


def scaled(rates: Rates, factor: float) -> Rates:
    """Multiply every rate that exists."""
    values = {field.name: getattr(rates, field.name) for field in fields(rates)}
    return Rates(**{name: None if value is None else value * factor for name, value in values.items()})


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

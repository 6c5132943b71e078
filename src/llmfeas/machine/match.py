"""From what was found to an entry of the catalog: the same name, the nearest memory; and where they differ."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..catalog.device import Device
from ..catalog.search import core_of, find_device, index_of, joined, tokens_of
from ..errors import UsageError
from ..record import dataclass, replace
from ..units import GIB
from .probe import Found
from .processor import memory_type

if TYPE_CHECKING:
    from ..catalog.store import Catalog

_GRAPHICS = re.compile(r"(?:w/|with)\s+(?:AMD\s+)?Radeon(?:\(TM\))?\s+(?P<number>\d{3,4}[MS])\b", re.IGNORECASE)
_CODE_NAMES = (
    "Raven|Picasso|Renoir|Lucienne|Cezanne|Barcelo|Rembrandt|Raphael|Mendocino|Phoenix|Hawk|Strix|Krackan|Granite"
)
_ANONYMOUS = re.compile(
    rf"AMD GPU|(?:AMD )?Radeon(?:\(TM\))?(?: Graphics)?|(?:{_CODE_NAMES})(?: ?Ridge| ?Point| ?Halo)?\d?", re.IGNORECASE
)
"""Names that say no model: the driver's, and code names of processors whose graphics they are (the list of PCI ids)."""

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
    alike: tuple[str, ...] = ()
    """Further entries that its name and its memory may mean as well."""


def matched(probed: Found, catalog: Catalog) -> Matched:
    """Find the catalog's entry of a found device; among variants the one with its memory and cores."""
    entries = _candidates(probed, catalog)
    by_target = not entries
    if by_target and probed.backend == "rocm":
        entries = _of_target(probed, catalog)
    if not entries:
        return Matched(probed, None)
    entry = min(entries, key=lambda device: _distance(probed, device))
    several = "/" in probed.name or not any(character.isdigit() for character in probed.name) or by_target
    nearest = _distance(probed, entry)
    same = [each.id for each in entries if each is not entry and _distance(probed, each) == nearest] if several else []
    return Matched(probed, entry, differences(probed, entry), tuple(same))


def named_by(probed: Found, processor: Found | None) -> Found:
    """Graphics without a name of their own (`AMD Radeon Graphics`) by what the processor calls them.

    Processors carry it in theirs: `AMD Ryzen 7 7840HS w/ Radeon 780M Graphics`.
    """
    said = None if processor is None else _GRAPHICS.search(processor.name)
    if said is None or probed.vendor != "amd":
        return probed
    number = said["number"]
    anonymous = _ANONYMOUS.fullmatch(probed.name) is not None
    return replace(probed, name=f"Radeon {number}") if anonymous or number in probed.name else probed


def _candidates(probed: Found, catalog: Catalog) -> list[Device]:
    """The entries that a name may mean, by its spellings, the fullest first."""
    for names in _spellings(probed.name):
        ids = [key for name in names for key in _ids(name, probed.backend, catalog)]
        devices = [catalog.devices[key] for key in dict.fromkeys(ids) if key in catalog.devices]
        devices = [device for device in devices if device.backend == probed.backend and not device.assumption]
        if devices:
            return [*devices, *_variants(devices, catalog)]
    return []


def _variants(devices: list[Device], catalog: Catalog) -> list[Device]:
    """Entries whose names say only a size or a remark more: `RTX 4090 48GB (modified)`, `M3 Ultra (60-core GPU)`."""
    peek, here = catalog.devices.peek, {device.id for device in devices}
    names = {device.name for device in devices}
    keys = [key for key in catalog.devices if key not in here and REMARK.sub("", str(peek(key, "name"))) in names]
    return [catalog.devices[key] for key in keys]


def _ids(name: str, backend: str, catalog: Catalog) -> list[str]:
    """What a spelling means. A processor or a name without a number must be the very name of an entry."""
    if backend == "cpu" or not any(character.isdigit() for character in name):
        index = index_of(catalog.devices)
        tokens = tokens_of(name)
        own = index.exact.get(joined(tokens))
        if own is not None:
            return [own]
        numbered = any(word[0].isdigit() for word in core_of(tokens))
        return list(index.short.get(joined(core_of(tokens)), ())) if numbered and backend == "cpu" else []
    try:
        match = find_device(name, catalog)
        return [match.record.id, *match.others]
    except UsageError as error:
        return list(error.candidates) if error.code == "ambiguous-device" else _same_words(name, catalog)


def _of_target(probed: Found, catalog: Catalog) -> list[Device]:
    """Devices of the same ROCm target whose memory is the same, or shared with the processor."""
    if probed.target is None:
        return []
    devices, nameless = catalog.devices, not any(character.isdigit() for character in probed.name)
    same = [devices[key] for key in devices.first() if devices.peek(key, "target") == probed.target]
    size = probed.memory_bytes
    shared = [device for device in same if device.kind == "apu"]
    if shared or not nameless or not size:
        return shared
    # A card with a model number that the catalog lacks is another card, whatever its target.
    return [device for device in same if abs(size / (device.reported_bytes or device.memory_bytes) - 1) < 0.04]


_EXTRAS = r"OAM|AC|LC|MBA|HPE|C2|SXM6|480GB|HBM3e?|Edition|Graphics|Workstation|Developer Kit|Engineering Reference"
REMARK = re.compile(r"(?:\s+\d+ ?GB|\s+\([^)]*\))+$")
"""What the catalog writes behind the name that variants share."""
GIVEN_AWAY = re.compile(rf"\(MCM\)|\bSuper$|\b(?:{_EXTRAS})\b", re.IGNORECASE)
"""What drivers write into the names of accelerators without telling one from another."""
MAX_Q = re.compile(r"\s+with Max-Q Design|\s+Max-Q Workstation Edition", re.IGNORECASE)


def _spellings(name: str) -> Iterator[tuple[str, ...]]:
    """Spellings under which the catalog may know a name, the fullest first; several where a name lists several."""
    inside = re.search(r"\[([^\]]+)\]", name)
    if inside:
        yield tuple(_listed(inside[1]))
    elif " / " in name:
        yield tuple(_listed(name))
    if MAX_Q.search(name):
        yield (MAX_Q.sub(" Max-Q", name),)
        return
    yield (name,)
    plain = " ".join(NOISE.sub(" ", name).split())
    yield (plain,)
    yield (re.sub(r"\b(\d+)G\b", r"\1GB", " ".join(GIVEN_AWAY.sub(" ", plain).split())),)
    # Boards of one accelerator: HL-225B, HL-325L.
    if re.match(r"HL-\d{3}[A-Z]$", plain):
        yield (plain[:-1],)
    # EPYC 9654P is the 9654 for one socket.
    if re.search(r"\d{4}P$", plain):
        yield (plain[:-1],)


def _listed(text: str) -> Iterator[str]:
    """The names in `Radeon RX 7900 XT/7900 XTX/7900M`: what stands before the first number stands before each."""
    parts = [part.strip() for part in text.split("/")]
    front = re.match(r"\D*", parts[0])
    yield parts[0]
    yield from (part if re.match(r"\D", part) else f"{front[0] if front else ''}{part}" for part in parts[1:])


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
        ("bandwidth_gb_per_s", entry.bandwidth_gb_per_s, probed.measured_gb_per_s),
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

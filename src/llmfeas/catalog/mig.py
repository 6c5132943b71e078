"""Slices of a device as NVIDIA's Multi-Instance GPU makes and names them: `3g.40gb` of an H100.

Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/ (profiles: compute slices, memory in GB).
"""

from __future__ import annotations

import re
from typing import Final

from ..record import dataclass, replace
from .device import Device

_PROFILE: Final = re.compile(r"(?<![\w.])([1-9])g[.\s_-]?([1-9]\d{0,2})gb(?:\+\w+)?(?!\w)", re.ASCII | re.IGNORECASE)
_WORD: Final = re.compile(r"(?<!\w)mig(?!\w)", re.ASCII | re.IGNORECASE)
SLACK: Final = 0.1
"""By how much the memory in a profile's name may differ from its share of the whole: names are rounded."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a profile's name says: slices of the compute units, and memory."""

    compute: int
    memory_gib: int


def without_profile(text: str) -> tuple[str, Profile] | None:
    """A name without the profile that stands in it, and that; None where none does, or nothing else."""
    match = _PROFILE.search(text)
    if match is None:
        return None
    rest = " ".join(_WORD.sub(" ", f"{text[: match.start()]} {text[match.end() :]}").split()).strip(" -_:,")
    return (rest, Profile(int(match[1]), int(match[2]))) if rest else None


def named_slice(device: Device, profile: Profile) -> Device | None:
    """The slice of a device; None where it is not divided so.

    Memory is divided into eight parts where compute units are into seven, else into as many; a slice has one, two, four
    or all of them, and reaches no other slice. All compute units come with all memory.
    """
    slices = device.mig_slices
    if slices is None or profile.compute > slices:
        return None
    parts = 8 if slices == 7 else slices
    sizes = [count for count in (1, 2, 4, 8) if count <= parts]
    count = min(sizes, key=lambda each: abs(device.memory_gib * each / parts - profile.memory_gib))
    halved = profile.compute == slices and count < parts
    if halved or abs(device.memory_gib * count / parts / profile.memory_gib - 1) > SLACK:
        return None
    name = f"{profile.compute}g.{profile.memory_gib}gb"
    part = device.part(profile.compute / slices, count / parts) if profile.compute < slices else device
    return replace(
        part, id=f"{device.id}:{name}", name=f"{device.name}, slice {name}", devices_per_node=1, links=(), prices=()
    )

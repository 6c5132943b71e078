"""How clouds spell their machines: which device, how many, and how much memory each or all of them have."""

from __future__ import annotations

import re
from typing import Final

_SPELLED: Final = tuple(
    re.compile(rf"(?:[a-z]+[\s:/]+)?{pattern}", re.IGNORECASE)
    for pattern in (
        r"gpu-(?P<device>[a-z0-9]+(?:-(?:sxm|pcie|nvl))?)(?:-[a-z])?_(?P<count>\d{1,2})gpu-\d+vcpu-\d+gb",
        r"gpu-(?P<device>[a-z0-9]+?)x(?P<count>\d{1,2})-(?P<memory>\d+)gb",
        r"(?P<count>\d{1,2})(?P<device>[a-z]+\d+[a-z]*)(?:\.(?P<memory>\d+)s)?\.\d+v",
        r"n\d-(?P<device>[a-z0-9]+(?:-[a-z0-9]+)?)x(?P<count>\d{1,2})(?:-nvlink)?",
        r"(?P<device>[a-z0-9]+)-(?P<memory>\d+)gb(?P<form>-sxm|-pcie)?(?:-ib)?\.(?P<count>\d{1,2})x",
        r"(?P<device>[a-z]+\d+[a-z]*(?:-sxm)?)-(?P<count>\d{1,2})-(?P<memory>\d+)g",
        r"(?P<device>tpu-v5litepod|v5litepod)-(?P<slice>\d+)",
    )
)
"""Nebius, DigitalOcean, Verda, Hyperstack, Crusoe, Scaleway, and SkyPilot's name of Google's slices."""


def rented(text: str) -> tuple[str, int | None] | None:
    """The device and the count in a machine's name, in words that people use; None where no cloud spells so."""
    match = next((found for found in (spelled.fullmatch(text.strip()) for spelled in _SPELLED) if found), None)
    if match is None:
        return None
    said = match.groupdict()
    if said.get("slice"):
        return f"v5litepod-{said['slice']}", None
    device = f"{said['device']}{said.get('form') or ''}"
    memory = f" {said['memory']}gb" if said.get("memory") else ""
    return device + memory, int(said["count"])

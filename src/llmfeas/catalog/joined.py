"""A machine of unequal devices (`rtx-4090+rtx-3090`): one device by its sums, which knows its parts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from ..record import dataclass, fields
from .device import Device, Price
from .prices import cheapest_price

if TYPE_CHECKING:
    from .store import Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined(Device):
    """Devices that differ, in the order in which they were named.

    Memory, bandwidth and power are those of one device on average; what they have beside is the first one's.
    """

    parts: tuple[Device, ...] = ()

    def __hash__(self) -> int:
        return hash((self.id, self.memory_gib))

    @property
    def split(self) -> tuple[float, ...]:
        """The memory of each part as its driver reports it, bytes: by that layers are dealt out."""
        return tuple(part.reported_bytes or part.memory_bytes for part in self.parts)


def joined(parts: tuple[Device, ...]) -> Joined:
    """The machine of some devices of one backend: layers by memory, one device working after the other."""
    first, count = parts[0], len(parts)
    memory = sum(part.memory_gib for part in parts)
    powers = [part.power_w for part in parts]
    said = {each.name: getattr(first, each.name) for each in fields(first)}
    said |= {
        "id": "+".join(_counted((part.id for part in parts), "x")),
        "name": " + ".join(_counted((part.name for part in parts), " x ")),
        "memory_gib": memory / count,
        "memory_reported_mib": None,
        "bandwidth_gb_per_s": memory / sum(part.memory_gib / part.bandwidth_gb_per_s for part in parts),
        "power_w": None if None in powers else sum(filter(None, powers)) / count,
        "devices_per_node": count,
        "prices": (),
        "aliases": (),
    }
    return Joined(**said, parts=parts)


def _counted(names: Iterable[str], times: str) -> list[str]:
    runs = [(name, len(list(run))) for name, run in groupby(names)]
    return [name if count == 1 else f"{count}{times}{name}" for name, count in runs]


def parts_of(device: Device) -> tuple[Device, ...]:
    """The parts of a machine of unequal devices, each once, in order; of others the device itself."""
    return tuple({part.id: part for part in device.parts}.values()) if isinstance(device, Joined) else (device,)


def joined_price(machine: Joined, catalog: Catalog, provider: str | None) -> Price | None:
    """Rent of one device on average: the sum over the parts, shared; None where a part has no price."""
    prices = [cheapest_price(part, catalog, provider) for part in machine.parts]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return None
    dates = [price.as_of for price in known]
    return Price(
        provider=" and ".join(dict.fromkeys(price.provider for price in known)),
        usd_per_hour=sum(price.usd_per_hour for price in known) / len(known),
        as_of=None if None in dates else min(filter(None, dates)),
    )

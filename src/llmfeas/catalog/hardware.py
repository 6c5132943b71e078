"""What `--device` names: a device, how many of it, with how much memory, and the offer that it comes in."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..record import dataclass
from .device import Device, Offer
from .joined import joined
from .search import exact_id

if TYPE_CHECKING:
    from .store import Catalog


@dataclass(frozen=True, slots=True)
class Hardware:
    """What `--device` names."""

    device: Device
    """Of an offer that lends a part of a device, that part."""
    count: int | None = None
    """As written (`8xh100`) or as offered; None: not said."""
    offer: Offer | None = None
    note: str | None = None
    others: tuple[str, ...] = ()
    memory_gib: float | None = None
    """Of a machine sold in several sizes, the one that its name says (`m4 16gb`); None: not said."""
    provider: str | None = None
    """From whom it is rented (`runpod 4090`); None: not said."""
    host_memory_bytes: int | None = None
    """Main memory of the machine that it is in; None: not known."""
    power_limit_w: float | None = None
    """What each is limited to here, below its board's power; None: not known, or nothing below."""


@functools.lru_cache(maxsize=4096)
def find_hardware(text: str, catalog: Catalog) -> Hardware:
    """Find the device or offer that `text` names, as people type it: `8xh100-sxm`, `mac mini m4 16gb`, `g5.2xlarge`.

    Raises:
        UsageError: `unknown-device`, `ambiguous-device`, or `bad-quantity` for a count of 0.
    """
    count, _, rest = text.partition("x")
    if count.isdecimal() and int(count[:9]) and rest in catalog.devices:
        return Hardware(catalog.devices[rest], int(count))
    if text in catalog.devices:
        return Hardware(catalog.devices[text])
    own = exact_id(catalog.offers, text)
    if own is not None:
        return _lent(catalog.offers[own], catalog, None)
    from .machine_names import meant

    try:
        found = meant(text, catalog)
    except UsageError:
        together = _together(text, catalog)
        if together is None:
            raise
        return together
    if found.offer is not None:
        return _lent(catalog.offers[found.offer], catalog, found.count, found.note)
    device = catalog.devices[found.device]
    return Hardware(device, found.count, None, found.note, found.others, found.memory_gib, found.provider)


MOST_PARTS = 16


def _together(text: str, catalog: Catalog) -> Hardware | None:
    """What the parts of `a+b` are together; None where they name no devices.

    Raises:
        UsageError: `unequal-devices` for parts that no engine joins.
    """
    names = [part.strip() for part in text.split("+")]
    if not 1 < len(names) <= MOST_PARTS or not all(names):
        return None
    try:
        found = [find_hardware(name, catalog) for name in names]
    except UsageError:
        return None
    devices = {each.device.id: each.device for each in found}
    count = sum(each.count or 1 for each in found)
    if len(devices) == 1:
        return Hardware(found[0].device, count)
    _check_parts(found, tuple(devices.values()))
    if count > MOST_PARTS:
        problem = f"{count} unequal devices in one machine: at most {MOST_PARTS} are computed"
        raise UsageError("unequal-devices", problem, "ask for fewer", tuple(devices))
    return Hardware(joined(tuple(each.device for each in found for _ in range(each.count or 1))), count)


def _check_parts(found: list[Hardware], devices: tuple[Device, ...]) -> None:
    """Refuse parts that are in no machine together.

    Raises:
        UsageError: `unequal-devices`.
    """
    names, ids = " and ".join(each.name for each in devices), tuple(each.id for each in devices)
    problem, hint = "", "ask for the devices of one kind"
    if len({each.backend for each in devices}) > 1:
        problem = f"devices of different software are not joined ({names}): no engine serves one model on them"
    elif any(each.is_unified or each.kind == "cpu" for each in devices):
        problem = f"only cards with memory of their own are joined in one machine ({names})"
    elif any(each.offer is not None for each in found):
        problem = "a rented machine is not joined with other devices"
        hint = f"name the devices themselves: {'+'.join(f'{each.count or 1}x{each.device.id}' for each in found)}"
    if problem:
        raise UsageError("unequal-devices", problem, hint, ids)


def _lent(offer: Offer, catalog: Catalog, count: int | None, note: str | None = None) -> Hardware:
    return Hardware(catalog.devices[offer.device].part(offer.share), count or offer.count, offer, note)


def near_devices(text: str, catalog: Catalog) -> list[str]:
    """The ids of devices that `text` means as a whole, or of those that an unknown name is near to."""
    try:
        found = find_hardware(text, catalog)
    except UsageError as error:
        return [name for name in error.candidates if name in catalog.devices]
    return [found.device.id, *found.others]

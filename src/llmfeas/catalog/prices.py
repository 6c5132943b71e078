"""What a device rents for: its own prices, else those of machines that hold it; and which price is to be doubted.

A price that names a source but no day is of unknown age, and left out; one that names neither is the user's own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ..units import TERA
from .device import Device, Price

if TYPE_CHECKING:
    from .device import Offer
    from .store import Catalog

IN_CLOUDS: Final = ("datacenter", "cpu")
"""Kinds that clouds lend in machines of their own names."""
DEAR: Final = 2.5
CHEAP: Final = 4.0
"""How many times more, or less, than devices of its kind a price must be to be doubted."""


def current(device: Device) -> tuple[Price, ...]:
    """The prices that count: those of a known day, of one provider's of a kind the latest, and the user's own."""
    latest: dict[tuple[str, str], str] = {}
    for price in device.prices:
        if price.as_of:
            place = price.provider, price.kind
            latest[place] = max(price.as_of, latest.get(place, ""))
    return tuple(
        price
        for price in device.prices
        if not price.source or (price.as_of and price.as_of == latest[price.provider, price.kind])
    )


def cheapest_price(device: Device, catalog: Catalog, provider: str | None = None, count: int = 1) -> Price | None:
    """Rent of one device of `count`: the cheapest on demand, else the cheapest; of `provider` where one is named.

    Where the device has no price of its own, that of the cheapest machine which clouds lend it in. None: not known.
    """
    own = [price for price in current(device) if provider in (None, price.provider)]
    on_demand = [price for price in own if price.kind == "on-demand" and price.as_of]
    dated = [price for price in own if price.as_of]
    prices = on_demand or dated or own or _of_machines(device, catalog, provider, count)
    return min(prices, key=lambda price: price.usd_per_hour, default=None)


def _of_machines(device: Device, catalog: Catalog, provider: str | None, count: int) -> list[Price]:
    """The prices of machines that hold the device: of those that `count` fills, where there are such."""
    if device.kind not in IN_CLOUDS:
        return []
    offers = [
        offer
        for offer in lenders(device, catalog)
        if offer.usd_per_hour and offer.as_of and provider in (None, offer.provider)
    ]
    filled = [offer for offer in offers if count % offer.count == 0]
    return [_by_device(offer) for offer in filled or offers]


@functools.lru_cache(maxsize=8)
def let(catalog: Catalog) -> frozenset[str]:
    """The ids of devices that somebody lets: by themselves, or in machines that are not free."""
    offers, devices = catalog.offers, catalog.devices
    has_prices, tier, device_of = devices.reader("prices?"), offers.reader("tier"), offers.reader("device")
    paid = (str(device_of(key)) for key in offers if tier(key) in (None, "paid"))
    return frozenset((*filter(has_prices, devices.first()), *paid))


def lenders(device: Device, catalog: Catalog) -> Iterator[Offer]:
    """Yield the offers of a device."""
    offers = catalog.offers
    return (offers[key] for key in _lent(catalog).get(device.id, ()))


@functools.lru_cache(maxsize=8)
def _lent(catalog: Catalog) -> dict[str, list[str]]:
    """The ids of offers by the id of their device: a comparison asks for every device."""
    found: dict[str, list[str]] = {}
    device_of = catalog.offers.reader("device")
    for key in catalog.offers:
        found.setdefault(str(device_of(key)), []).append(key)
    return found


def _by_device(offer: Offer) -> Price:
    """The share of one whole device in the price of a machine."""
    share = (offer.usd_per_hour or 0.0) / (offer.count * offer.share)
    source = offer.sources[0] if offer.sources else ""
    return Price(provider=offer.provider, usd_per_hour=share, as_of=offer.as_of, source=source, note=offer.name)


def every_price(device: Device, catalog: Catalog) -> list[Price]:
    """All prices of a device, undated ones too: its own, and its share in those of the machines that hold it."""
    return [*device.prices, *(_by_device(offer) for offer in lenders(device, catalog) if offer.usd_per_hour)]


def rent(offer: Offer, device: Device) -> Price | None:
    """The rent of one device of an offer: its share of the offer's price, else what its provider asks for one."""
    if offer.usd_per_hour is not None:
        each = offer.usd_per_hour / offer.count
        return Price(provider=offer.provider, usd_per_hour=each, as_of=offer.as_of)
    return next((price for price in current(device) if price.provider == offer.provider), None)


def usual_usd_per_hour(device: Device, catalog: Catalog) -> float | None:
    """What devices of its kind and of its speed rent for, in the middle; None where nobody knows.

    Speed is the geometric mean of memory bandwidth and 16-bit rate; data/hardware.yaml (`rents`).
    """
    rents = catalog.raw("hardware").get("rents") or {}
    rent = rents.get(device.backend) or rents.get(device.kind)
    return None if rent is None else float(rent) * _speed(device)


def _speed(device: Device) -> float:
    """The geometric mean of TB/s of memory bandwidth and PFLOP/s in 16 bits."""
    return math.sqrt(device.bandwidth_gb_per_s * device.peak16_flop_per_s / TERA) / 1000


def doubt(device: Device, usd_per_hour: float, catalog: Catalog) -> str | None:
    """Say why a price is to be doubted; None where it is not."""
    usual = usual_usd_per_hour(device, catalog)
    if not usual or not usd_per_hour or usual / CHEAP < usd_per_hour < usual * DEAR:
        return None
    how = f"{usd_per_hour / usual:.2g} times" if usd_per_hour > usual else f"1/{usual / usd_per_hour:.2g} of"
    return (
        f"{usd_per_hour:.3g} USD an hour for a {device.name} is {how} what comparable devices rent for "
        f"({usual:.2g}): check it, or say your own with --price"
    )

"""What there is to rent: devices with prices of their own, and machines that are lent as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...catalog.device import Device, Offer, Price
from ...catalog.store import Catalog

SHOWN = 8
"""How many are named."""


def priced(catalog: Catalog) -> Iterator[Device]:
    """Yield the devices that have prices of their own."""
    return (catalog.devices[key] for key, entry in catalog.devices.names() if entry.get("prices"))


def cheapest_offers(catalog: Catalog, device: str | None) -> Iterable[Offer]:
    """The offers whose price is known today: of one provider's machines with the same devices the cheapest.

    Free ones differ by their hours.
    """
    best: dict[object, Offer] = {}
    for offer in catalog.offers.values():
        priced = offer.usd_per_hour is not None and (offer.as_of or not offer.usd_per_hour or not offer.sources)
        if device not in (None, offer.device) or offer.tier == "retired" or not priced:
            continue
        same = (offer.provider, offer.device, offer.count, offer.share) if offer.usd_per_hour else offer.id
        kept = best.setdefault(same, offer)
        if (offer.usd_per_hour or 0) < (kept.usd_per_hour or 0):
            best[same] = offer
    return best.values()


def lent_whole(offer: Offer, catalog: Catalog) -> bool:
    """Whether an offer is of whole machines of a data centre, which work together: those of one device are virtual
    machines without such a network.
    """
    device = catalog.devices[offer.device]
    whole = offer.count > 1 and offer.count >= device.devices_per_node
    return offer.tier == "paid" and device.kind == "datacenter" and whole


def in_one_network(device: Device, price: Price) -> bool:
    """Whether machines with a device come together at a price: not cards of desks, nor what strangers let by the card
    in a marketplace.
    """
    return device.kind == "datacenter" and price.kind != "marketplace"

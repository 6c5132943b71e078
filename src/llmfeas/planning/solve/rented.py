"""What to rent for a server that keeps up with its requests and targets, at the least cost an hour."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ...catalog.device import Offer
from ...catalog.hardware import Hardware
from ...catalog.prices import current
from ...catalog.store import Catalog
from ...record import dataclass
from ...settle import hardware_named
from ...units import HOUR
from .answer import Answer, Request, outcome, without
from .fleet import layout_of, served
from .lots import MOST, Fleet, Fleets, Lot
from .market import SHOWN, cheapest_offers, in_one_network, lent_whole, priced

LOOKED_AT = (
    "looked at: every dated price and paid machine of the catalog, tensor-parallel sizes of powers of two within a "
    "machine, the fewest stages that fit, copies of the model, and {formats}; free machines end too soon for a server"
)
FORMATS = "the usual formats of 4 bits and more"


MILLION = 1e6


@dataclass(frozen=True, slots=True)
class RentalTerms:
    """Who lets devices, how, and since when at that price."""

    provider: str
    kind: str
    as_of: str | None


def cheapest_server(request: Request, catalog: Catalog) -> Answer:
    """Device, count, layout, format and provider of the least rent that keep up with a load and its targets.

    Raises:
        UsageError: for a training.
    """
    request = served(request)
    hardware = hardware_named(str(request["device"]), catalog) if request.get("device") else None
    said = request.get("num_devices") or (hardware.count if hardware and not hardware.offer else None)
    lots = dict(_lots(hardware, None if said is None else int(str(said)), catalog))
    search = Fleets(without(request, "device", "num_devices"), catalog)
    found = list(islice(search.found(lots), SHOWN))
    formats = FORMATS if request.get("quant") is None else "the format that was asked for"
    notes = (LOOKED_AT.format(formats=formats),)
    if not found:
        beyond = {} if search.last is None else {name: search.last[name] for name in ("device", "num_devices")}
        because = {**beyond, **outcome(search.last, catalog)} if search.last else None
        return Answer("cheapest", {"device": None}, None, because, ("no priced device does it", *notes))
    rows = [_row(fleet, lots[fleet.lot]) for fleet in found]
    best = found[0]
    told = (f"{best.estimate.scenario.quant}: {best.gives_up}",) if best.gives_up else ()
    return Answer("cheapest", {**rows[0], "ranked": rows, "of": len(lots)}, best.estimate, notes=(*told, *notes))


def _row(fleet: Fleet, terms: RentalTerms) -> dict[str, object]:
    scenario, lot, load = fleet.estimate.scenario, fleet.lot, fleet.estimate.under_load
    assert load is not None
    written = load().output_tokens_per_second.expected
    return {
        "device": scenario.offer or scenario.device.id,
        "num_devices": fleet.count,
        "copies": fleet.count // lot.together,
        "layout": layout_of(fleet),
        "quant": scenario.quant,
        "engine": scenario.engine,
        "provider": terms.provider,
        "kind": terms.kind,
        "as_of": terms.as_of,
        "usd_per_device_hour": lot.usd_per_device_hour,
        "usd": fleet.usd_per_hour,
        "paid_hours": None,
        "usd_per": "hour",
        "usd_per_million_tokens": fleet.usd_per_hour / HOUR / written * MILLION,
        "seconds": None,
        "status": fleet.estimate.verdict.status,
    }


def _lots(hardware: Hardware | None, count: int | None, catalog: Catalog) -> Iterator[tuple[Lot, RentalTerms]]:
    """Yield all that is let of a device, or of all."""
    for device in [hardware.device] if hardware else priced(catalog):
        for price in current(device) if not (hardware and hardware.offer) else ():
            if price.usd_per_hour:
                lot = Lot(
                    device=device.id,
                    settings={"device": device.id, "price": price.usd_per_hour},
                    usd_per_device_hour=price.usd_per_hour,
                    within=MOST if in_one_network(device, price) else device.devices_per_node,
                    count=count,
                )
                yield lot, RentalTerms(price.provider, price.kind, price.as_of)
    for offer in cheapest_offers(catalog, hardware.device.id if hardware else None):
        asked = not (hardware and hardware.offer) or hardware.offer.id == offer.id
        paid = offer.tier == "paid" and offer.usd_per_hour
        if asked and paid and (count is None or count % offer.count == 0):
            yield _lent(offer, count, catalog), RentalTerms(offer.provider, offer.tier, offer.as_of)


def _lent(offer: Offer, count: int | None, catalog: Catalog) -> Lot:
    part = offer.share < 1.0 or offer.memory_gib is not None
    return Lot(
        device=offer.id if part and offer.count == 1 else offer.device,
        settings={"device": offer.id},
        usd_per_device_hour=(offer.usd_per_hour or 0.0) / offer.count,
        together=offer.count,
        within=MOST if lent_whole(offer, catalog) else offer.count,
        count=count,
    )

"""Which device, count and provider cost least."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...catalog.device import Device, Offer, Price
from ...catalog.prices import current
from ...catalog.store import Catalog
from ...errors import UsageError
from ...feasibility.cost import LEAST_HOURS
from ...feasibility.result import Estimate
from ...feasibility.verdict import why
from ...options import flag_of
from ...record import dataclass
from ...settle import hardware_named, resolution
from .answer import Answer, Request, estimated, never_in_time, without
from .fleet import asks_for_load
from .market import SHOWN, cheapest_offers, in_one_network, lent_whole, priced
from .rented import cheapest_server

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
FREE_SHOWN = 3
"""How many of those that cost nothing are named."""
HARDLY_MORE = 1.02
"""Cost over the least up to which fewer devices are taken: no estimate tells them apart, and few are had sooner."""
HOUR, WEEK = 3600.0, 7 * 86400.0
PATIENCE_SECONDS = 30 * 86400.0
"""How long a training may take where nobody says it."""
UNSAID = "--deadline 30d was taken, since none was said"
HOURS_NOTE = "at least one hour of each device is counted as paid"


@dataclass(frozen=True, slots=True)
class Bid:
    """One device at one price, with the estimate of the job there."""

    estimate: Estimate
    provider: str
    as_of: str | None
    kind: str
    """How it is rented: on-demand, spot, marketplace, reserved, free, paid (an offer)."""
    lent: int = 1
    """How many devices are in the offer; 1 where a device is rented by itself."""

    @property
    def usd(self) -> float:
        """Cost of the job, an hour of each device at least; in inference of a million tokens; infinite: unknown."""
        return paid_usd(self.estimate)

    @property
    def paid_hours(self) -> float | None:
        """Hours that are paid of each device; None in inference."""
        working = _working_hours(self.estimate)
        return None if working is None else max(LEAST_HOURS, working)

    @property
    def within_budget(self) -> bool:
        """Whether what is paid is within the budget, if there is one."""
        budget = self.estimate.scenario.budget_usd
        return budget is None or self.usd <= budget

    @property
    def seconds(self) -> float | None:
        """Calendar time of the job: hours a week that are free end each week's work; None in inference."""
        total, weekly = self.estimate.total_seconds, self.estimate.scenario.weekly_hours
        if total is None:
            return None
        seconds = total.expected
        if weekly is None:
            return seconds
        weeks, rest = divmod(seconds, weekly * HOUR)
        return weeks * WEEK + rest

    @property
    def row(self) -> dict[str, object]:
        """The bid as the answer lists it."""
        scenario, price = self.estimate.scenario, self.estimate.cost.price
        return {
            "device": scenario.offer or scenario.device.id,
            "num_devices": scenario.num_devices,
            "copies": scenario.num_devices // self.lent,
            "provider": self.provider,
            "kind": self.kind,
            "as_of": self.as_of,
            "usd_per_device_hour": price.usd_per_device_hour if price else None,
            "usd": self.usd,
            "paid_hours": self.paid_hours,
            "usd_per": "million tokens" if self.seconds is None else "job",
            "seconds": self.seconds,
            "status": self.estimate.verdict.status,
        }


def _working_hours(estimated: Estimate) -> float | None:
    return estimated.total_seconds.expected / HOUR if estimated.total_seconds is not None else None


def paid_usd(estimated: Estimate) -> float:
    """The cost of a job with the rent of an hour that is not filled; in inference of a million tokens."""
    cost, hours = estimated.cost, _working_hours(estimated)
    money = cost.usd.expected if cost.usd else cost.usd_per_million_tokens
    if money is None:
        return float("inf")
    idle = 0.0 if hours is None else max(0.0, LEAST_HOURS - hours)
    return money + idle * estimated.scenario.num_devices * (cost.price.usd_per_device_hour if cost.price else 0.0)


def cheapest(request: Request, catalog: Catalog) -> Answer:
    """Device, count and provider that cost least within the deadline, over all prices that the catalog knows.

    An hour of each device is paid at least. A device or a count that is given is kept. Cards of desktops and
    workstations, and those of marketplaces, come by the machine, unless a count is said.

    Raises:
        UsageError: with a price.
    """
    if asks_for_load(request):
        return cheapest_server(request, catalog)
    inference = request.get("task") == "inference"
    unsaid = not inference and request.get("deadline") is None
    if unsaid:
        request = {**request, "deadline": {"value": PATIENCE_SECONDS, "origin": "default"}}
    for name in ("price", "purchase_price"):
        if request.get(name) is not None:
            hint = f"Leave {flag_of(name)} out."
            raise UsageError("contradiction", "solve cheapest compares the catalog's prices", hint)
    bids = sorted(_bids(request, catalog), key=lambda bid: (bid.usd, bid.seconds or 0.0))
    notes = () if inference else (UNSAID, HOURS_NOTE) if unsaid else (HOURS_NOTE,)
    if not bids:
        late: list[Estimate] = []
        for _ in _bids(request, catalog, late):
            pass
        return Answer("cheapest", {"device": None}, None, _fastest(late), (_nothing(request), *notes))
    free = [bid for bid in bids if not bid.usd]
    rows = [bid.row for bid in bids if bid not in free[FREE_SHOWN:]][:SHOWN]
    return Answer("cheapest", {**rows[0], "ranked": rows, "of": len(bids)}, bids[0].estimate, notes=notes)


def _nothing(request: Request) -> str:
    where = "this device has no known price or does not do it" if request.get("device") else "no priced device does it"
    return f"{where} within the limits"


def _fastest(late: list[Estimate]) -> Mapping[str, object] | None:
    """Name the fastest of those that miss the limits."""

    def seconds(estimated: Estimate) -> float:
        return estimated.total_seconds.expected if estimated.total_seconds is not None else 0.0

    late = [estimated for estimated in late if estimated.memory.verdict != "exceeds"]
    if not late:
        return None
    best = min(late, key=seconds)
    because = why(best.verdict)
    scenario = best.scenario
    named = {"device": scenario.device.id, "num_devices": scenario.num_devices}
    return {**named, "status": best.verdict.status, "because": because}


def _bids(request: Request, catalog: Catalog, late: list[Estimate] | None = None) -> Iterator[Bid]:
    """Yield the bids that work: the best count of each device at each price, and each offer.

    Those too slow go to `late`; without it counts that cannot cost less than others are not tried.
    """
    base = without(request, "device", "num_devices")
    hardware = hardware_named(str(request["device"]), catalog) if request.get("device") else None
    count = request.get("num_devices") or (hardware.count if hardware else None)
    counts = COUNTS if count is None else (int(str(count)),)
    for device in [hardware.device] if hardware else priced(catalog):
        if hardware and hardware.offer:
            continue
        for prices, together in _by_network(device):
            rented = counts if together or count else _in_one_machine(device)
            yield from _rented({**base, "device": device.id}, prices, rented, catalog, late)
    for offer in cheapest_offers(catalog, hardware.device.id if hardware else None):
        lent = [number for number in _lent_together(offer, catalog) if counts is COUNTS or number in counts]
        yield from _offered({**base, "device": offer.id}, offer, lent, catalog)


def _lent_together(offer: Offer, catalog: Catalog) -> tuple[int, ...]:
    """The counts of devices that an offer comes in: paid whole machines by the machine, others alone."""
    whole = lent_whole(offer, catalog)
    return tuple(count for count in COUNTS if count % offer.count == 0) if whole else (offer.count,)


def _by_network(device: Device) -> Iterator[tuple[tuple[Price, ...], bool]]:
    """Yield the prices of a device at which its machines come in one network, and those at which they do not."""
    prices = current(device)
    for together in (True, False):
        some = tuple(price for price in prices if in_one_network(device, price) is together)
        if some:
            yield some, together


def _in_one_machine(device: Device) -> tuple[int, ...]:
    """The counts of cards that are rented by the machine: they have no network of their own."""
    return tuple(count for count in COUNTS if count <= device.devices_per_node) or (1,)


def _rented(
    base: Request, prices: tuple[Price, ...], counts: tuple[int, ...], catalog: Catalog, late: list[Estimate] | None
) -> Iterator[Bid]:
    """Yield a bid for each price, at the count that costs least; any price tells which count that is."""
    hourly = prices[0].usd_per_hour
    best = _best_count({**base, **_price(hourly)}, counts, hourly, catalog, late)
    for price in prices if best else ():
        result = estimated({**base, "num_devices": best, **_price(price.usd_per_hour)}, catalog)
        if result is not None and result.verdict.works():
            bid = Bid(result, price.provider, price.as_of, price.kind)
            if bid.within_budget:
                yield bid


def _best_count(
    base: Request, counts: Sequence[int], usd_per_hour: float, catalog: Catalog, late: list[Estimate] | None
) -> int | None:
    """The count that costs least of those that work, the fewest of those that cost hardly more; None where none does.
    Those too slow go to `late`.

    Without that list what is surely too slow is not tried, and the search ends where the hour of each device that is
    paid in any case costs more than the best.
    """
    works: list[tuple[float, int]] = []
    least_usd = 0.0 if base.get("task") == "inference" else LEAST_HOURS * usd_per_hour
    for count in counts:
        if late is None and works and count * least_usd > min(works)[0]:
            break
        asked = {**base, "num_devices": count}
        result = None if late is None and never_in_time(asked, catalog) else estimated(asked, catalog)
        if result is None:
            continue
        if result.verdict.software == "unsupported":
            break
        if result.memory.verdict == "exceeds" or result.verdict.time == "over_deadline":
            if late is not None:
                late.append(result)
        else:
            works.append((paid_usd(result), count))
    return next((count for usd, count in works if usd <= HARDLY_MORE * min(works)[0]), None)


def _price(usd_per_hour: float) -> dict[str, object]:
    return {"price": usd_per_hour} if usd_per_hour else {}


def _offered(base: Request, offer: Offer, counts: Sequence[int], catalog: Catalog) -> Iterator[Bid]:
    hourly = (offer.usd_per_hour or 0.0) / offer.count
    best = counts[0] if len(counts) == 1 else _best_count(base, counts, hourly, catalog, None)
    request = {**base, "num_devices": best}
    result = estimated(request, catalog) if best else None
    if result is None or not result.verdict.works():
        return
    bid = Bid(result, offer.provider, offer.as_of, offer.tier, offer.count)
    limit = resolution(request, catalog).scenario.deadline_seconds
    if (bid.seconds is None or limit is None or bid.seconds <= limit) and bid.within_budget:
        yield bid

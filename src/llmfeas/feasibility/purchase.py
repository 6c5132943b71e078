"""A device that is bought: what an hour of its life costs, and from how many hours of use on renting costs more."""

from __future__ import annotations

from ..contract import Published, published
from ..record import dataclass
from ..scenario import Scenario

SECONDS_PER_HOUR = 3600.0
WATT_PER_KW = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase(Published):
    """One bought device beside the same one rented; USD, seconds, hours of use."""

    usd_per_device: float
    lifetime_seconds: float
    electricity_usd_per_device_hour: float | None
    """While it works; None: electricity has no price, or its power is unknown. It then counts as free."""
    rent_usd_per_device_hour: float | None

    @published
    def usd_per_device_hour(self) -> float:
        """Wear: the price spread over all hours of its lifetime."""
        return self.usd_per_device / (self.lifetime_seconds / SECONDS_PER_HOUR)

    @published
    def break_even_hours(self) -> float | None:
        """Hours of use from which on buying, with electricity, is cheaper: `price / (rent - electricity)`.

        None: no rent is known, or electricity alone costs as much.
        """
        rent, power = self.rent_usd_per_device_hour, self.electricity_usd_per_device_hour or 0.0
        return self.usd_per_device / (rent - power) if rent is not None and rent > power else None

    @published
    def break_even_share(self) -> float | None:
        """The same as a share of its lifetime; above 1 buying never pays."""
        hours = self.break_even_hours
        return None if hours is None else hours * SECONDS_PER_HOUR / self.lifetime_seconds


def hourly_usd(scenario: Scenario) -> float | None:
    """What an hour of one device costs: its rent, or its wear where it is bought; None where no price is known."""
    bought = purchase(scenario, 1.0)
    return bought.usd_per_device_hour if bought else scenario.price_usd_per_hour


def purchase(scenario: Scenario, power_share: float) -> Purchase | None:
    """What buying costs, at the share of its power that a device draws; None where nothing is bought."""
    usd, lifetime = scenario.purchase_usd, scenario.lifetime_seconds
    if usd is None or lifetime is None:
        return None
    power_w, rate = scenario.device.power_w, scenario.electricity_usd_per_kwh
    electricity = None if power_w is None or rate is None else power_w * power_share * scenario.pue / WATT_PER_KW * rate
    return Purchase(
        usd_per_device=usd,
        lifetime_seconds=lifetime,
        electricity_usd_per_device_hour=electricity,
        rent_usd_per_device_hour=scenario.price_usd_per_hour,
    )

"""Rent and electricity, from times, counts, a price and the power that devices draw."""

from __future__ import annotations

from ..catalog.limited import drawn_share
from ..ranges import Range
from ..scenario import Scenario
from .purchase import SECONDS_PER_HOUR, Purchase, hourly_usd, purchase
from .result import Cost, Emission, Rent

JOULE_PER_KWH = 3.6e6
MILLION = 1e6
LEAST_HOURS = 1.0
"""Hours of each device that are paid at least: prices are by the hour, and setting up a machine takes its time too."""


def energy_kwh(scenario: Scenario, seconds: Range, power_share: Range) -> Range | None:
    """The energy of all devices, kWh: seconds x board power x the share of it that is drawn x PUE.

    The ends multiply: a job at the long end that draws the high share. Host, disks and network are in the PUE only.
    None where the catalog knows no board power.
    """
    power_w = scenario.device.power_w
    if power_w is None:
        return None
    per_second = power_w * scenario.paid_devices * scenario.pue / JOULE_PER_KWH
    # the slowest run rarely draws the most: half of the spread of power is added to that of time
    low = seconds.low * (power_share.low + power_share.expected) / 2
    high = seconds.high * (power_share.high + power_share.expected) / 2
    return Range(low * per_second, seconds.expected * power_share.expected * per_second, high * per_second)


def least_rent_usd(scenario: Scenario) -> float:
    """What devices that are rented for a job cost at least, USD; 0 where no price is known."""
    return (hourly_usd(scenario) or 0.0) * scenario.paid_devices * LEAST_HOURS


def usd(scenario: Scenario, seconds: Range, energy: Range | None) -> Range | None:
    """The cost in USD: rent or wear of all devices, plus electricity where priced; None if nothing is known."""
    rent = hourly_usd(scenario)
    electricity = scenario.electricity_usd_per_kwh
    total: Range | None = None
    if rent is not None:
        total = seconds.scaled(rent * scenario.paid_devices / SECONDS_PER_HOUR)
    if electricity is not None and energy is not None:
        power = energy.scaled(electricity)
        total = power if total is None else _sum(total, power)
    return total


def _sum(a: Range, b: Range) -> Range:
    return Range(a.low + b.low, a.expected + b.expected, a.high + b.high)


def job_cost(scenario: Scenario, total_seconds: Range, bound_by: str) -> Cost:
    """The cost of a job that ends: a training, texts that are read; what a device draws depends on what binds it."""
    power_share = drawn_share(scenario.device, scenario.tables.power_shares[bound_by])
    energy = energy_kwh(scenario, total_seconds, power_share)
    money = usd(scenario, total_seconds, energy)
    millions = (scenario.tokens or 0.0) / MILLION
    return _cost(scenario, money, energy, millions, purchase(scenario, power_share.expected), whole_job=True)


def serving_cost(scenario: Scenario, tokens_per_second: Range, bound_by: str) -> Cost:
    """The cost of a million generated tokens at full load; what a device draws depends on what binds it."""
    seconds = tokens_per_second.inverted(MILLION)
    power_share = drawn_share(scenario.device, scenario.tables.power_shares[bound_by])
    energy = energy_kwh(scenario, seconds, power_share)
    money = usd(scenario, seconds, energy)
    return _cost(scenario, money, energy, 1.0, purchase(scenario, power_share.expected), whole_job=False)


def _cost(
    scenario: Scenario,
    money: Range | None,
    energy: Range | None,
    millions: float,
    bought: Purchase | None,
    *,
    whole_job: bool,
) -> Cost:
    hourly = scenario.price_usd_per_hour
    each = energy.expected / millions if energy and millions else None
    return Cost(
        usd=money if whole_job else None,
        energy_kwh=energy if whole_job else None,
        usd_per_million_tokens=money.expected / millions if money and millions else None,
        energy_kwh_per_million_tokens=each,
        price=None if hourly is None else Rent(hourly, scenario.price_provider, scenario.price_as_of),
        purchase=bought,
        co2=_emission(scenario, energy if whole_job else None, each),
    )


def _emission(scenario: Scenario, energy: Range | None, kwh_per_million: float | None) -> Emission | None:
    """The CO2 equivalents of an energy, kg: kWh x g/kWh / 1000; None where no region is named or no energy known."""
    if scenario.region is None or (energy is None and kwh_per_million is None):
        return None
    tables = scenario.tables
    kg_per_kwh = tables.grids[scenario.region] / 1000
    return Emission(
        region=scenario.region,
        as_of=tables.grids_as_of,
        g_per_kwh=tables.grids[scenario.region],
        kg=None if energy is None else energy.scaled(kg_per_kwh),
        kg_per_million_tokens=None if kwh_per_million is None else kwh_per_million * kg_per_kwh,
    )

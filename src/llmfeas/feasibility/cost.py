"""Rent and electricity, from times, counts, a price and the power that devices draw."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalog.limited import drawn_share
from ..derivation import DEVICE, SETTING, Say, plain
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
    if scenario.device.power_w is None:
        return None
    # the slowest run rarely draws the most: half of the spread of power is added to that of time
    low = seconds.low * (power_share.low + power_share.expected) / 2
    high = seconds.high * (power_share.high + power_share.expected) / 2
    expected = seconds.expected * power_share.expected
    return Range(*(full_seconds * kwh_a_second(scenario) for full_seconds in (low, expected, high)))


def kwh_a_second(scenario: Scenario, say: Say = plain) -> float:
    """What all devices draw in a second of full power, kWh; 0 where the catalog knows no board power."""
    power = say("power", scenario.device.power_w or 0.0, "W", DEVICE)
    return power * paid_devices(scenario, say) * say("pue", scenario.pue, "", SETTING) / JOULE_PER_KWH


def paid_devices(scenario: Scenario, say: Say) -> float:
    """The devices of a job, those besides that write answers among them."""
    count = scenario.paid_devices
    if count == scenario.num_devices:
        return say("num_devices", count, "devices", SETTING)
    return say("paid_devices", count, "devices")


def least_rent_usd(scenario: Scenario) -> float:
    """What devices that are rented for a job cost at least, USD; 0 where no price is known."""
    return (hourly_usd(scenario) or 0.0) * scenario.paid_devices * LEAST_HOURS


def usd(scenario: Scenario, seconds: Range, energy: Range | None) -> Range | None:
    """The cost in USD: rent or wear of all devices, plus electricity where priced; None if nothing is known."""
    ends = ("low", "expected", "high")
    money = [usd_of(scenario, getattr(seconds, end), getattr(energy, end, None)) for end in ends]
    found = [each for each in money if each is not None]
    return Range(*found) if found else None


def usd_of(scenario: Scenario, seconds: float, energy_kwh: float | None, say: Say = plain) -> float | None:
    """The same for one time and its energy."""
    made = [*_rent(scenario, seconds, say), *_electricity(scenario, energy_kwh, say)]
    return sum(made[1:], made[0]) if made else None


def _rent(scenario: Scenario, seconds: float, say: Say) -> Iterator[float]:
    hourly = hourly_usd(scenario)
    if hourly is None:
        return
    name, source = "price", ", ".join(filter(None, (scenario.price_provider, scenario.price_as_of)))
    if scenario.purchase_usd is not None:
        name, source = "wear", "purchase price over lifetime"
    each = say(name, hourly, "USD/h", source or SETTING)
    yield say("seconds", seconds, "s") * (each * paid_devices(scenario, say) / SECONDS_PER_HOUR)


def _electricity(scenario: Scenario, energy_kwh: float | None, say: Say) -> Iterator[float]:
    if scenario.electricity_usd_per_kwh is not None and energy_kwh is not None:
        rate = say("electricity", scenario.electricity_usd_per_kwh, "USD/kWh", SETTING)
        yield say("energy", energy_kwh, "kWh") * rate


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

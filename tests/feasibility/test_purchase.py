"""Renting or buying: wear, break-even, and where they are said."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.result import Estimate
from llmfeas.feasibility.verdict import why
from llmfeas.settle import resolution

ASK = {"model": "gpt2", "device": "rtx-4090", "micro_batch": 4, "tokens": "1B"}
THREE_YEARS_HOURS = 3 * 365 * 24


def found(**request: object) -> Estimate:
    return estimate(resolution({**ASK, **request}, catalog()))


def hours(answer: Estimate) -> float:
    assert answer.total_seconds is not None
    return answer.total_seconds.expected / 3600


def test_a_bought_device_costs_its_wear_and_its_electricity() -> None:
    bare, powered = found(purchase_price=1752), found(purchase_price=1752, electricity=0.25)
    assert bare.cost.usd and powered.cost.usd and powered.cost.energy_kwh
    wear = hours(bare) * 1752 / THREE_YEARS_HOURS
    assert bare.cost.usd.expected == pytest.approx(wear)
    assert powered.cost.usd.expected == pytest.approx(wear + 0.25 * powered.cost.energy_kwh.expected)


def test_break_even_is_the_price_over_what_an_hour_saves() -> None:
    cost = found(purchase_price=2000, price=0.5, electricity=0.2, lifetime="4y").cost.to_dict()["purchase"]
    assert isinstance(cost, dict)
    saved = cost["rent_usd_per_device_hour"] - cost["electricity_usd_per_device_hour"]
    assert cost["rent_usd_per_device_hour"] == 0.5
    assert cost["break_even_hours"] == pytest.approx(2000 / saved)
    assert cost["break_even_share"] == pytest.approx(cost["break_even_hours"] / (4 * 365 * 24))
    assert cost["lifetime_seconds"] == 4 * 365 * 86400
    assert cost["usd_per_device_hour"] == pytest.approx(2000 / (4 * 365 * 24))


def test_at_break_even_both_cost_the_same() -> None:
    cost = found(purchase_price=2000, price=0.5, electricity=0.2).cost.to_dict()["purchase"]
    assert isinstance(cost, dict)
    use = cost["break_even_hours"]
    assert use * cost["rent_usd_per_device_hour"] == pytest.approx(2000 + use * cost["electricity_usd_per_device_hour"])


def test_where_electricity_alone_costs_as_much_buying_never_pays() -> None:
    cost = found(purchase_price=2000, price=0.01, electricity=5).cost.to_dict()["purchase"]
    assert isinstance(cost, dict) and cost["break_even_hours"] is None and cost["break_even_share"] is None


def test_nobody_rents_some_devices() -> None:
    cost = found(device="m2-ultra", purchase_price=4000, electricity=0.2).cost.to_dict()["purchase"]
    assert isinstance(cost, dict)
    assert cost["rent_usd_per_device_hour"] is None and cost["break_even_hours"] is None


def test_inference_counts_wear_by_the_million_tokens() -> None:
    answer = found(task="inference", micro_batch=None, tokens=None, purchase_price=876, lifetime="1y")
    speed = answer.time.to_dict()["decode_tokens_per_second"]["expected"]
    assert answer.cost.usd_per_million_tokens == pytest.approx(876 / 8760 * 1e6 / speed / 3600)


def test_a_budget_is_held_against_what_buying_costs() -> None:
    assert found(purchase_price=500_000, budget=1).verdict.status == "infeasible"
    assert "budget" in why(found(purchase_price=500_000, budget=1).verdict)


def test_without_a_purchase_nothing_is_bought() -> None:
    assert found().cost.to_dict()["purchase"] is None
    ignored = resolution({**ASK, "lifetime": "2y"}, catalog()).warnings
    assert "option-unused" in {warning.code for warning in ignored}


@pytest.mark.parametrize(
    "bad", [{"purchase_price": -1}, {"purchase_price": 0}, {"lifetime": "0h", "purchase_price": 9}]
)
def test_senseless_figures_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        found(**bad)

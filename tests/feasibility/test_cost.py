"""Money and energy follow time, counts, price and power."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.catalog.store import catalog
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.result import Estimate
from llmfeas.settle import resolution
from llmfeas.timing.inference import InferenceTime


def found(**request: object) -> Estimate:
    return estimate(resolution({"model": "gpt2", "device": "rtx-4090", "micro_batch": 4, **request}, catalog()))


def total_hours(answer: Estimate) -> float:
    assert answer.total_seconds is not None
    return answer.total_seconds.expected / 3600


def test_rent_is_hours_times_devices_times_price() -> None:
    answer = found(device="4xrtx-4090", price=0.5)
    assert answer.cost.usd is not None
    assert answer.cost.usd.expected == pytest.approx(total_hours(answer) * 4 * 0.5)


def test_electricity_is_energy_times_price_and_pue_scales_it() -> None:
    plain, cooled = found(electricity=0.25), found(electricity=0.25, pue=1.5)
    assert plain.cost.usd is not None and cooled.cost.usd is not None and plain.cost.energy_kwh is not None
    assert plain.cost.usd.expected == pytest.approx(0.25 * plain.cost.energy_kwh.expected)
    assert cooled.cost.usd.expected == pytest.approx(1.5 * plain.cost.usd.expected)


def test_rent_and_electricity_add_up_when_both_are_given() -> None:
    rent, power, both = found(price=1), found(electricity=0.2), found(price=1, electricity=0.2)
    assert rent.cost.usd and power.cost.usd and both.cost.usd
    assert both.cost.usd.expected == pytest.approx(rent.cost.usd.expected + power.cost.usd.expected)


def test_a_device_without_price_or_power_costs_an_unknown_amount() -> None:
    answer = found(device="m2-ultra")
    assert answer.cost.usd is None
    assert answer.cost.price is None


def test_inference_is_priced_by_the_million_tokens() -> None:
    answer = found(task="inference", micro_batch=None, price=1.0)
    assert isinstance(answer.time, InferenceTime) and answer.total_seconds is None
    speed = answer.time.decode_tokens_per_second.expected
    assert answer.cost.usd is None
    assert answer.cost.usd_per_million_tokens == pytest.approx(1e6 / speed / 3600)


@given(st.floats(1e6, 1e13), st.floats(1.0, 100.0))
def test_more_tokens_never_take_less_time_or_money(tokens: float, factor: float) -> None:
    few, many = found(tokens=tokens), found(tokens=tokens * factor)
    assert total_hours(many) >= total_hours(few) * (1 - 1e-12)
    assert few.cost.usd and many.cost.usd
    assert many.cost.usd.expected >= few.cost.usd.expected * (1 - 1e-12)


def test_a_price_of_nothing_is_that_of_what_one_has() -> None:
    for answer in (found(price=0), found(task="inference", micro_batch=None, price=0)):
        assert answer.cost.price is not None
        assert answer.cost.price.usd_per_device_hour == 0
    power = found(electricity=0.2)
    both = found(price=0, electricity=0.2)
    assert power.cost.usd is not None
    assert both.cost.usd == power.cost.usd
    bought = found(price=0, purchase_price=1000).cost.purchase
    assert bought is not None
    assert bought.break_even_hours is None

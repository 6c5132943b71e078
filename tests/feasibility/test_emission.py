"""CO2 of the energy of a job, by place."""

from __future__ import annotations

from typing import Any

import pytest

import llmfeas
from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError

JOB: dict[str, Any] = {"model": "llama-3-8b", "device": "8xh100-sxm", "task": "lora", "examples": 10000}


def test_it_is_the_energy_times_the_grams_of_the_region() -> None:
    found = llmfeas.estimate(**JOB, region="DE").cost
    assert found.co2 is not None and found.co2.kg is not None and found.energy_kwh is not None
    grams = catalog().tables.grids["DE"]
    assert found.co2.kg.expected == pytest.approx(found.energy_kwh.expected * grams / 1000)
    assert found.co2.kg.low < found.co2.kg.expected < found.co2.kg.high
    assert found.co2.g_per_kwh == grams


def test_serving_counts_a_million_tokens() -> None:
    found = llmfeas.estimate(model="llama-3-8b", device="h100-sxm", region="world", task="inference").cost
    assert found.co2 is not None and found.energy_kwh_per_million_tokens is not None
    assert found.co2.kg is None
    assert found.co2.kg_per_million_tokens == pytest.approx(found.energy_kwh_per_million_tokens * 0.4583)


def test_a_region_is_found_whatever_its_case_and_an_unknown_one_is_refused_with_those_there_are() -> None:
    found = llmfeas.estimate(**JOB, region=" fr ").cost.co2
    assert found is not None and found.region == "FR"
    with pytest.raises(UsageError, match="no carbon intensity of 'XX'") as error:
        llmfeas.estimate(**JOB, region="XX")
    assert "FR" in error.value.candidates


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("sweden", "SE"),
        ("New-Zealand", "NZ"),
        ("the netherlands", "NL"),
        ("UK", "GB"),
        ("usa", "US"),
        ("World", "world"),
    ],
)
def test_a_region_may_be_called_by_its_name(typed: str, code: str) -> None:
    found = llmfeas.estimate(**JOB, region=typed).cost.co2
    assert found is not None and found.region == code


def test_a_misspelt_region_is_told_the_nearest() -> None:
    with pytest.raises(UsageError, match="swedn") as error:
        llmfeas.estimate(**JOB, region="swedn")
    assert error.value.candidates == ("SE",)
    with pytest.raises(UsageError, match="austria") as error:
        llmfeas.estimate(**JOB, region="austria")
    assert "AU" in error.value.candidates


def test_each_region_has_a_name_that_is_no_others() -> None:
    tables = catalog().tables
    names = [name.casefold() for each in tables.grid_names.values() for name in each]
    assert set(tables.grid_names) == set(tables.grids)
    assert len(names) == len(set(names))


def test_nothing_is_said_where_nobody_asks() -> None:
    assert llmfeas.estimate(**JOB).cost.co2 is None

"""Requirements in plain words: bounds, tolerances, units, margins."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.check.figures import FIGURES, WORDS
from llmfeas.check.requirement import Requirement, WrittenRequirement, figure_requirement, word_requirement
from llmfeas.errors import UsageError


@pytest.mark.parametrize(
    ("name", "value", "low", "high"),
    [
        ("parameters", "560.66e9 +- 0.1 %", 560.66e9 * 0.999, 560.66e9 * 1.001),
        ("parameters", "560.66B ± 1B", 559.66e9, 561.66e9),
        ("parameters", 124439808, 124439808, 124439808),
        ("peak_gib", "22 +- 2", 20, 24),
        ("peak_gib", "22GiB +/- 1024MiB", 21, 23),
        ("peak_gb", "14 GB +- 5%", 13.3, 14.7),
        ("total", "3d +- 12h", 2.5 * 86400, 3.5 * 86400),
        ("usd", "$500 +- 10%", 450, 550),
        ("mfu", "40 % +- 5 %", 0.38, 0.42),
        ("total", "<= 4h", -math.inf, 4 * 3600),
        ("peak_gib", "≥20", 20, math.inf),
    ],
)
def test_a_value_has_a_tolerance(name: str, value: str | int, low: float, high: float) -> None:
    found = figure_requirement(FIGURES[name], WrittenRequirement(value=value), "expected")
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize(
    ("name", "bound", "read"),
    [
        ("peak_gib", 22, 22),
        ("peak_gib", "22", 22),
        ("peak_gib", "22GiB", 22),
        ("peak_gib", "22GB", 22e9 / 2**30),
        ("peak_gb", "22 GiB", 22 * 2**30 / 1e9),
        ("total", "3d", 3 * 86400),
        ("total", 60, 60),
        ("decode_tokens_per_second", "20 tokens/s", 20),
        ("decode_tokens_per_second", "1.5k", 1500),
        ("energy_kwh", "500 kWh", 500),
        ("mfu", "45%", 0.45),
        ("rule_of_thumb_flop", 9e19, 9e19),
    ],
)
def test_bounds_are_read_in_the_unit_of_the_figure(name: str, bound: str | float, read: float) -> None:
    assert figure_requirement(FIGURES[name], WrittenRequirement(max=bound), "expected").high == pytest.approx(read)
    assert figure_requirement(FIGURES[name], WrittenRequirement(min=bound), "expected").low == pytest.approx(read)


@pytest.mark.parametrize(
    "value", ["nan", "inf", "1e999", "-3", True, "", "<", "<= x", "=> 3", "3 +- x", "x +- 3 %", "3 +- -1 %"]
)
def test_what_is_no_figure_is_refused(value: str | bool) -> None:
    with pytest.raises(UsageError):
        figure_requirement(FIGURES["peak_gib"], WrittenRequirement(value=value), "expected")


@given(st.floats(0.1, 1e6), st.floats(0.1, 1e6))
def test_a_margin_is_the_distance_to_the_bound_as_a_share_of_it(bound: float, found: float) -> None:
    most = figure_requirement(FIGURES["peak_gib"], WrittenRequirement(max=bound), "expected")
    least = figure_requirement(FIGURES["peak_gib"], WrittenRequirement(min=bound), "expected")
    for requirement, margin in ((most, (bound - found) / bound), (least, (found - bound) / bound)):
        assert requirement.margin(found) == pytest.approx(margin)
        assert requirement.holds(found) == (margin >= 0)


def test_what_is_unknown_holds_nowhere() -> None:
    requirement = figure_requirement(FIGURES["usd"], WrittenRequirement(max=1e15), "expected")
    assert not requirement.holds(None)
    assert requirement.margin(None) is None


def test_words() -> None:
    one = word_requirement(WORDS["fits"], WrittenRequirement(value=True), "worst")
    assert (one.words, one.at) == (("true",), "worst")
    several = word_requirement(WORDS["status"], WrittenRequirement(value=["tight", "feasible"]), "worst")
    assert several.holds("tight") and not several.holds("infeasible")
    assert several.at == "expected" and several.margin("tight") is None


def test_every_figure_can_be_bounded() -> None:
    for figure in FIGURES.values():
        found = figure_requirement(figure, WrittenRequirement(max=1, min=0), "worst")
        assert (found.low, found.high) == (0, 1) and math.isfinite(found.high)
        assert figure.help.endswith(".") and figure.unit.name in ("", figure.unit.name)


def test_a_tolerance_stands_beside_the_value_as_it_was_typed() -> None:
    from llmfeas.check.figures import FIGURES
    from llmfeas.check.requirement import WrittenRequirement, figure_requirement

    found = figure_requirement(FIGURES["parameters"], WrittenRequirement(value="124.4M +- 0.1 %"), "expected")
    assert found.text == "124.4M ± 0.1 %"


def test_a_margin_beyond_what_json_can_say_is_the_largest_number() -> None:
    """A bound near zero is missed by more times than a float holds."""
    assert Requirement(high=1e-300, text="").margin(1e9) == -sys.float_info.max

"""Sizes that divide a number of devices, which messages list and layouts are searched over."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmfeas.settle.valid_layout import divisors


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_they_are_all_up_to_a_limit_the_least_first(number: int, limit: int) -> None:
    assert divisors(number, limit) == tuple(each for each in range(1, min(number, limit) + 1) if number % each == 0)


def test_those_of_a_very_large_number_are_not_tried_one_by_one() -> None:
    number = 2**40  # a trial of each would not end
    assert divisors(number, number) == tuple(2**each for each in range(41))

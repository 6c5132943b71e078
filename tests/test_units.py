from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas import units
from llmfeas.errors import UsageError
from llmfeas.ranges import Range

POSITIVE = st.floats(1e-3, 1e15, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[("10B", 10e9), ("3.3e9", 3.3e9), ("300k", 3e5), ("1.5 T", 1.5e12), ("7m", 7e6), ("1,000,000", 1e6), (12, 12)],
        *[("1_000", 1000), (".5k", 500), (3.5, 3.5), (" 20 ", 20)],
    ],
)
def test_counts_are_decimal(text: units.Number, expected: float) -> None:
    assert units.parse_count(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("16GiB", 16 * 2**30), ("16GB", 16e9), ("16 gib", 16 * 2**30), ("512MiB", 2**29), ("1.5TB", 1.5e12), (4096, 4096)],
)
def test_gigabytes_and_gibibytes_differ(text: units.Number, expected: float) -> None:
    assert units.parse_bytes(text) == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("5m", 300), ("3h", 10800), ("7d", 604800), ("2w", 1209600), ("1y", 31_536_000), ("250 ms", 0.25)],
)
def test_durations(text: str, seconds: float) -> None:
    assert units.parse_duration(text) == seconds


@pytest.mark.parametrize(("text", "usd"), [("500", 500), ("$500", 500), ("500 USD", 500), ("1.2k", 1200), (0, 0)])
def test_money(text: units.Number, usd: float) -> None:
    assert units.parse_money(text) == usd


def test_fractions_as_number_or_percentage() -> None:
    assert units.parse_fraction("45%") == units.parse_fraction("0.45") == 0.45


HOSTILE = [
    "",
    " ",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "1e999999999999",
    "1" * 5000,
    "10X",
    "ten",
    "\x1b[31m5",
    "1..2",
    "--3",
    "0x10",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(
    "parse",
    [
        units.parse_count,
        units.parse_integer,
        units.parse_bytes,
        units.parse_duration,
        units.parse_fraction,
        units.parse_money,
    ],
)
def test_nonsense_is_refused_with_what_and_an_example(parse, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError) as caught:
        parse(text, what="--thing")
    assert caught.value.exit_code == 2
    assert caught.value.code == "bad-quantity"
    assert caught.value.message.startswith("--thing: ")
    assert "for instance" in caught.value.hint
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 160


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True])
def test_numbers_that_are_none_are_refused(value: float) -> None:
    with pytest.raises(UsageError):
        units.parse_count(value)


def test_the_caller_sets_the_bounds() -> None:
    with pytest.raises(UsageError, match="largest that makes sense"):
        units.parse_integer("10^12".replace("^", "e"), what="--seq-len", maximum=10**8)
    with pytest.raises(UsageError, match="smallest that makes sense"):
        units.parse_integer("0", what="--micro-batch")
    with pytest.raises(UsageError, match="whole number"):
        units.parse_integer("1.5")


@pytest.mark.parametrize("parse", [units.parse_bytes, units.parse_duration])
def test_a_text_without_unit_is_ambiguous(parse) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match="has no unit"):
        parse("16")


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (units.format_bytes(29.1 * 2**30), "29.1 GiB"),
        (units.format_bytes(12 * 2**30), "12 GiB"),
        (units.format_bytes(999), "999 B"),
        (units.format_count(1_557_611_200), "1.56 B"),
        (units.format_count(999.9), "1 k"),
        (units.format_duration(112 * 86400), "112 days"),
        (units.format_duration(41 * 3600), "41 h"),
        (units.format_duration(3 * 365 * 86400), "3 years"),
        (units.format_duration(0.0125), "12.5 ms"),
        (units.format_flop(2.9e20), "2.9e20"),
        (units.format_flop_rate(40.09e12), "40.1 TFLOP/s"),
        (units.format_bandwidth(504.2e9), "504 GB/s"),
        (units.format_energy(770), "770 kWh"),
        (units.format_energy(1.2e6), "1.2 GWh"),
        (units.format_usd(0.354), "$0.35"),
        (units.format_usd(0.00384), "$0.0038"),
        (units.format_usd(0.0099), "$0.0099"),
        (units.format_usd(1e-12), "$0.00"),
        (units.format_usd(1234), "$1,234"),
        (units.format_usd(99_949), "$99,949"),
        (units.format_usd(869_376), "$869 k"),
        (units.format_usd(4.99e6), "$4.99 M"),
        (units.format_duration(25_700 * units.YEAR), "25,700 years"),
        (units.format_percent(0.37), "37 %"),
        (units.format_count(0), "0"),
        (units.digits(1.5e-9), "1.5e-9"),
    ],
)
def test_three_digits_for_people(shown: str, text: str) -> None:
    assert shown == text


def test_a_range_shares_the_unit_of_its_expected_value() -> None:
    days = Range(90 * 86400, 112 * 86400, 150 * 86400)
    assert units.format_range(days, units.format_duration) == "112 days (90 – 150)"
    assert units.format_range(Range(0.28, 0.37, 0.46), units.format_percent) == "37 % (28 – 46)"
    assert units.format_range(Range(1, 2, 3), units.format_usd) == "$2.00 ($1.00 – $3.00)"
    assert units.format_range(Range(6e4, 9e4, 2e5), units.format_usd) == "$90,000 ($60,000 – $200,000)"
    assert units.format_range(Range(869_376, 2.08e6, 4.99e6), units.format_usd) == "$2.08 M (0.869 – 4.99)"


def test_an_exact_range_shows_no_ends() -> None:
    assert units.format_range(Range.exact(2**30), units.format_bytes) == "1 GiB"


@given(POSITIVE)
def test_what_is_written_can_be_read_again(value: float) -> None:
    assert units.parse_count(units.format_count(value)) == pytest.approx(value, rel=0.006)
    assert units.parse_bytes(units.format_bytes(value + 1)) == pytest.approx(value + 1, rel=0.006)


@given(st.floats(1e-5, 1e12))
def test_durations_can_be_read_again(seconds: float) -> None:
    assert units.parse_duration(units.format_duration(seconds)) == pytest.approx(seconds, rel=0.006)


@given(st.floats(0, 1e30, allow_nan=False))
def test_three_digits_are_never_far_off(value: float) -> None:
    assert float(units.digits(value)) == pytest.approx(value, rel=0.0051)


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert 0 <= units.parse_count(text) <= 1e18
    except UsageError as error:
        assert error.message.isprintable()

"""The same arithmetic of plain numbers and of numbers with names: one value, and a formula that gives it."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.derivation import (
    BANDWIDTH,
    EFFICIENCY,
    PEAK,
    SETTING,
    Parts,
    Say,
    applied,
    formula_of,
    largest,
    plain,
    smallest,
    soft_maximum,
    unnoted,
)

SIZES = st.floats(0.5, 1e6)


def parts() -> Parts:
    return Parts({"tp": "given"}, peak_flop_per_s=100.0, bandwidth_bytes_per_s=10.0)


def computed(formula: str, notes: Parts, part: str = "part") -> float:
    names = {name: each.value for name, each in notes.numbers[part].items()}
    known = {"max": max, "min": min, "sqrt": math.sqrt, "exp": math.exp, "expm1": math.expm1}
    return float(eval(formula, {"__builtins__": {}, **known}, names))


def seconds(say: Say, a: float, b: float, c: float) -> float:
    """Arithmetic of every kind."""
    x, y, z = say("x", a), say("y", b), say("z", c)
    side = soft_maximum(x / (y * z), (x + y) * (z - 1), 3) - x
    return (
        side
        + 2 * x * (y / z)
        - (x - (y - z)) / (x / y)
        + largest(x, y * z) ** 2
        + smallest(3, x) / say("e", a, "", PEAK)
        + applied(math.sqrt, x + y) * applied(math.expm1, y / (x + y)) / applied(math.exp, y / (x + y))
    )


@given(SIZES, SIZES, SIZES)
def test_a_formula_gives_what_the_code_does(a: float, b: float, c: float) -> None:
    notes = parts()
    made = seconds(notes("part"), a, b, c + 1)
    assert float(made) == seconds(plain, a, b, c + 1) == seconds(unnoted("part"), a, b, c + 1)
    assert computed(formula_of(made), notes) == pytest.approx(float(made), rel=1e-9, abs=1e-6 * max(a, b, c) ** 2)


@pytest.mark.parametrize(
    "formula",
    [
        "x + y + x",
        "x - (y - x)",
        "x * (y + x)",
        "x / (y * x)",
        "x / (y / x)",
        "(x + y) ** 2",
        "2 - x / y",
        "x ** (1 / y)",
    ],
)
def test_brackets_stand_where_they_are_needed(formula: str) -> None:
    say = parts()("part")
    made = eval(formula, {"__builtins__": {}}, {"x": say("x", 3.0), "y": say("y", 5.0)})
    assert made.formula == formula


def test_what_adds_nothing_is_not_told() -> None:
    x = parts()("part")("x", 2.0)
    assert formula_of(0.0 + x) == formula_of(x + 0.0) == "x" and formula_of(2.0) == "2"


def test_a_rate_is_told_as_a_share_of_what_the_device_states() -> None:
    notes = parts()
    say = notes("part")
    made = say("work", 30.0) / say("efficiency", 50.0, "FLOP/s", PEAK) + 1 / say("share", 5.0, "bytes/s", BANDWIDTH)
    assert formula_of(made) == "work / (peak * efficiency) + 1 / (bandwidth * share)"
    known = notes.numbers["part"]
    assert (known["efficiency"].value, known["efficiency"].origin, known["peak"].origin) == (0.5, EFFICIENCY, "device")


def test_a_setting_says_where_its_value_comes_from() -> None:
    notes = parts()
    notes("part")("tp", 8, "devices", SETTING)
    notes("part")("pp", 2, "", SETTING)
    assert [each.origin for each in notes.numbers["part"].values()] == ["given", "derived"]
    assert notes.numbers["part"]["tp"].value == 8


def test_one_name_stands_for_one_number_of_a_part() -> None:
    notes = parts()
    notes("one")("x", 1.0), notes("other")("x", 2.0)
    with pytest.raises(AssertionError, match=re.escape("one: x is 1.0 and 2.0")):
        notes("one")("x", 2.0)

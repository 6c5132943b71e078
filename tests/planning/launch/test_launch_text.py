from __future__ import annotations

import math
import shlex

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.planning.launch.shell import Variable, command, flags, number
from llmfeas.planning.launch.text import as_json, as_yaml

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(SCALARS, max_size=4) | st.dictionaries(TEXT.filter(bool), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXT.filter(bool), VALUES | st.lists(st.dictionaries(TEXT.filter(bool), SCALARS)), min_size=1))
def test_yaml_reads_back_as_it_was(mapping: dict[str, object]) -> None:
    text = as_yaml(mapping)
    assert yaml.safe_load(text) == mapping
    assert all(line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize(
    "word", ["no", "Yes", "off", "null", "~", "1e3", "0x10", "12:30", "", " a", "a: b", "- a", "#", "y"]
)
def test_yaml_keeps_words_that_look_like_something_else(word: str) -> None:
    assert yaml.safe_load(as_yaml({"key": word, word or "k": [word]})) == {"key": word, word or "k": [word]}


def test_yaml_writes_floats_that_older_readers_know() -> None:
    assert as_yaml({"rate": 2e-05, "big": 1e16, "one": 1.0}) == "rate: 2.0e-05\nbig: 1.0e+16\none: 1.0\n"
    assert as_yaml({"model": "meta-llama/Llama-3.1-8B"}) == "model: meta-llama/Llama-3.1-8B\n"


def test_json_has_finite_numbers_only() -> None:
    assert as_json({"a": "é"}) == '{\n  "a": "\\u00e9"\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json({"a": math.inf})


@given(st.lists(TEXT.filter(lambda text: "\0" not in text), min_size=1, max_size=12))
def test_words_survive_the_shell(parts: list[str]) -> None:
    assert shlex.split(command(parts[:1], parts[1:]).replace(" \\\n  ", " ")) == parts


def test_a_variable_is_left_to_the_shell_and_a_name_is_not() -> None:
    assert command(["run"], ["--address", Variable("MASTER_ADDR")], ["--model", "$(rm x); `y`"]) == (
        """run --address "$MASTER_ADDR" --model '$(rm x); `y`'"""
    )


def test_long_commands_take_an_option_a_line() -> None:
    line = command(["program"], *flags([(f"--option-{i}", i) for i in range(9)]))
    assert line.splitlines()[:2] == ["program \\", "  --option-0 0 \\"]


def test_switches_stand_alone_and_what_is_off_is_left_out() -> None:
    made = flags([("--on", True), ("--off", False), ("--none", None), ("--n", 0), ("--x", 0.0), ("--two", ["a", "b"])])
    assert made == [["--on"], ["--n", 0], ["--x", 0.0], ["--two", "a", "b"]]
    assert [number(value) for value in (0.0, 2e-05, 0.1, 3.0)] == ["0", "2e-05", "0.1", "3"]

"""A prompt's way through a model: levels equal to tracked ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmfeas.catalog.architecture import Model
from llmfeas.catalog.store import catalog
from llmfeas.walk.prefill import prefill_bytes, prefill_polynomials

IMPLEMENTATIONS = catalog().tables.implementations

ROWS = json.loads((Path(__file__).parents[1] / "data" / "prefill.json").read_text())["rows"]

FORWARD_NAMES = 0.016
"""What names that live a little longer in the public code (a joint projection, an added output) come to at most."""


def polynomials(model: Model, row: dict[str, Any]) -> tuple[tuple[int, ...], ...]:
    a = replace(model.architecture, layers=row["layers"])
    if row["window"] and a.window:
        a = replace(a, window=replace(a.window, size=row["window"]))
    windowed = a.window is not None and row["prompt"] >= a.window.size
    eager = row["attention"] == "eager"
    return prefill_polynomials(
        a, IMPLEMENTATIONS.public(a.implementation), value_bytes=2, eager=eager, windowed=windowed
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']}-{row['attention']}-{row['window'] or 'whole'}")
def test_a_prompt_takes_what_was_tracked(models: dict[str, Model], row: dict[str, Any]) -> None:
    ours = prefill_bytes(polynomials(models[row["model"]], row), row["sequences"], row["prompt"])
    assert ours + row["held_bytes"] == pytest.approx(row["prefill_peak_tensor_bytes"], rel=FORWARD_NAMES)


def test_most_rows_agree_to_a_few_kilobytes(models: dict[str, Model]) -> None:
    equal = [
        abs(prefill_bytes(polynomials(models[row["model"]], row), row["sequences"], row["prompt"]) + row["held_bytes"]
            - row["prefill_peak_tensor_bytes"]) < 10_000
        for row in ROWS
    ]  # fmt: skip
    assert sum(equal) >= 0.7 * len(equal)


@settings(deadline=None)
@given(st.integers(1, 64), st.integers(1, 8192))
def test_longer_prompts_take_more(sequences: int, tokens: int) -> None:
    levels = ((1000, 0, 20, 300, 0, 0), (0, 0, 4, 30, 0, 7))
    assert prefill_bytes(levels, sequences, tokens) <= prefill_bytes(levels, sequences, tokens + 1)
    assert prefill_bytes(levels, sequences, tokens) <= prefill_bytes(levels, sequences + 1, tokens)

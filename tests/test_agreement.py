"""Ladder, ways, uses, comparisons, inverse questions and launches say what the estimate says, whatever is asked."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.agreement import AGREEMENTS, Agreement, asked, broken

EXAMPLES = int(os.environ.get("LLMFEAS_LAWS", "6"))


@pytest.mark.parametrize("agreement", AGREEMENTS, ids=lambda agreement: agreement.name)
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**32))
def test_what_is_promised_is_kept(agreement: Agreement, seed: int) -> None:
    assert not broken(agreement, asked(seed, agreement.tasks)), f"seed {seed}"


def test_a_promise_that_is_not_kept_is_found() -> None:
    """Each kind of fault shows: figures that differ, and a question that is refused."""
    from fuzz.agreement import differences

    ask = {"model": "gpt2", "device": "rtx-3090", "task": "lora"}
    assert not list(differences("a way", {"status": "feasible"}, ask))
    assert len(list(differences("a way", {"status": "tight", "peak_bytes": 1.0}, ask))) == 2
    assert "refused" in next(differences("a way", {}, {**ask, "device": "no-such-card"}))

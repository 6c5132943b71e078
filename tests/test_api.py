"""The Python API says the same as the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import llmfeas


def test_an_answer_is_what_the_command_line_prints() -> None:
    answer = llmfeas.estimate(model="gpt2-xl", device="rtx-4070ti", task="lora")
    command = [sys.executable, "-m", "llmfeas", "estimate", "-m", "gpt2-xl", "-d", "rtx-4070ti", "-t", "lora", "--json"]
    printed = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout
    assert json.loads(printed) == json.loads(json.dumps(answer.to_dict()))


def test_it_can_be_asked_again_after_parts_were_imported() -> None:
    import llmfeas.feasibility.core

    assert llmfeas.feasibility.core.estimate
    first, second = (llmfeas.estimate(model="gpt2", device="t4") for _ in range(2))
    assert first.to_dict() == second.to_dict()


def test_what_is_wrong_is_an_exception_with_a_hint() -> None:
    with pytest.raises(llmfeas.UsageError) as caught:
        llmfeas.estimate(model="gpt2", device="rtx-4075")
    assert "rtx-4070" in caught.value.candidates


def test_one_name_stands_for_itself() -> None:
    one = llmfeas.compare("gpt2", "t4")
    assert one.to_dict() == llmfeas.compare(["gpt2"], ["t4"]).to_dict()
    ways = (llmfeas.plan("gpt2-xl", "rtx-4070ti", keep=keep).to_dict() for keep in ("precision", ["precision"]))
    assert next(ways) == next(ways)


def test_a_comparison_of_nothing_and_an_order_that_is_none_are_refused() -> None:
    with pytest.raises(llmfeas.UsageError, match="no model"):
        llmfeas.compare([], ["t4"])
    with pytest.raises(llmfeas.UsageError, match="beauty") as caught:
        llmfeas.compare("gpt2", "t4", sort="beauty")  # type: ignore[arg-type]
    assert "cost" in caught.value.candidates


def test_what_comes_out_is_shown_in_few_words() -> None:
    row = llmfeas.compare("gpt2", "t4").rows[0]
    answer = llmfeas.solve("max-model", device="t4", task="inference")
    assert len(repr(row)) < 200 and "gpt2" in repr(row)
    assert len(repr(answer)) < 500 and str(answer.answer["model"]) in repr(answer)


def test_an_unknown_name_is_no_part_of_it() -> None:
    with pytest.raises(AttributeError):
        _ = llmfeas.nothing  # type: ignore[attr-defined]
    assert "estimate" in dir(llmfeas)

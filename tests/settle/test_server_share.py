"""The share of a card that a server takes where nobody says, and the reason it gives for not starting."""

from __future__ import annotations

import pytest

from llmfeas.errors import UsageError
from llmfeas.planning.answer import answer, bare_answer
from llmfeas.render.formats.table import rendered
from llmfeas.render.pages.estimate import report

DESK = {"model": "qwen3-8b", "device": "rtx-4070ti", "task": "inference", "engine": "vllm"}


def test_a_server_takes_no_more_than_a_screen_leaves_and_says_so() -> None:
    found = bare_answer({**DESK, "quant": "awq-int4"})
    share = found.scenario.gpu_memory_utilization
    assert found.verdict.status == "feasible" and share is not None and share < 0.92
    assert f"vllm takes {share:g} of the card" in " ".join(rendered(report(found.to_dict()), 100).split())
    assert bare_answer({**DESK, "quant": "awq-int4", "reserve": 0}).scenario.gpu_memory_utilization == 0.92
    said = bare_answer({**DESK, "quant": "awq-int4", "gpu_memory_utilization": 0.92})
    assert said.verdict.status == "infeasible" and "0.91 or less" in said.verdict.reasons[-1].message


def test_the_reason_is_the_one_that_no_setting_mends() -> None:
    """Weights that a card cannot hold come before a share that it does not have free."""
    for more in ({}, {"gpu_memory_utilization": 0.92}):
        told = " ".join(reason.message for reason in bare_answer({**DESK, "quant": "none", **more}).verdict.reasons)
        assert "weights of 15.3 GiB take" in told and "or less" not in told


def test_another_format_is_a_way_by_its_name() -> None:
    asked = {**DESK, "quant": "none"}
    ways = [way for way in answer(asked).remedies or () if "device" not in way.changes]
    assert ways and all("quant" in way.changes for way in ways)


def test_a_context_that_is_proposed_has_room_for_an_answer() -> None:
    with pytest.raises(UsageError, match="longer than --context 500") as error:
        bare_answer({"model": "llama-3-8b", "device": "t4", "task": "inference", "prompt": 1000, "context": 500})
    assert "--context 1512, for an answer of 512 tokens" in str(error.value.hint)

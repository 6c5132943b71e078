"""What is asked backwards of a device that holds a model only with the host's help, and where answers begin."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.planning.answer import bare_answer
from llmfeas.planning.solve import solved
from llmfeas.workload.serving import spills

Ask = dict[str, object]


@pytest.mark.parametrize(
    ("question", "setting", "ask"),
    [
        ("max-context", "context", {"model": "gpt-oss-120b", "device": "rtx-3090", "host_memory": "64GiB"}),
        ("max-context", "context", {"model": "llama-3.3-70b", "device": "rtx-4090", "host_memory": "64GiB"}),
        ("max-batch", "concurrency", {"model": "llama-3.3-70b", "device": "rtx-5090", "host_memory": "64GiB"}),
    ],
)
def test_what_an_estimate_calls_feasible_has_an_answer(question: str, setting: str, ask: Ask) -> None:
    """None worked before, beside an estimate of 4096 tokens that does."""
    asked = {**ask, "task": "inference"}
    found = solved(question, asked, catalog())
    most = found.answer[setting]
    assert isinstance(most, int) and bare_answer(asked).verdict.status == "feasible"
    assert found.at is not None and spills(found.at.scenario)
    assert any("does not fit on the device alone" in note for note in found.notes)
    assert bare_answer({**asked, setting: most}).verdict.status in ("feasible", "tight")
    assert bare_answer({**asked, setting: most + 1}).verdict.status == "infeasible"


def test_where_the_device_holds_it_alone_the_answer_ends_there() -> None:
    asked = {"model": "llama-3.1-8b", "device": "rtx-4090", "task": "inference"}
    found = solved("max-context", asked, catalog())
    assert found.at is not None and not spills(found.at.scenario) and not found.notes
    assert str((found.beyond or {})["because"]).startswith("only ")


@pytest.mark.parametrize("more", [{}, {"response_length": 500}])
def test_sequences_that_hold_an_answer_begin_where_there_is_room_for_a_prompt(more: Ask) -> None:
    asked = {"model": "qwen2.5-1.5b", "device": "h200", "task": "grpo", **more}
    found = solved("max-context", asked, catalog())
    assert int(str(found.answer["seq_len"])) > 501

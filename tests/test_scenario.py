"""Scenarios that differ in their batch alone share what no batch changes."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest

from llmfeas import findings
from llmfeas.catalog.store import catalog
from llmfeas.findings import cached_across_batches
from llmfeas.planning.answer import bare_answer
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution

REQUEST = {"model": "gpt2", "device": "rtx-4090", "task": "finetune"}


@pytest.fixture
def scenario() -> Scenario:
    return replace(resolution({**REQUEST, "micro_batch": 2}, catalog()).scenario)


def test_another_batch_changes_nothing_else(scenario: Scenario) -> None:
    other = scenario.with_batch({"micro_batch": 4, "global_batch": 8}, {"global_batch": "given"})
    assert (other.micro_batch, other.global_batch, other.was_given("global_batch")) == (4, 8, True)
    assert replace(scenario, micro_batch=4, global_batch=8, origins=other.origins) == other
    assert scenario.micro_batch == 2


def test_what_is_found_out_is_shared_by_batches_and_by_nothing_else(scenario: Scenario) -> None:
    asked: list[str] = []

    @cached_across_batches
    def found(scenario: Scenario, more: int = 0) -> str:
        asked.append(scenario.precision)
        return f"{scenario.precision} {more}"

    other = scenario.with_batch({"micro_batch": 8}, {})
    assert [found(scenario), found(other), found(other, 1), found(scenario, 1)] == 2 * ["bf16-mixed 0"] + [
        "bf16-mixed 1",
        "bf16-mixed 1",
    ]
    assert len(asked) == 2
    assert found(replace(scenario, precision="fp32")) == "fp32 0"


def test_findings_are_few(scenario: Scenario) -> None:
    @cached_across_batches
    def found(scenario: Scenario, more: int) -> int:
        return more

    assert [found(scenario, more) for more in range(1000)] == list(range(1000))
    assert len(scenario.shared) <= findings.MAX_SHARED


@pytest.mark.parametrize("task", ["finetune", "inference"])
def test_an_estimate_travels_to_other_processes(task: str) -> None:
    found = bare_answer({**REQUEST, "task": task})
    for twin in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert twin.to_dict() == found.to_dict()
        assert twin.scenario == found.scenario

"""Scenarios that differ in their batch, or in their hardware too, share what neither changes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from llmfeas import findings
from llmfeas.catalog.store import catalog
from llmfeas.findings import cached_across_batches, cached_across_devices
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


def test_what_no_hardware_changes_is_found_once_for_all_devices_of_a_kind(scenario: Scenario) -> None:
    asked: list[str] = []

    @cached_across_devices
    def found(scenario: Scenario, more: int = 0) -> str:
        asked.append(scenario.device.backend)
        return f"{scenario.device.backend} {scenario.precision} {more}"

    def on(device: str, **more: str) -> Scenario:
        return resolution({**REQUEST, **more, "device": device}, catalog()).scenario

    rest = [on("h100-sxm"), on("rtx-4090", price="3"), scenario.with_batch({"micro_batch": 8}, {})]
    assert {found(each) for each in (scenario, *rest)} == {"cuda bf16-mixed 0"}
    assert found(scenario, 1) == found(on("h100-sxm"), 1) == "cuda bf16-mixed 1"
    assert len(asked) == 2
    assert found(on("mi300x")) == "rocm bf16-mixed 0"
    assert found(on("h100-sxm", precision="fp32")) == "cuda fp32 0"


def test_what_is_found_for_all_devices_cannot_look_at_one_nor_at_a_batch_that_it_is_not_told(
    scenario: Scenario,
) -> None:
    looks: tuple[Callable[[Scenario], Any], ...] = (
        lambda scenario: scenario.device.bandwidth_bytes_per_s,
        lambda scenario: 2 * scenario.memory_bytes,
        lambda scenario: 1 + scenario.devices_per_node,
        lambda scenario: scenario.was_given("task"),
        lambda scenario: scenario.sequences + 1,
    )
    for look in looks:
        with pytest.raises((AttributeError, TypeError)):
            cached_across_devices(look)(scenario)
    told = cached_across_devices(lambda scenario, micro_batch: scenario.sequences)
    assert told(scenario, scenario.micro_batch) == scenario.sequences


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

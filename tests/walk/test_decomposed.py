"""Steps of adapters with magnitudes (DoRA), against tracked steps of peft's layers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.memory.training import training_memory, training_plan
from llmfeas.settle import resolution
from llmfeas.workload.parameters import parameters_of

DATA = json.loads((Path(__file__).parents[1] / "data" / "decomposed_memory.json").read_text())
ASKED = {"device": "h100-sxm", "task": "lora", "lora_kind": "dora", "engine": "pytorch"}


def label(row: dict[str, Any]) -> str:
    return "-".join([row["model"], *map(str, row["scenario"].values())])


@pytest.mark.parametrize("row", DATA["rows"], ids=label)
def test_a_tracked_peak_is_met(row: dict[str, Any], described_models: dict[str, str]) -> None:
    scenario = resolution({**ASKED, **row["scenario"], "model": described_models[row["model"]]}, catalog()).scenario
    assert training_memory(scenario).bytes == pytest.approx(row["peak_bytes"], rel=0.001)
    assert parameters_of(scenario).trainable == row["trainable"]


@pytest.mark.parametrize("targets", ["all-linear", "attention"])
def test_what_trains_is_what_memory_holds(targets: str) -> None:
    scenario = resolution({**ASKED, "model": "llama-3-8b", "lora_targets": targets}, catalog()).scenario
    (rank,) = training_plan(scenario).ranks
    assert rank.moments.inventory.trained == parameters_of(scenario).trainable


def test_another_scaling_takes_no_memory() -> None:
    plain, scaled = (
        training_memory(resolution({**ASKED, "model": "llama-3-8b", "lora_kind": kind}, catalog()).scenario).bytes
        for kind in ("lora", "rslora")
    )
    assert plain == scaled


@pytest.mark.parametrize(("engine", "kind"), [("unsloth", "dora"), ("megatron", "rslora"), ("litgpt", "dora")])
def test_an_engine_without_a_kind_of_adapters_is_refused_with_those_that_have_it(engine: str, kind: str) -> None:
    asked = {**ASKED, "model": "llama-3-8b", "engine": engine, "lora_kind": kind}
    with pytest.raises(UsageError, match=f"has no --lora-kind {kind}") as error:
        resolution(asked, catalog())
    assert "trl" in str(error.value.hint)

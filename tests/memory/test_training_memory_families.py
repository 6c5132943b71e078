"""Peaks of training steps of every family that has a program of its own, beside those that were measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmfeas.catalog.architecture import Model
from llmfeas.catalog.store import catalog
from llmfeas.importers.hf.config import model_from_config
from llmfeas.memory.training import TensorMemory, training_memory
from llmfeas.scenario import Scenario
from llmfeas.workload.parameters import parameters
from training_scenarios import CARD

DATA = json.loads((Path(__file__).parents[1] / "data" / "training_memory_families.json").read_text())


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    """Every configuration of the rows, read as a user's config.json is."""
    folder = tmp_path_factory.mktemp("configs")

    def model(name: str) -> Model:
        path = folder / f"{name}.json"
        path.write_text(json.dumps(DATA["configs"][name]))
        return model_from_config(path)

    return {name: model(name) for name in DATA["configs"]}


def memory(row: dict[str, Any], models: dict[str, Model]) -> TensorMemory:
    settings = {**row["scenario"], "model": models[row["scenario"]["model"]], "device": CARD}
    return training_memory(Scenario(tables=catalog().tables, memory_bytes=80e9, host_memory_bytes=256e9, **settings))


def title(row: dict[str, Any]) -> str:
    asked = row["scenario"]
    keys = ("model", "task", "precision", "attention", "checkpointing", "micro_batch", "seq_len")
    return "-".join(str(asked[key]) for key in keys)


@pytest.mark.parametrize("row", DATA["rows"] + DATA["attention"], ids=title)
def test_a_family_s_measured_peak_is_met_within_a_hundredth_of_a_percent(
    row: dict[str, Any], models: dict[str, Model]
) -> None:
    found = memory(row, models)
    assert found.bytes == pytest.approx(row["peak_tensor_bytes"], rel=1e-4)
    assert found.moment == row["peak_moment"]


@pytest.mark.parametrize("name", DATA["configs"])
def test_a_configuration_s_parameters_are_those_of_the_class(name: str, models: dict[str, Model]) -> None:
    row = next(row for row in DATA["rows"] if row["scenario"]["model"] == name and row["scenario"]["task"] != "lora")
    assert parameters(models[name]).total == row["parameters"]


ADAPTED = {row["scenario"]["model"]: row for row in DATA["rows"] if row["scenario"]["task"] == "lora"}


@pytest.mark.parametrize("name", ADAPTED)
def test_adapters_train_what_the_adapter_library_makes(name: str, models: dict[str, Model]) -> None:
    row = ADAPTED[name]
    rank, record = row["scenario"]["lora_rank"], models[name].architecture.implementation
    traits = catalog().tables.implementations.public(record)
    assert parameters(models[name], lora_rank=rank, traits=traits).trainable == row["trainable"]


def test_settings_drawn_at_random_and_predicted_before_they_were_measured(models: dict[str, Model]) -> None:
    errors = [abs(memory(row, models).bytes / row["peak_tensor_bytes"] - 1) for row in DATA["blind"]]
    assert max(errors) < 5e-3
    assert sum(error < 2e-5 for error in errors) > 0.95 * len(errors)

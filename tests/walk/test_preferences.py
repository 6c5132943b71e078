"""Steps of losses over preferences without DPO's pairs, against tracked ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.memory.models_beside import models_beside
from llmfeas.memory.training import training_memory
from llmfeas.settle import resolution

DATA = json.loads((Path(__file__).parents[1] / "data" / "preference_memory.json").read_text())


def label(row: dict[str, Any]) -> str:
    return "-".join([row["model"], *map(str, row["scenario"].values())])


@pytest.mark.parametrize("row", DATA["rows"], ids=label)
def test_a_tracked_step_is_met(row: dict[str, Any], described_models: dict[str, str]) -> None:
    asked = {"device": "h100-sxm", **row["scenario"], "model": described_models[row["model"]]}
    scenario = resolution(asked, catalog()).scenario
    found = training_memory(scenario).bytes + sum(models_beside(scenario).values())
    assert found == pytest.approx(row["peak_tensor_bytes"], rel=6e-4)

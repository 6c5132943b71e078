"""Steps of torchtune's own modules under the loss of its configurations, against tracked ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.memory.training import training_memory
from llmfeas.settle import resolution
from llmfeas.workload.parameters import parameters_of

DATA = json.loads((Path(__file__).parents[1] / "data" / "torchtune_memory.json").read_text())


@pytest.mark.parametrize("row", DATA["rows"], ids=lambda row: "-".join(map(str, row["scenario"].values())))
def test_a_tracked_peak_is_met(row: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(DATA["config"]))
    asked = {"model": str(tmp_path), "device": "h100-sxm", "engine": "torchtune", **row["scenario"]}
    scenario = resolution(asked, catalog()).scenario
    assert training_memory(scenario).bytes == pytest.approx(row["peak_bytes"], rel=0.003)
    assert parameters_of(scenario).trainable == row["trainable"]


def test_adapters_stand_on_projections_of_its_own() -> None:
    asked = {"model": "phi-4", "device": "h100-sxm", "task": "lora", "lora_rank": 16}
    fused, own = (
        parameters_of(resolution({**asked, "engine": engine}, catalog()).scenario).trainable
        for engine in ("pytorch", "torchtune")
    )
    assert (fused, own) == (55_705_600, 65_536_000)


def test_trl_forms_no_logits_of_all_tokens() -> None:
    asked = {"model": "qwen2.5-7b", "device": "h100-sxm", "task": "lora", "micro_batch": 8}
    plain, tiled = (
        training_memory(resolution({**asked, "engine": engine}, catalog()).scenario).components.get("logits_bytes", 0)
        for engine in ("pytorch", "trl")
    )
    assert tiled < plain / 10

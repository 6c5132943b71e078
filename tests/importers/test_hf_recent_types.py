"""Types with operators of their own: work as PyTorch counts it, and steps as they were tracked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.importers.hf.config import model_from_config
from llmfeas.memory.training import training_memory
from llmfeas.settle import resolution
from llmfeas.workload.flops import step_flop
from llmfeas.workload.parameters import parameters

DATA: dict[str, Any] = json.loads((Path(__file__).parent.parent / "data" / "tracked_types.json").read_text())
CONFIGS = DATA["configs"]


def written(folder: Path, name: str) -> Path:
    (folder / "config.json").write_text(json.dumps(CONFIGS[name]["config"]))
    return folder


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_and_work_are_those_of_the_class(tmp_path: Path, name: str) -> None:
    row = CONFIGS[name]
    architecture = model_from_config(written(tmp_path, name)).architecture
    assert parameters(architecture).total == row["parameters"]
    if "forward" in row:
        found = step_flop(architecture, row["batch"], row["seq_len"], kernel="eager")
        assert (found.forward, found.backward) == (row["forward"], row["backward"])


@pytest.mark.parametrize("row", DATA["memory"], ids=lambda row: f"{row['of']}-{json.dumps(row['ask'])[10:70]}")
def test_a_step_takes_what_was_tracked(tmp_path: Path, row: dict[str, Any]) -> None:
    tokens = {} if row["ask"]["task"] == "lora" else {"tokens": "1M"}
    ask = {
        **row["ask"],
        **tokens,
        "model": str(written(tmp_path, row["of"])),
        "device": "h100-sxm",
        "engine": "pytorch",
    }
    found = training_memory(resolution(ask, catalog()).scenario)
    assert found.moment == row["moment"]
    assert found.bytes == pytest.approx(row["peak_tensor_bytes"], rel=row.get("within", 0.005))

"""Steps of LitGPT's own modules and losses, against tracked ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.memory.training import training_memory
from llmfeas.settle import resolution

DATA = json.loads((Path(__file__).parents[1] / "data" / "litgpt_memory.json").read_text())


@pytest.mark.parametrize("row", DATA["rows"], ids=lambda row: "-".join(map(str, row["scenario"].values())))
def test_a_tracked_peak_is_met(row: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(DATA["configs"][row["config"]]))
    asked = {"model": str(tmp_path), "device": "h100-sxm", "engine": "litgpt", **row["scenario"]}
    asked |= {"global_batch": asked["micro_batch"], "optimizer": "adamw"}
    assert training_memory(resolution(asked, catalog()).scenario).bytes == pytest.approx(row["peak_bytes"], rel=0.02)


def test_adapters_train_in_16_bits_where_autocast_would_widen_the_base() -> None:
    asked = {"model": "qwen2.5-7b", "device": "h100-sxm", "engine": "litgpt"}
    told = {}
    for task, precision in (("lora", None), ("lora", "bf16-mixed"), ("finetune", None)):
        found = resolution({**asked, "task": task, "precision": precision}, catalog())
        told[task, precision] = (found.scenario.precision, found.scenario.base_dtype)
    assert told == {
        ("lora", None): ("bf16", "bf16"),
        ("lora", "bf16-mixed"): ("bf16-mixed", "fp32"),
        ("finetune", None): ("bf16-mixed", None),
    }


def test_a_family_whose_modules_were_not_read_is_computed_as_public_code() -> None:
    asked = {"model": "pythia-160m", "device": "h100-sxm", "task": "pretrain", "num_devices": 1, "seq_len": 1024}
    plain, own = (
        training_memory(resolution({**asked, "engine": engine}, catalog()).scenario) for engine in ("pytorch", "litgpt")
    )
    assert own.bytes == plain.bytes

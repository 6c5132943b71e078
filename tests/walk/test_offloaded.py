"""Steps whose kept tensors wait on the host, against tracked steps with hooks that send every kept tensor there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.memory.training import TensorMemory, training_memory, training_plan
from llmfeas.planning.answer import bare_answer

DATA = json.loads((Path(__file__).parents[1] / "data" / "offloaded_memory.json").read_text())
ASKED = {"model": "llama-3.1-8b", "device": "h100-sxm", "task": "lora", "seq_len": 8192, "checkpointing": "none"}


def label(row: dict[str, Any]) -> str:
    scenario = row["scenario"]
    return "-".join(str(scenario[name]) for name in ("task", "precision", "checkpointing", "attention"))


def memory(**asked: object) -> TensorMemory:
    return training_memory(bare_answer({**ASKED, **asked}, catalog()).scenario)


@pytest.mark.parametrize("row", DATA["rows"], ids=[f"{row['model']}-{label(row)}" for row in DATA["rows"]])
def test_a_tracked_peak_is_met_to_one_block_of_the_allocator(
    row: dict[str, Any], described_models: dict[str, str]
) -> None:
    found = memory(**row["scenario"], model=described_models[row["model"]])
    assert abs(found.bytes - row["peak_tensor_bytes"]) <= 512
    assert found.moment == row["peak_moment"]


@pytest.mark.parametrize("checkpointing", ["none", "selective", "full"])
@pytest.mark.parametrize("engine", ["pytorch", "pytorch-compile", "pytorch-liger", "unsloth", "megatron"])
def test_what_leaves_the_device_lies_on_the_host(engine: str, checkpointing: str) -> None:
    here = memory(engine=engine, checkpointing=checkpointing)
    away = memory(engine=engine, checkpointing=checkpointing, offload="activations")
    assert away.bytes <= here.bytes
    assert away.host_bytes >= here.host_bytes
    assert away.host_bytes > 0


def test_optimizer_and_gradients_stay() -> None:
    here, away = (memory(task="pretrain", offload=offload).components for offload in ("none", "activations"))
    assert away["weights_bytes"] == here["weights_bytes"]
    assert away["optimizer_bytes"] == here["optimizer_bytes"]
    assert away["activations_bytes"] < 0.1 * here["activations_bytes"]


def test_each_micro_batch_of_a_pipeline_keeps_its_own_on_the_host() -> None:
    asked = {
        **ASKED,
        "task": "pretrain",
        "device": "8xh100-sxm",
        "pp": 8,
        "tp": 1,
        "micro_batch": 1,
        "global_batch": 16,
    }
    scenario = bare_answer({**asked, "offload": "activations"}, catalog()).scenario
    first = training_plan(scenario).ranks[0]
    assert first.streamed_bytes(1, 8192) == 8 * first.moments.streamed_bytes(1, 8192)
    assert training_memory(scenario).host_bytes == first.streamed_bytes(1, 8192)

"""The ladder: what a model can do on a device, whatever was asked of it."""

from __future__ import annotations

import pytest

from llmfeas.planning.answer import answer


@pytest.mark.parametrize(
    "asked",
    [
        {"task": "inference", "seq_len": 4096, "zero": 0},
        {"task": "pretrain", "context": 4096},
        {"task": "lora", "num_devices": 4, "engine": "unsloth", "lora_dropout": 0.1},
        {"task": "finetune", "num_devices": 8, "tp": 2, "engine": "megatron"},
        {"task": "inference", "num_devices": 8, "tp": 4},
    ],
    ids=str,
)
def test_a_setting_that_means_nothing_to_the_task_takes_no_rung_away(asked: dict[str, object]) -> None:
    found = answer({"model": "distilgpt2", "device": "rtx-3090", **asked})
    assert len(found.ladder) == 7
    assert {rung.status for rung in found.ladder} == {"feasible"}

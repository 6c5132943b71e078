"""What is alive along a step, moment by moment: its fullest moment is the peak that memory counts."""

from __future__ import annotations

import pytest

import llmfeas
from llmfeas.memory.training import MOST_MOMENTS, step_timeline, training_memory

ASKS = {
    "dense": {"model": "gpt2-xl", "device": "rtx-4070ti", "task": "pretrain"},
    "checkpointed": {"model": "llama-3-8b", "device": "8xh100-sxm", "task": "finetune", "checkpointing": "full"},
    "experts": {"model": "mixtral-8x7b", "device": "16xh100-sxm", "task": "finetune"},
    "adapters": {"model": "qwen3-8b", "device": "rtx-4090", "task": "qlora"},
    "pipeline": {"model": "llama-3-70b", "device": "64xh100-sxm", "task": "pretrain", "pp": 4},
    "preferences": {"model": "qwen3-8b", "device": "8xh100-sxm", "task": "dpo"},
    "learned tokens": {
        "model": "gpt2-xl",
        "device": "h100-sxm",
        "task": "lora",
        "lora_kind": "prompt",
        "virtual_tokens": 200,
        "micro_batch": 4,
    },
    "a batch in parts": {
        "model": "llama-3.1-8b",
        "device": "4xh100-sxm",
        "task": "pretrain",
        "engine": "torchtitan",
        "tp": 1,
        "pp": 4,
        "micro_batch": 4,
        "global_batch": 4,
    },
    "offloaded": {"model": "llama-3-8b", "device": "rtx-4090", "task": "finetune", "offload": "optimizer"},
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
def test_the_fullest_moment_of_a_step_is_its_peak(ask: dict[str, object]) -> None:
    scenario = llmfeas.estimate(**ask).scenario  # type: ignore[arg-type]
    levels = step_timeline(scenario)
    fullest, peak = max(levels, key=lambda level: level.bytes), training_memory(scenario)
    assert fullest.bytes == pytest.approx(peak.bytes, rel=1e-4)
    assert fullest.moment == peak.moment
    assert 10 < len(levels) <= MOST_MOMENTS + 1


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
def test_a_step_goes_forward_then_backward_then_to_the_optimizer(ask: dict[str, object]) -> None:
    moments = [level.moment for level in step_timeline(llmfeas.estimate(**ask).scenario)]  # type: ignore[arg-type]
    assert list(dict.fromkeys(moments)) in (
        ["forward", "loss", "backward", "optimizer"],
        ["forward", "backward", "optimizer"],
    )
    assert moments.count("optimizer") == 1

"""The floor of a training step: never above its peak, and what it spares gives way to what can be."""

from __future__ import annotations

from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.memory.floor import rank_floor_bytes
from llmfeas.memory.training import training_memory
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution
from llmfeas.workload.parameters import parameters

ASKS: tuple[dict[str, object], ...] = (
    {"device": "h200"},
    {"device": "h200", "precision": "bf16", "optimizer": "adamw-8bit"},
    {"device": "h200", "offload": "optimizer"},
    {"device": "h200", "offload": "activations"},
    {"device": "8xh200", "zero": 1},
    {"device": "8xh200", "zero": 2},
    {"device": "64xh200"},
    {"device": "64xh200", "engine": "megatron"},
    {"device": "64xh200", "engine": "deepspeed", "optimizer": "lion"},
    {"device": "64xh200", "engine": "nemo-fp8-activations", "precision": "fp8-mixed"},
    {"device": "8xh200", "engine": "transformer-engine", "precision": "fp8-mixed"},
    {"device": "8xh200", "engine": "llm.c"},
    {"device": "8xh200", "engine": "llmq", "optimizer": "sgd"},
    {"device": "64xtpu-v5p"},
    {"device": "m3-ultra"},
    {"device": "h200", "task": "lora"},
    {"device": "8xh200", "task": "lora", "lora_targets": "attention", "lora_rank": 1},
    {"device": "8xh200", "task": "qlora"},
    {"device": "8xh200", "task": "lora", "precision": "fp8-mixed", "engine": "nemo-tuned"},
    {"device": "8xh200", "task": "lora", "precision": "fp8-mixed", "engine": "nemo-tuned", "zero": 2, "lora_rank": 1},
    {"device": "h200", "task": "finetune", "engine": "unsloth"},
    {"device": "h200", "engine": "pytorch-liger"},
    {"device": "h200", "engine": "pytorch-compile"},
)


def scenario_of(**ask: Any) -> Scenario:
    return resolution({"task": "pretrain", "micro_batch": 1, "seq_len": 64, **ask}, catalog()).scenario


@pytest.mark.parametrize(("number", "ask"), [*enumerate(ASKS)], ids=str)
def test_no_step_needs_less_than_its_floor(number: int, ask: dict[str, object]) -> None:
    for model in [*[*catalog().models][number :: 2 * len(ASKS)], "chinchilla-70b"]:
        if "lora_targets" in ask and not parameters(catalog().models[model], 1, "attention").trainable:
            continue  # a Mamba: refused, there is no attention
        scenario = scenario_of(model=model, **ask)
        assert training_memory(scenario).bytes >= rank_floor_bytes(scenario), model


def test_what_lies_on_the_host_has_no_floor() -> None:
    assert rank_floor_bytes(scenario_of(model="llama-3-8b", device="h200", offload="all")) == 0


def test_where_not_even_the_states_fit_the_layout_that_divides_them_most_is_taken() -> None:
    scenario = scenario_of(model="deepseek-v3", device="16xrtx-4090", engine="megatron")
    assert rank_floor_bytes(scenario) > scenario.memory_bytes
    assert scenario.tp * scenario.pp == 16

"""Adapters on routed experts: what trains is what memory holds, whatever software puts them there."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.memory.training import training_memory, training_plan
from llmfeas.settle import resolution
from llmfeas.workload.kernels import traits_of
from llmfeas.workload.parameters import parameters, parameters_of


@pytest.mark.parametrize("targets", ["all-linear", "attention"])
@pytest.mark.parametrize("model", ["qwen3-30b-a3b", "mixtral-8x7b", "llama-3-8b"])
@pytest.mark.parametrize("engine", ["pytorch", "unsloth", "megatron", "nemo"])
def test_what_trains_is_what_memory_holds(engine: str, model: str, targets: str) -> None:
    asked = {"model": model, "device": "h200", "task": "lora", "engine": engine, "lora_targets": targets}
    scenario = resolution({**asked, "micro_batch": 1}, catalog()).scenario
    (rank,) = training_plan(scenario).ranks
    count = parameters(scenario.model, scenario.lora_rank, scenario.lora_targets, traits=traits_of(scenario)).trainable
    assert rank.moments.inventory.trained == count


def test_experts_are_divided_over_tensor_parallel_ranks_where_the_software_does_it() -> None:
    """Megatron's expert tensor parallelism is its tensor parallelism unless set; megatron-swift's is 1."""
    ask = {"model": "qwen3-30b-a3b", "device": "8xa100-sxm-80gb", "task": "lora", "tp": 2, "ep": 4, "micro_batch": 1}
    held = {
        engine: resolution({**ask, "engine": engine}, catalog()).scenario.expert_tp
        for engine in ("megatron", "megatron-swift")
    }
    assert held == {"megatron": 2, "megatron-swift": 1}


def test_unsloth_has_a_fused_kernel_for_cards_without_bf16() -> None:
    """A packed notebook on a T4: 14.5e9 bytes were held; scores kept by an eager kernel would have taken 63e9."""
    ask = {"model": "tinyllama-1.1b", "device": "t4", "task": "qlora", "engine": "unsloth-2024", "lora_rank": 32}
    shape = {"micro_batch": 2, "seq_len": 4096, "checkpointing": "none", "optimizer": "adamw-8bit"}
    found = resolution({**ask, **shape}, catalog())
    assert found.scenario.attention == "flash"


def test_before_transformers_5_each_expert_was_a_module_that_adapters_reach() -> None:
    """Of three matrices each; gate and up are counted with one factor for both, 7 % too few."""
    ask = {"model": "mixtral-8x7b", "device": "8xh100-sxm", "task": "lora", "lora_rank": 16, "transformers": "4"}
    layers, experts, hidden, width, keys = 32, 8, 4096, 14336, 1024
    of_experts = layers * experts * 16 * 3 * (hidden + width)
    of_attention = layers * 16 * (2 * 2 * hidden + 2 * (hidden + keys))
    found = parameters_of(resolution(ask, catalog()).scenario)
    assert found.trainable == pytest.approx(of_experts + of_attention, rel=0.08)


def test_frozen_experts_that_run_one_after_the_other_make_less_at_once() -> None:
    ask = {"model": "mixtral-8x7b", "device": "a100-sxm-80gb", "task": "qlora", "lora_targets": "attention"}
    ask |= {"quant": "nf4", "seq_len": 4096, "checkpointing": "full", "micro_batch": 8, "global_batch": 8}
    loop, stack = (
        training_memory(resolution({**ask, "transformers": name}, catalog()).scenario).components["workspace_bytes"]
        for name in ("4", "5")
    )
    assert loop < 0.7 * stack

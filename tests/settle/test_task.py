"""Where nobody says the task, what is said decides: pre-training unless it would mean nothing to that."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.planning.answer import answer, bare_answer
from llmfeas.planning.launch import launcher, prepared
from llmfeas.planning.solve import solved

LLAMA = {"model": "llama-3-8b", "device": "rtx-4090"}


@pytest.mark.parametrize(
    ("said", "task", "because"),
    [
        ({"engine": "vllm"}, "inference", "--engine vllm"),
        ({"cpu_moe": True, "model": "gpt-oss-120b"}, "inference", "--n-cpu-moe"),
        ({"rate": 2}, "inference", "--rate"),
        ({"prompt": 500}, "inference", "--prompt"),
        ({"gpu_memory_utilization": 0.9}, "inference", "--gpu-memory-utilization"),
        ({"concurrency": 8}, "inference", "--concurrency"),
        ({"quant": "q4_k_m"}, "inference", "--quant"),
        ({"examples": "5k"}, "finetune", "--examples"),
        ({"lora_rank": 64}, "lora", "--lora-rank"),
        ({"lora_rank": 64, "quant": "nf4"}, "qlora", "--lora-rank"),
        ({"loss": "kto"}, "dpo", "--loss"),
        ({"group_size": 4}, "grpo", "--group-size"),
    ],
    ids=str,
)
def test_settings_that_mean_nothing_to_pretraining_imply_a_task(
    said: dict[str, object], task: str, because: str
) -> None:
    found = bare_answer({**LLAMA, **said})
    assert (found.scenario.task, found.scenario.origins["task"]) == (task, "derived")
    (note,) = [each for each in found.warnings if each.code == "task-implied"]
    assert note.message.startswith(f"--task {task} was taken: {because}")
    same = bare_answer({**LLAMA, **said, "task": task})
    assert same.memory == found.memory and same.time == found.time


@pytest.mark.parametrize(
    "said",
    [{}, {"seq_len": 512}, {"engine": "megatron"}, {"quant": "none"}, {"seq_len": 512, "context": 2048}],
    ids=str,
)
def test_nothing_else_implies_another_task_than_pretraining(said: dict[str, object]) -> None:
    assert bare_answer({"model": "gpt2", "device": "rtx-4090", **said}).scenario.task == "pretrain"


def test_what_reads_and_writes_nothing_embeds_texts_first_and_has_the_same_default() -> None:
    found = answer({"model": "bert-base", "device": "rtx-3060"})
    assert found.scenario.task == "pretrain"
    assert isinstance(found.uses, tuple)
    assert [use.label for use in found.uses] == ["embedding", "LoRA", "full fine-tuning", "pre-training"]
    assert bare_answer({"model": "bert-base", "device": "rtx-3060", "prompt": 128}).scenario.task == "inference"


def test_a_server_that_is_asked_for_gets_no_list_of_uses() -> None:
    assert not isinstance(answer({**LLAMA, "engine": "vllm"}).uses, tuple)
    assert isinstance(answer({**LLAMA, "lora_rank": 8}).uses, tuple)


def test_launches_and_inverse_questions_take_the_same_task() -> None:
    assert prepared(LLAMA, launcher("vllm"), catalog()).estimate.scenario.task == "inference"
    found = solved("max-context", {**LLAMA, "engine": "llama.cpp"}, catalog())
    assert "context" in found.answer and "--task inference" in found.notes[0]

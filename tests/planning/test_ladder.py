"""The ladder: what a model can do on a device, whatever was asked of it."""

from __future__ import annotations

import pytest

from llmfeas import estimate
from llmfeas.options import BY_NAME
from llmfeas.planning.answer import answer, bare_answer


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
    # Megatron's adapters have a base in 16 bits
    status = {rung.status for rung in found.ladder if (rung.task, asked.get("engine")) != ("qlora", "megatron")}
    assert status == {"feasible"}


ASKS: tuple[dict[str, object], ...] = (
    {"model": "llama-3-8b", "device": "rtx-4090", "task": "qlora"},
    {"model": "llama-3-8b", "device": "rtx-4090", "task": "finetune", "seq_len": 1024, "optimizer": "adamw-8bit"},
    {"model": "gemma-3-27b", "device": "rtx-4090", "task": "inference"},
    {"model": "gemma-3-27b", "device": "rtx-3060", "task": "inference"},
    {"model": "qwen2.5-14b", "device": "m4-max-40c", "task": "lora"},
    {"model": "qwen2.5-14b", "device": "m4-max-40c", "task": "inference", "context": 32768},
    {"model": "llama-3-70b", "device": "4xl40s", "task": "inference", "concurrency": 32, "context": 8192},
    {"model": "llama-3-70b", "device": "4xl40s", "task": "inference", "concurrency": 32, "quant": "fp8"},
    {"model": "deepseek-v3", "device": "8xh200", "task": "inference"},
    {"model": "llama-3-70b", "device": "256xh100-sxm", "task": "pretrain"},
    {"model": "qwen2.5-7b", "device": "rtx-4060", "task": "inference", "concurrency": 16, "engine": "vllm"},
    {"model": "llama-2-7b", "device": "tpu-v5e", "task": "lora"},
)


@pytest.mark.parametrize("asked", ASKS, ids=str)
def test_a_rung_is_the_answer_to_the_same_question_with_another_task_or_format(asked: dict[str, object]) -> None:
    for rung in answer(asked, remedies=False).ladder:
        meant = {name: value for name, value in asked.items() if rung.task in BY_NAME[name].tasks}
        if rung.task != "inference" and asked.get("engine") == "vllm":
            del meant["engine"]
        again = answer({**meant, "task": rung.task, "quant": rung.quant}, ladder=False, remedies=False)
        assert (again.verdict.status, again.memory.peak_bytes.expected) == (rung.status, rung.peak_bytes), rung.label


@pytest.mark.parametrize("asked", ASKS, ids=str)
def test_the_rung_of_what_was_asked_is_the_answer(asked: dict[str, object]) -> None:
    found = answer(asked, remedies=False)
    scenario = found.scenario
    own = [rung for rung in found.ladder if (rung.task, rung.quant) == (scenario.task, scenario.quant)]
    expected = found.memory.peak_bytes.expected
    assert [(rung.status, rung.peak_bytes) for rung in own] == [(found.verdict.status, expected)]


@pytest.mark.parametrize("asked", ASKS, ids=str)
def test_fewer_bits_never_need_more(asked: dict[str, object]) -> None:
    rungs = [rung for rung in answer(asked, remedies=False).ladder if rung.task == "inference"]
    served = [(rung.peak_bytes or 0.0) + rung.host_bytes for rung in rungs]
    assert len(served) >= 3
    assert served == sorted(served, reverse=True)


@pytest.mark.parametrize(("model", "device"), [("kimi-k3", "t1000-4gb"), ("gpt-oss-20b", "rtx-4090")])
def test_weights_published_in_four_bits_are_a_rung_of_four_bits(model: str, device: str) -> None:
    found = answer({"model": model, "device": device, "task": "lora"})
    served = {rung.label: rung.quant for rung in found.ladder if rung.task == "inference"}
    assert served == {"inference, 4 bits": "mxfp4"}


def test_a_training_rung_says_its_batch_which_may_be_why_it_needs_more() -> None:
    found = answer({"model": "llama-3-8b", "device": "rtx-4090", "task": "lora"}, remedies=False)
    assert [rung.micro_batch for rung in found.ladder] == [1, 1, 1, 2, None, None, None]


def test_a_rung_that_fits_says_what_stands_against_it() -> None:
    rungs = answer({"model": "llama-3.1-8b", "device": "8xh100-sxm", "task": "lora"}, remedies=False).ladder
    assert {rung.task: rung.because for rung in rungs}["pretrain"] == "impractical"
    rungs = answer({"model": "llama-3-8b", "device": "rtx-4090", "task": "lora"}, remedies=False).ladder
    assert not any(rung.because for rung in rungs), "these do not fit, or they do"


@pytest.mark.parametrize(("task", "loss"), [("dpo", "DPO"), ("dpo", "KTO"), ("grpo", "GRPO")])
def test_a_task_with_an_objective_has_rungs_of_its_own(task: str, loss: str) -> None:
    asked = {"model": "qwen2.5-7b", "device": "rtx-4090", "task": task, "loss": loss.lower()}
    found = answer(asked, remedies=False)
    own = [rung for rung in found.ladder if rung.task == task]
    assert [rung.label for rung in own] == [loss, f"{loss} with LoRA", f"{loss} with QLoRA"]
    assert (own[0].status, own[0].peak_bytes) == (found.verdict.status, found.memory.peak_bytes.expected)
    assert own[0].peak_bytes and own[1].peak_bytes and own[0].peak_bytes > own[1].peak_bytes
    for rung in own:
        again = bare_answer({**asked, "adapters": rung.adapters})
        assert (again.verdict.status, again.memory.peak_bytes.expected) == (rung.status, rung.peak_bytes)


def test_what_only_reads_is_not_made_anew() -> None:
    found = answer({"model": "bert-base", "device": "rtx-3060", "task": "lora"}, remedies=False)
    labels = [rung.label for rung in found.ladder]
    assert labels[:2] == ["fine-tune", "LoRA"]


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "llama-3.1-8b", "device": "rtx-4090", "task": "lora"},
        {"model": "qwen3-8b", "device": "rtx-4090"},
        {"model": "gpt2-xl", "device": "rtx-4070ti", "task": "pretrain"},
        {"model": "llama-3-8b", "device": "m2-ultra", "task": "lora"},
    ],
)
def test_an_answer_asked_again_has_the_same_ladder_uses_and_remedies(asked: dict[str, object]) -> None:
    first = estimate(**asked).to_dict()
    again = estimate(**first["inputs"]).to_dict()
    assert again["result"] == first["result"]
    assert again["warnings"] == first["warnings"]

"""Formats that do not reach experts which public code stacks in one tensor."""

from __future__ import annotations

import pytest

from llmfeas.planning.answer import answer, bare_answer

NOTE = (
    "experts are counted in nf4, as transformers 4 and Unsloth hold them; bitsandbytes under transformers 5 leaves "
    "them in 16 bits: 62.3 GiB more in all (--transformers 5)"
)


def notes(**asked: object) -> list[str]:
    found = bare_answer({"model": "mixtral-8x7b", "device": "h200", "task": "qlora", "micro_batch": 1, **asked})
    return [note.message for note in found.warnings if note.code == "experts-in-16-bits"]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"num_devices": 4},
        {"engine": "pytorch-kbit"},
        {"task": "inference", "quant": "nf4", "engine": "transformers"},
    ],
    ids=str,
)
def test_what_today_s_public_code_takes_more_is_said(asked: dict[str, object]) -> None:
    assert notes(**asked) == [NOTE]


@pytest.mark.parametrize(
    "asked",
    [
        {"engine": "unsloth"},
        {"quant": "gptq-int4"},
        {"model": "llama-3-8b"},
        {"task": "lora"},
        {"task": "inference", "quant": "nf4", "engine": "vllm"},
        {"task": "inference", "quant": "q4_k_m"},
    ],
    ids=str,
)
def test_nothing_is_said_where_the_format_reaches_all(asked: dict[str, object]) -> None:
    assert notes(**asked) == []


def test_a_release_decides_what_experts_hold_in_figures_verdict_and_ladder() -> None:
    """Under transformers 5 bitsandbytes leaves stacked experts in 16 bits: weights, verdict and ladder say so.

    Adapters of stacks take 0.5 GiB more than those of experts that are modules.
    """
    ask = {"model": "mixtral-8x7b", "device": "h100-sxm", "task": "qlora", "micro_batch": 1}
    older, newer = (bare_answer({**ask, "transformers": release}) for release in ("4", "5"))
    more = newer.memory.components["weights_bytes"] - older.memory.components["weights_bytes"]
    assert more / 2**30 == pytest.approx(62.3 + 0.5, abs=0.1)
    assert (older.verdict.memory, newer.verdict.memory) == ("fits", "exceeds")
    assert bare_answer(ask).memory == older.memory
    ladder = {rung.task: rung.status for rung in answer({**ask, "task": "lora", "transformers": "5"}).ladder}
    assert ladder["qlora"] == "infeasible"


def test_a_release_means_nothing_to_software_with_code_of_its_own() -> None:
    found = bare_answer(
        {"model": "mixtral-8x7b", "device": "h200", "task": "qlora", "engine": "unsloth", "transformers": "5"}
    )
    assert "option-unused" in {note.code for note in found.warnings}


def test_experts_in_fp32_are_said_where_autocast_leaves_them_out() -> None:
    ask = {"model": "granite-3.0-1b-a400m", "device": "h100-sxm", "task": "finetune", "seq_len": 1024}

    def said(**asked: object) -> list[str]:
        return [note.message for note in bare_answer({**ask, **asked}).warnings if note.code == "experts-in-fp32"]

    assert said() == [
        "transformers 5 multiplies experts in the type that holds them, fp32 under bf16-mixed: --precision bf16 keeps "
        "them in 16 bits and is faster, but small updates are lost"
    ]
    assert not said(precision="bf16")
    assert not said(task="lora")
    assert not said(engine="megatron")
    assert not said(model="qwen3-0.6b")


def test_axolotl_quantizes_stacks_itself() -> None:
    """Under transformers 5 its experts are in few bits, as its `quantize_moe_experts` says: nothing waits in 16."""
    ask = {"model": "olmoe-1b-7b", "device": "rtx-3090", "task": "qlora", "engine": "axolotl", "seq_len": 2048}
    asked = {**ask, "lora_targets": "attention", "micro_batch": 1, "global_batch": 1}
    found = bare_answer(asked)
    assert found.scenario.transformers == "5"
    assert "experts-in-16-bits" not in {note.code for note in found.warnings}
    assert found.memory.components["weights_bytes"] < 5e9


def test_nf4_without_double_quantization_holds_constants_in_fp32() -> None:
    """4 bytes for 64 weights instead of one and a bit: 0.37 bits a weight."""
    ask = {"model": "llama-3-8b", "device": "rtx-4090", "task": "qlora", "engine": "pytorch"}
    single, double = (bare_answer({**ask, "quant": quant}) for quant in ("nf4-single", "nf4"))
    more = single.memory.components["weights_bytes"] - double.memory.components["weights_bytes"]
    assert more == pytest.approx(6.98e9 * 0.373 / 8, rel=0.02)

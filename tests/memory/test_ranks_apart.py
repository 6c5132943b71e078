"""Whose tokens a rank computes: of those that share an expert with it, and in a pipeline of the part that it has."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.memory.peak import memory
from llmfeas.memory.training import training_memory, training_plan
from llmfeas.settle import resolution

MIXTURE = {"model": "qwen3-30b-a3b", "task": "pretrain", "engine": "megatron", "micro_batch": 1, "global_batch": 64}


def activations(**asked: object) -> float:
    ask = {**MIXTURE, "device": "8xh200", "checkpointing": "none", "seq_len": 4096, **asked}
    return training_memory(resolution(ask, catalog()).scenario).components["activations_bytes"]


def test_tensor_ranks_with_experts_of_their_own_route_their_own_tokens_alone() -> None:
    """Halves of experts see all tokens, whole ones half of them: between gate and down that is the same. The inputs of
    8 experts and of the router are kept for half of the tokens.
    """
    shared, own = activations(tp=2, ep=4), activations(tp=2, ep=8)
    layers, tokens, hidden = 48, 4096, 2048
    assert shared - own == pytest.approx(layers * tokens / 2 * (8 + 1) * hidden * 2, rel=0.03)


@pytest.mark.parametrize(
    ("model", "more", "measured"),
    [
        ("deepseek-v2-lite", {"seq_len": 6144, "micro_batch": 4, "global_batch": 32, "checkpointing": "none"}, 168.6e9),
        (
            "qwen3-30b-a3b",
            {"seq_len": 8192, "micro_batch": 8, "global_batch": 64, "checkpointing": "selective"},
            152.2e9,
        ),
    ],
)
def test_torchtitan_weighs_what_experts_gave_in_fp32_and_keeps_it(
    model: str, more: dict[str, object], measured: float
) -> None:
    """As two of its users measured on eight B200 (data/measurements/autumn_2026.yaml); a quarter was missing of the
    first while rows were taken to be weighed between their products, as Megatron does.
    """
    asked = {"model": model, "device": "8xb200", "task": "pretrain", "engine": "torchtitan", "tp": 1, "ep": 1, **more}
    found = memory(resolution(asked, catalog()).scenario).memory.peak_bytes.expected
    assert found == pytest.approx(measured, rel=0.08)


def test_a_loss_that_is_written_out_holds_12_bytes_a_logit_and_one_in_parts_hardly_any() -> None:
    shape = {"model": "llama-3-8b", "device": "8xh100-sxm", "task": "pretrain", "micro_batch": 2, "seq_len": 8192}
    logits = 2 * 8192 * 128256
    held = [
        training_memory(resolution({**shape, "checkpointing": "full", "engine": engine}, catalog()).scenario).bytes
        for engine in ("torchtitan", "torchtitan-2024")
    ]
    assert 9.5 * logits < held[1] - held[0] < 12 * logits


def test_the_last_stage_of_a_pipeline_that_cuts_its_batch_holds_one_part_of_it() -> None:
    ask = {
        "model": "llama-3.1-70b",
        "device": "512xh100-sxm",
        "task": "pretrain",
        "engine": "torchtitan",
        "seq_len": 8192,
    }
    ask |= {"tp": 8, "pp": 8, "micro_batch": 32, "global_batch": 256, "checkpointing": "full"}
    first, *_, last = training_plan(resolution(ask, catalog()).scenario).ranks
    assert last.peak(32, 8192).bytes == last.peak(25, 8192).bytes < last.peak(33, 8192).bytes
    assert first.peak(25, 8192).bytes < first.peak(32, 8192).bytes

"""The laws that an expert expects of any answer hold, and the page shows the table that is checked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.laws import ALWAYS, LAWS, TRAINING, Law, broken, broken_alone, drawn, page
from llmfeas.errors import LlmfeasError
from llmfeas.planning.answer import bare_answer
from llmfeas.record import replace
from llmfeas.timing.inference import InferenceTime

EXAMPLES = int(os.environ.get("LLMFEAS_LAWS", "8"))
PAGE = Path(__file__).parents[1] / "docs" / "laws.md"


def test_the_page_shows_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m fuzz.laws writes it anew"
    assert len({law.name for law in LAWS} | set(ALWAYS)) == len(LAWS) + len(ALWAYS)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**32))
def test_a_law_holds(law: Law, seed: int) -> None:
    assert not broken(law, drawn(seed, law.tasks)), f"seed {seed}"


@pytest.mark.parametrize(
    "law, ask",
    [
        (
            "requests together",
            {
                "model": "nemotron-3-nano-4b",
                "device": "epyc-7281",
                "precision": "fp32",
                "engine": "sglang",
                "quant": "q4_k_m",
            },
        ),
        (
            "more sequences",
            {"model": "falcon-40b", "device": "rtx-4090", "task": "pretrain", "num_devices": 64, "pp": 2},
        ),
        (
            "pure 16 bits",
            {
                "model": "llama-3-8b",
                "device": "h100-sxm",
                "task": "dpo",
                "num_devices": 64,
                "zero": 2,
                "micro_batch": 1,
            },
        ),
        ("longer requests", {"model": "mistral-small-3.2-24b", "device": "gtx-1650-super", "engine": "llama.cpp"}),
        (
            "pure 16 bits",
            {"model": "lfm2-1.2b", "device": "mi325x", "task": "pretrain", "engine": "unsloth", "micro_batch": 2},
        ),
        (
            "pure 16 bits",
            {"model": "qwen3-vl-2b", "device": "b200", "task": "pretrain", "engine": "unsloth", "optimizer": "lion"},
        ),
    ],
)
def test_questions_that_once_broke_a_law(law: str, ask: dict[str, object]) -> None:
    assert not broken(next(each for each in LAWS if each.name == law), {"task": "inference", **ask})


@settings(max_examples=5 * EXAMPLES)
@given(seed=st.integers(0, 2**32))
def test_what_one_answer_must_be(seed: int) -> None:
    try:
        found = bare_answer(drawn(seed, (*TRAINING, "inference")))
    except LlmfeasError:
        return
    assert not broken_alone(found), f"seed {seed}"


def test_an_encoder_that_reads_fast_breaks_no_law() -> None:
    """Two layers read for twelve that write: a prompt is held to what its own layers multiply."""
    ask = {"model": "blenderbot-400m-distill", "device": "2xm1-ultra-48c", "task": "inference", "quant": "fp8"}
    found = bare_answer({**ask, "precision": "fp16", "prompt": 500})
    assert not broken_alone(found)
    assert isinstance(found.time, InferenceTime)
    faster = replace(found.time, prefill_tokens_per_second=found.time.prefill_tokens_per_second.scaled(4))
    assert broken_alone(replace(found, time=faster))


@pytest.mark.parametrize("gives, law", [("adapters", "pure 16 bits"), ("buckets", "gradients that are divided")])
def test_exceptions_are_real(gives: str, law: str) -> None:
    """Without its exceptions the law is broken where the cause says so."""
    ask = {"model": "qwen2.5-1.5b", "device": "8xrtx-4090", "task": "lora", "micro_batch": 1}
    ask = {**ask, "engine": "deepspeed" if gives == "buckets" else "pytorch", "checkpointing": "none"}
    found = next(each for each in LAWS if each.name == law)
    first, second = (bare_answer({**ask, **each}) for each in (found.first, found.second))
    assert found.figure(first) > found.figure(second)
    assert not broken(found, ask)


def test_muon_on_the_host_shows_its_products() -> None:
    from llmfeas.feasibility.explain import explanation

    ask = {"model": "qwen2.5-1.5b", "device": "h100-sxm", "task": "finetune", "optimizer": "muon"}
    here, there = (bare_answer({**ask, "offload": offload}) for offload in ("none", "optimizer"))
    assert there.speed.expected < here.speed.expected
    term = next(each for each in explanation(there) if each.quantity == "time.step.optimizer")
    assert "weights * rounds / host_rate" in term.formula


@pytest.mark.parametrize(
    "settings, code",
    [
        ({"task": "finetune", "offload": "activations", "checkpointing": "selective"}, "selective-stays"),
        ({"task": "lora", "precision": "bf16"}, "adapters-in-fp32"),
        ({"task": "finetune", "model": "recurrentgemma-2b", "checkpointing": "full"}, "states-stay"),
    ],
)
def test_what_saves_no_memory_is_said(settings: dict[str, object], code: str) -> None:
    found = bare_answer({"model": "qwen2.5-1.5b", "device": "h100-sxm", **settings})
    assert code in {note.code for note in found.warnings}

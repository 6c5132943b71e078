"""Which kernels run attention and recurrences of a training, and how long they take."""

from __future__ import annotations

from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.explain import explanation
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution
from llmfeas.timing.attention import attended
from llmfeas.timing.step import step_parts
from llmfeas.timing.training import layout_tokens_per_second
from llmfeas.timing.work import work_of
from llmfeas.workload.kernels import wide_heads

LONG: dict[str, Any] = {"device": "h200", "num_devices": 2, "task": "finetune", "precision": "bf16", "seq_len": 16384}


def settled(**asked: Any) -> Scenario:
    return resolution({**LONG, **asked}, catalog()).scenario


@pytest.mark.parametrize(
    "engine, kernels", [("trl", "all"), ("axolotl", "alone"), ("unsloth", "alone"), ("megatron", "written")]
)
def test_heads_too_wide_for_flash_kernels_go_to_what_the_engine_has(engine: str, kernels: str) -> None:
    scenario = settled(model="gemma-4-26b-a4b", engine=engine)
    assert wide_heads(scenario) == kernels
    found, plain = attended(work_of(scenario), fused=True), settled(model="gemma-3-12b", engine=engine)
    assert wide_heads(plain) == "fused"
    assert bool(found.wide) == (kernels != "written") and bool(found.written_layers) == (kernels == "written")


def test_one_kernel_for_all_layers_computes_all_that_windows_leave_out() -> None:
    whole, apart = (settled(model="gemma-4-26b-a4b", engine=engine, zero=2) for engine in ("trl", "axolotl"))
    assert attended(work_of(whole), fused=True).wide > 4 * attended(work_of(apart), fused=True).wide
    # verl's pull request 7131: 1.88 times the time of an update where sliding layers had the kernel for wide heads too
    assert step_parts(whole)["attention"] > 3 * step_parts(apart)["attention"]


def test_recurrences_have_time_of_their_own_where_kernels_run_them() -> None:
    ask: dict[str, Any] = {"model": "qwen3.5-4b", "task": "lora", "seq_len": 2048, "num_devices": 1}
    kernels, written = (settled(**ask, engine=engine) for engine in ("pytorch-fla", "pytorch"))
    assert step_parts(kernels)["recurrence"] > step_parts(kernels)["attention"]
    assert step_parts(written)["recurrence"] == 0
    assert step_parts(settled(**{**ask, "model": "llama-3.1-8b"}))["recurrence"] == 0


@pytest.mark.parametrize(
    "asked, quantity",
    [
        ({"model": "gemma-4-26b-a4b", "engine": "trl"}, "time.step.attention"),
        ({"model": "gemma-4-26b-a4b", "engine": "megatron"}, "time.step.attention"),
        ({"model": "nemotron-3-nano-30b-a3b", "engine": "megatron"}, "time.step.recurrence"),
    ],
)
def test_what_is_derived_says_how_long_each_kernel_takes(asked: dict[str, Any], quantity: str) -> None:
    found = estimate(resolution({**LONG, **asked}, catalog()))
    term = next(each for each in explanation(found) if each.quantity == quantity)
    inputs = {each.name: each.value for each in term.inputs}
    assert eval(term.formula, {"__builtins__": {}}, inputs) == pytest.approx(term.value)


def test_power_sets_the_pace_of_two_cards_of_alike_peaks() -> None:
    ask: dict[str, Any] = {"model": "llama-3.1-8b", "task": "pretrain", "engine": "megatron", "precision": "fp8-mixed"}
    ask |= {"num_devices": 8, "seq_len": 8192, "micro_batch": 2, "checkpointing": "none", "tp": 1, "pp": 1}
    less, more = (layout_tokens_per_second(settled(**{**ask, "device": device})) for device in ("gb200", "gb300"))
    assert 1.1 < more / less < 1400 / 1200 + 1e-9

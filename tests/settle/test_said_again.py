"""A value has one meaning, whoever says it: what an answer chose changes nothing where a person says it."""

from __future__ import annotations

import pytest

import llmfeas
from fuzz.agreement import _said
from llmfeas.catalog.store import catalog
from llmfeas.errors import LlmfeasError
from llmfeas.feasibility.inputs import inputs
from llmfeas.planning.answer import bare_answer
from llmfeas.settle import resolving as settle

ASKS = (
    {"model": "granite-3.0-3b-a800m", "device": "rtx-5090d-v2", "task": "inference", "concurrency": 64},
    {"model": "gopher-1.4b", "device": "rx-6600", "task": "pretrain", "num_devices": 64},
    {"model": "bge-m3", "device": "a100-pcie-80gb", "task": "finetune", "num_devices": 256, "memory": "12GiB"},
    {"model": "falcon3-1b", "device": "rx-6750xt", "task": "grpo", "num_devices": 256, "offload": "optimizer"},
    {"model": "deepseek-r1", "device": "l4", "task": "finetune", "num_devices": 256, "zero": 2},
    {"model": "smallthinker-4b-a0.6b", "device": "rtx-3050-4gb", "task": "pretrain", "num_devices": 256, "zero": 0},
    {"model": "mimo-v2-flash", "device": "quadro-p5000", "task": "inference", "context": 32768, "concurrency": 16},
    {"model": "phi-mini-moe", "device": "standard-nv4ads-v710-v5", "task": "inference"},
    {"model": "qwen3.6-35b-a3b", "device": "gtx-1660ti", "task": "inference", "engine": "llama.cpp", "concurrency": 64},
    {"model": "spark-x2.5-1.7b", "device": "a800-pcie-80gb", "task": "inference", "num_devices": 64, "rate": 0.5},
    {"model": "devstral-small", "device": "arc-pro-a40", "task": "embed"},
    {"model": "qwen3-8b", "device": "h100-sxm", "task": "embed", "num_devices": 8, "tp": 2, "cp": 2},
)
LAYOUT = ("tp", "pp", "ep", "zero", "micro_batch", "global_batch", "engine", "gpu_layers", "n_cpu_moe", "lora_rank")


@pytest.mark.parametrize("ask", ASKS, ids=lambda ask: f"{ask['model']} {ask['task']}")
def test_what_was_chosen_may_be_said(ask: dict[str, object]) -> None:
    found = bare_answer(ask)
    for name in LAYOUT:
        value = inputs(found.scenario)[name]["value"]
        if name in ask or value is None:
            continue
        said = bare_answer({**ask, name: value})
        assert inputs(said.scenario)[name] == {"value": value, "origin": "given"}
        assert said.memory.peak_bytes == found.memory.peak_bytes, name
        assert (said.verdict.status, said.speed) == (found.verdict.status, found.speed), name
    assert list(_said(ask)) == []


SPREADS = (
    {"tp": 2, "pp": 2},
    {"tp": 8, "micro_batch": 2},
    {"pp": 3, "interleave": 2},
    {"zero": 3, "micro_batch": 1, "global_batch": 64},
    {"tp": 1, "pp": 1, "micro_batch": 4},
    {"ep": 2, "global_batch": 512},
    {"micro_batch": 3},
    {"pp": 64},
)


@pytest.mark.parametrize("spread", SPREADS, ids=str)
@pytest.mark.parametrize("model", ["llama-3-8b", "mixtral-8x7b"])
@pytest.mark.parametrize("ask", [{"num_devices": 12, "task": "finetune"}, {"num_devices": 128, "task": "pretrain"}])
def test_what_cannot_come_out_is_not_weighed_and_nothing_else(
    ask: dict[str, object], model: str, spread: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {**ask, **spread, "model": model, "device": "h100-sxm"}
    quick = _settled(asked)
    monkeypatch.setattr(settle.said, "may_choose", lambda *_: True)
    assert _settled(asked) == quick


def _settled(asked: dict[str, object]) -> object:
    try:
        found = settle.resolution(asked, catalog())
    except LlmfeasError as error:
        return error.message
    return inputs(found.scenario), found.warnings


@pytest.mark.parametrize("tp", [1, 2])
def test_a_server_is_spread_in_stages_that_divide_its_devices(tp: int) -> None:
    """40 layers over 64 devices: 32 stages a copy, not 40."""
    ask = {"model": "magistral-small", "device": "trainium2", "task": "inference", "num_devices": 64}
    found = bare_answer({**ask, "engine": "exllamav3", "quant": "none", "tp": tp}).scenario
    assert (found.tp, found.pp) == (tp, 32)


def test_what_decides_nothing_has_no_value() -> None:
    ask = {"model": "qwen2.5-1.5b", "device": "h100-sxm", "task": "dpo"}
    assert inputs(bare_answer(ask).scenario)["lora_rank"]["value"] is None
    assert inputs(bare_answer({**ask, "adapters": "lora"}).scenario)["lora_rank"]["value"] == 16
    load = {"model": "qwen2.5-1.5b", "device": "h100-sxm", "task": "inference", "rate": 1}
    assert inputs(bare_answer(load).scenario)["concurrency"]["value"] is None
    assert inputs(bare_answer({**load, "concurrency": 1}).scenario)["concurrency"]["value"] == 1


def test_a_value_that_cannot_be_is_refused_still() -> None:
    with pytest.raises(LlmfeasError, match="or a multiple of that"):
        bare_answer({"model": "gpt2", "device": "h100-sxm", "task": "pretrain", "num_devices": 8, "tp": 3})


def test_a_context_that_a_models_name_says_is_said_again() -> None:
    request = {"model": "Qwen/Qwen3-4B-Instruct-2507", "device": "h100-sxm", "task": "inference", "prompt": 60000}
    first = llmfeas.estimate(**request).to_dict()
    again = llmfeas.estimate(**first["inputs"]).to_dict()
    assert first["inputs"]["model_context"] == {"value": 262144, "origin": "given"}
    assert "beyond-context" not in {note["code"] for note in first["warnings"] + again["warnings"]}
    assert again["inputs"] == first["inputs"]


def test_a_context_of_ones_own_is_taken_for_the_models() -> None:
    request = {"model": "qwen2.5-7b", "device": "h100-sxm", "task": "inference", "prompt": 200_000}
    asked = (request, {**request, "model_context": "1m"})
    codes = [{note["code"] for note in llmfeas.estimate(**each).to_dict()["warnings"]} for each in asked]
    assert ["beyond-context" in each for each in codes] == [True, False]

"""What Ollama takes where nobody says."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.feasibility.core import estimate
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution

ASKED: dict[str, object] = {"model": "qwen3-8b", "task": "inference", "engine": "ollama", "quant": "q4_k_m"}


def settled(**more: object) -> Scenario:
    return resolution({**ASKED, **more}, catalog()).scenario


@pytest.mark.parametrize(
    ("device", "context"),
    [
        ("rtx-4070ti", 4096),
        ("rtx-4090", 32768),
        ("2xrtx-3090", 40960),  # all that the model was trained for
        ("ryzen-9-7950x", 4096),  # no card
    ],
)
def test_the_context_follows_the_memory_of_all_cards(device: str, context: int) -> None:
    found = settled(device=device)
    assert found.context == context
    assert (found.concurrency, found.attention) == (1, "flash")
    assert settled(device=device, context=8192).context == 8192


def test_macs_count_what_metal_lets_a_process_have() -> None:
    sizes = {gib: settled(device="m2-ultra", memory=f"{gib}GiB").context for gib in (16, 32, 64)}
    assert sizes == {16: 4096, 32: 32768, 64: 40960}


def test_releases_before_2026_gave_every_card_the_same() -> None:
    assert settled(device="rtx-4090", engine_version="0.15.4").context == 4096
    assert settled(device="rtx-4090", engine_version="0.15.5").context == 32768


@pytest.mark.parametrize(
    ("name", "model", "quant"),
    [
        ("llama3.1", "llama-3.1-8b", "q4_k_m"),
        ("qwen3-8b", "qwen3-8b", "q4_k_m"),
        ("gpt-oss", "gpt-oss-20b", "mxfp4"),
        ("qwen3-coder", "qwen3-coder-30b-a3b", "q4_k_m"),
        ("deepseek-r1", "deepseek-r1-0528-qwen3-8b", "q4_k_m"),
        ("deepseek-r1:671b", "deepseek-r1", "q4_k_m"),
        ("gemma4", "gemma-4-e4b", "q4_k_m"),
        ("unsloth/Qwen3-8B-GGUF", "qwen3-8b", "none"),
    ],
)
def test_names_are_those_of_its_library(name: str, model: str, quant: str) -> None:
    asked = {"model": name, "device": "h100", "task": "inference", "engine": "ollama"}
    found = resolution(asked, catalog()).scenario
    assert (found.model.id, found.quant) == (model, quant)
    held = "mxfp4" if quant == "mxfp4" else "q8_0"
    assert resolution({**asked, "quant": "q8_0"}, catalog()).scenario.quant == held


def test_other_engines_take_a_bare_name_for_the_model_of_that_name() -> None:
    asked = {"model": "qwen3-coder", "device": "8xh200", "task": "inference", "engine": "vllm"}
    assert resolution(asked, catalog()).scenario.model.id == "qwen3-coder-480b-a35b"


@pytest.mark.parametrize(
    ("device", "more", "engine"),
    [
        ("rx-6700xt", {}, "ollama-vulkan"),  # gfx1031, which its ROCm build does not name
        ("rx-580", {}, "ollama-vulkan"),
        ("arc-b580", {}, "ollama-vulkan"),
        ("rx-5700xt", {}, "ollama"),
        ("rx-7900xtx", {}, "ollama"),
        ("rx-6700xt", {"engine_version": "0.15.4"}, "ollama-2025"),
    ],
)
def test_cards_that_its_rocm_build_does_not_name_run_by_vulkan(
    device: str, more: dict[str, object], engine: str
) -> None:
    found = settled(device=device, **more)
    assert found.engine == engine
    assert (found.engine_record.serving.speed.backend == "vulkan") is (engine == "ollama-vulkan")


def test_what_rocm_lacks_is_no_reason_against_vulkan() -> None:
    def reasons(device: str, engine: str) -> list[str]:
        found = estimate(resolution({**ASKED, "device": device, "engine": engine}, catalog()))
        assert found.verdict.status == "feasible" or engine == "llama.cpp"
        return [reason.message for reason in found.verdict.reasons]

    assert any("HSA_OVERRIDE_GFX_VERSION" in reason for reason in reasons("rx-6700xt", "llama.cpp"))
    assert not any("ROCm" in reason or "HSA" in reason for reason in reasons("rx-6700xt", "ollama"))
    assert not any("ROCm" in reason for reason in reasons("rx-580", "ollama"))

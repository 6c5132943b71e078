"""Causes of speed that no bandwidth tells: rings over PCIe, filled rows, loops over experts, hosts, builds."""

from __future__ import annotations

from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.result import Estimate
from llmfeas.settle import resolution
from llmfeas.timing.inference import InferenceTime


def served(model: str, device: str, **more: Any) -> Estimate:
    return estimate(resolution({"model": model, "device": device, "task": "inference", **more}, catalog()))


def timed(model: str, device: str, **more: Any) -> InferenceTime:
    found = served(model, device, **more).time
    assert isinstance(found, InferenceTime)
    return found


def written(model: str, device: str, **more: Any) -> float:
    return timed(model, device, **more).decode_tokens_per_second.expected


def test_an_indexer_leaves_little_of_a_long_cache_to_read() -> None:
    short, long = (
        [
            timed(name, "8xh200", engine="vllm", quant="fp8", prompt=tokens, context=tokens + 1)
            for name in ("deepseek-v3", "deepseek-v3.2")
        ]
        for tokens in (1024, 128_000)
    )
    assert long[1].decode_parts["cache"] < long[0].decode_parts["cache"] / 2
    assert short[1].decode_parts["cache"] > short[0].decode_parts["cache"]
    assert long[1].prefill_parts["attention"] < long[0].prefill_parts["attention"] / 2


def waits(cards: int, device: str, engine: str) -> float:
    asked: dict[str, Any] = {"num_devices": cards, "tp": cards, "pp": 1, "engine": engine, "quant": "none"}
    return timed("llama-3.1-8b", device, **asked).decode_parts["link"]


def test_every_card_on_pcie_makes_the_sum_over_all_of_them_slower() -> None:
    pair, four, eight = (waits(cards, "rtx-4090", "vllm-2023") for cards in (2, 4, 8))
    assert four - pair == pytest.approx((eight - four) / 2, rel=0.1)
    assert eight > 2 * pair
    joined = waits(8, "h100-sxm", "vllm") / waits(2, "h100-sxm", "vllm")
    assert joined < eight / pair


def test_graphs_of_2025_wait_less_over_pcie() -> None:
    """35 published runs of 2026 were computed at 0.72 of their speed with the sums of 2023."""
    for cards in (2, 4, 8):
        assert waits(cards, "rtx-4090", "vllm") < 0.7 * waits(cards, "rtx-4090", "vllm-2023")


def test_a_card_with_little_compute_for_its_bandwidth_waits_for_products_of_16_bits() -> None:
    """H20 beside H100: Qwen3-32B was published at 20.7 tokens/s in bf16 and at 46.2 in fp8."""
    bf16, fp8 = (written("qwen3-32b", "h20", engine="sglang", quant=each) for each in ("none", "fp8"))
    assert 17 < bf16 < 25
    assert 38 < fp8 < 56
    waits = [timed("qwen3-32b", card, engine="sglang", quant="none").decode_parts for card in ("h20", "h100-sxm")]
    assert waits[0]["compute"] > 0.3 * waits[0]["weights"]
    assert waits[1]["compute"] < 1e-9


def test_transformers_4_visits_every_expert() -> None:
    asked = {"engine": "transformers", "quant": "none"}
    loops, stacks = (written("qwen3-30b-a3b", "a100-sxm-80gb", transformers=each, **asked) for each in ("4", "5"))
    assert loops < 3 < 5 * loops < stacks
    four, five = (written("qwen3-8b", "a100-sxm-80gb", transformers=each, **asked) for each in ("4", "5"))
    assert four == pytest.approx(five, rel=0.02)


def test_small_cores_launch_kernels_slowly() -> None:
    """Llama 2 7B under transformers on a Jetson: 6.2 tokens/s in 16 bits, 10.3 with GPTQ."""
    half, four = (
        written("llama-2-7b", "jetson-agx-orin-64gb", engine="transformers", quant=each)
        for each in ("none", "gptq-int4")
    )
    assert 5 < half < 8.5
    assert 8 < four < 13


def test_experts_on_rocm_wait_and_dense_layers_do_not() -> None:
    """Published on 8 MI300X: DeepSeek-V3 at 42 tokens/s under SGLang, Llama 3.1 405B at 36 under vLLM."""
    asked = {"device": "mi300x", "num_devices": 8, "tp": 8, "quant": "fp8", "prompt": 610}
    assert 33 < written("deepseek-v3", engine="sglang", **asked) < 62
    assert 28 < written("llama-3.1-405b", engine="vllm", **asked) < 45


def test_older_builds_are_slower_and_todays_are_the_default() -> None:
    now, then = (
        timed("llama-3.1-8b", "rtx-4090", engine=each, quant="q4_k_m", prompt=512)
        for each in ("llama.cpp", "llama.cpp-2023")
    )
    assert now.decode_tokens_per_second.expected > 1.1 * then.decode_tokens_per_second.expected
    assert now.prefill_tokens_per_second.expected > 1.3 * then.prefill_tokens_per_second.expected
    said = timed("llama-3.1-8b", "rtx-4090", engine="llama.cpp-2025", quant="q4_k_m", prompt=512)
    assert said.decode_tokens_per_second.expected == now.decode_tokens_per_second.expected


@pytest.mark.parametrize(
    ("engine", "build", "meant"),
    [
        ("llama.cpp", "b2891", "llama.cpp-2023"),
        ("llama.cpp-2023", "b2891", "llama.cpp-2023"),
        ("llama.cpp", "b6325", "llama.cpp"),
        ("llama.cpp", "nightly", "llama.cpp"),
        ("ollama", "0.5.7", "ollama-2025"),
        ("llama.cpp-vulkan", "b7600", "llama.cpp-vulkan-2025"),
        ("llama.cpp-vulkan", "b8000", "llama.cpp-vulkan"),
    ],
)
def test_a_build_is_of_its_time(engine: str, build: str, meant: str) -> None:
    asked = {"engine": engine, "quant": "q4_k_m", "engine_version": build}
    assert served("llama-3.1-8b", "rtx-4090", **asked).scenario.engine == meant


def test_old_builds_run_fused_attention_where_it_is_asked_for() -> None:
    asked = {"engine": "llama.cpp", "quant": "q4_k_m", "engine_version": "b2891"}
    assert served("llama-3.1-8b", "rtx-4090", **asked).scenario.attention == "eager"
    assert served("llama-3.1-8b", "rtx-4090", **asked, attention="flash").scenario.attention == "flash"
    assert served("llama-3.1-8b", "rtx-4090", **asked, kv_dtype="q8_0").scenario.attention == "flash"


def test_prompts_on_a_processor_go_by_the_kernels_of_their_format() -> None:
    """llama.cpp b4384 and ik_llama.cpp of 2024-12 on a Ryzen 9 7950X: 153.5, 82.6, 30.2 and 259 tokens/s."""
    published = {
        ("llama.cpp-2023", "q4_0"): 153.5,
        ("llama.cpp-2023", "q6_k"): 82.6,
        ("llama.cpp-2023", "iq3_s"): 30.2,
        ("ik_llama.cpp", "q6_k"): 259.2,
    }
    for (engine, quant), speed in published.items():
        found = timed("llama-3.1-8b", "ryzen-9-7950x", engine=engine, quant=quant, prompt=512, context=512)
        assert found.prefill_tokens_per_second.expected == pytest.approx(speed, rel=0.3)
    old, new = (
        timed("llama-3.1-8b", "ryzen-9-7950x", engine=engine, quant="q4_k_m", prompt=512, context=512)
        for engine in ("llama.cpp-2023", "llama.cpp-2025")
    )
    assert new.prefill_tokens_per_second.expected > 1.2 * old.prefill_tokens_per_second.expected


@pytest.mark.parametrize(
    ("model", "device", "quant", "requests", "published"),
    [
        ("llama-3.1-8b", "rtx-4090", "none", 1, 47.5),
        ("qwen2.5-14b", "rtx-4090", "nf4-single", 8, 115.0),
        ("qwen2.5-32b", "h100-sxm", "none", 1, 19.7),
        ("qwen2.5-32b", "h100-sxm", "nf4", 8, 66.2),
        ("llama-3.1-70b", "h100-sxm", "nf4-single", 8, 34.1),
        ("llama-3.1-70b", "h100-sxm", "int8", 1, 5.04),
    ],
)
def test_transformers_run_as_far_as_the_host_lets_them(
    model: str, device: str, quant: str, requests: int, published: float
) -> None:
    """bitsandbytes 0.45: kernels are launched ahead, and 4-bit weights written out where several tokens pass."""
    found = written(model, device, engine="transformers", quant=quant, concurrency=requests, prompt=128, context=384)
    assert found == pytest.approx(published, rel=0.3)


def test_experts_in_gptq_were_launched_one_after_the_other() -> None:
    """Qwen3's tables of SGLang 0.4.6 on H20: 31.3 and 14.7 tokens/s (128 experts a layer)."""
    asked = {"engine": "sglang", "quant": "gptq-int4"}
    older = [
        written("qwen3-30b-a3b", "h20", engine_version="0.4.6.post1", **asked),
        written("qwen3-235b-a22b", "h20", num_devices=4, tp=4, engine_version="0.4.6.post1", **asked),
    ]
    assert older == pytest.approx([31.3, 14.7], rel=0.25)
    assert written("qwen3-30b-a3b", "h20", **asked) > 3 * older[0]
    dense = (written("qwen3-8b", "h20", **{**asked, **said}) for said in ({}, {"engine_version": "0.4.6"}))
    assert len(set(dense)) == 1


@pytest.mark.parametrize(("requests", "published"), [(1, 118.8), (128, 5639.8)])
def test_many_sequences_wait_for_sums_over_the_cards_and_for_the_host(requests: int, published: float) -> None:
    """Llama 3.1 70B in fp8 on 8 MI300X: 2048 tokens after 128 of each of so many, tokens a second with the prompts."""
    asked = {"num_devices": 8, "tp": 8, "quant": "fp8", "engine": "vllm", "prompt": 128, "output": 2048}
    found = timed("llama-3.1-70b", "mi300x", concurrency=requests, **asked)
    assert found.output_tokens_per_second.expected == pytest.approx(published, rel=0.25)
    one, many = (timed("llama-3.1-70b", "mi300x", concurrency=each, **asked).decode_parts for each in (1, 1000))
    assert many["link"] > 3 * one["link"] and many["fixed"] > 3 * one["fixed"]


@pytest.mark.parametrize(("model", "prompt", "published"), [("qwen2.5-7b", 1, 40.4), ("qwen2.5-14b", 30720, 8.2)])
def test_transformers_4_repeats_keys_for_each_head(model: str, prompt: int, published: float) -> None:
    """Qwen2.5's tables of an A100, in 16 bits: a long cache is read, written and read again for every head."""
    asked = {"engine": "transformers", "quant": "none", "prompt": prompt, "output": 2048, "context": prompt + 2048}
    four, five = (timed(model, "a100-sxm-80gb", transformers=each, **asked) for each in ("4", "5"))
    assert four.output_tokens_per_second.expected == pytest.approx(published, rel=0.4)
    assert (five.output_tokens_per_second.expected > 1.3 * four.output_tokens_per_second.expected) == (prompt > 1)


@pytest.mark.parametrize(
    ("device", "quant", "faster"),
    [
        ("b200", "nvfp4", True),
        ("mi355x", "mxfp4", True),
        ("b200", "mxfp4", False),  # beside activations of 8 or 16 bits
        ("h200", "nvfp4a16", False),
    ],
)
def test_products_run_in_the_format_of_the_weights_where_the_device_has_units(
    device: str, quant: str, faster: bool
) -> None:
    def work(format_: str) -> float:
        asked = {"engine": "vllm", "prompt": 512, "context": 1024, "concurrency": 4000}
        parts = timed("llama-3.3-70b", device, quant=format_, **asked).decode_parts
        return parts["compute"] + parts["weights"] + parts["cache"]

    assert (work(quant) < work("none") / 2) is faster


def test_choosing_what_to_read_costs_launches_in_servers() -> None:
    def fixed(model: str, engine: str) -> float:
        return timed(model, "8xh200", engine=engine, prompt=1024, context=1025).decode_parts["fixed"]

    assert fixed("deepseek-v3.2", "vllm") > 1.3 * fixed("deepseek-v3", "vllm")


def test_graphics_of_a_processor_launch_later_than_a_card() -> None:
    asked = {"engine": "llama.cpp-vulkan", "quant": "q4_k_m", "prompt": 0, "context": 128}
    card, apu = (timed("qwen3-4b", device, **asked).decode_parts["fixed"] for device in ("rx-9070xt", "strix-halo"))
    assert apu > card


def reads(device: str, engine: str, quant: str = "q4_k_m", prompt: int = 512) -> float:
    asked: dict[str, Any] = {"engine": engine, "quant": quant, "prompt": prompt, "context": prompt}
    return timed("llama-3.1-8b", device, **asked).prefill_tokens_per_second.expected


def test_vulkan_learnt_tiles_of_matrix_units_of_amd_in_2026() -> None:
    """Pull request 18749 of llama.cpp: 1.36 to 1.76 times as fast on a Radeon 8060S; others as before."""
    assert 1.3 < reads("strix-halo", "llama.cpp-vulkan") / reads("strix-halo", "llama.cpp-vulkan-2025") < 1.9
    for card in ("rtx-4090", "rx-6900xt"):
        assert reads(card, "llama.cpp-vulkan") == reads(card, "llama.cpp-vulkan-2025")


def test_vulkan_leaves_the_matrix_units_of_xe_hpg_alone() -> None:
    """Arc A770 and B580 have much the same matrix peak; Vulkan multiplies by the first one's vectors."""
    assert reads("arc-a770-16gb", "llama.cpp-vulkan") < 0.5 * reads("arc-b580", "llama.cpp-vulkan")


def test_newer_chips_of_apple_launch_sooner_and_experts_cost_launches_in_mlx() -> None:
    def fixed(device: str, model: str = "qwen3-4b") -> float:
        asked: dict[str, Any] = {"engine": "mlx", "quant": "mlx-4bit", "prompt": 0, "context": 128}
        return timed(model, device, **asked).decode_parts["fixed"]

    assert fixed("m5-max-40c") <= fixed("m4-max-40c") < 0.9 * fixed("m3-max-40c")
    layers = 48 / 36  # of the mixture, for one of the dense model
    assert fixed("m4-max-40c", "qwen3-30b-a3b") > 1.3 * layers * fixed("m4-max-40c")


def test_servers_reach_a_smaller_share_of_the_peak_in_few_bits() -> None:
    """Marlin: 0.6 of the rate of 16 bits at 4000 rows (vLLM pull 2497); fp8 with its quantizing: 1.4 times (19566)."""
    plain, packed, fp8 = (reads("h100-sxm", "vllm", quant, 8000) for quant in ("none", "awq-int4", "fp8"))
    assert packed < 0.85 * plain
    assert plain < fp8 < 1.75 * plain

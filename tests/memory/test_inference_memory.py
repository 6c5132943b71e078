"""Tensors of serving: equal to tracked ones, and as engines, layouts and offload divide them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmfeas.catalog.quantization import StoredWeights
from llmfeas.catalog.store import catalog
from llmfeas.memory.inference import inference_memory
from llmfeas.workload.weights import weight_bytes
from serving_rows import serving

FORMATS = catalog().tables.quantization


TENSORS = json.loads((Path(__file__).parents[1] / "data" / "inference_memory_tensors.json").read_text())["rows"]
SERVED = ["llama-3-8b", "mixtral-8x7b", "gemma-2-9b", "deepseek-v2-lite", "qwen3-next-80b-a3b", "gpt-oss-20b", "gpt2"]
ENGINES = ["transformers", "llama.cpp", "vllm", "exllamav2", "mlx"]


@pytest.mark.parametrize("row", TENSORS, ids=lambda row: f"{row['scenario']['model']}-{row['scenario']['attention']}")
def test_tensors_equal_tracked_ones(row: dict[str, Any]) -> None:
    memory = inference_memory(serving({**row["scenario"], "context": row["scenario"]["prompt"]}))
    measured = row["measured"]
    assert memory.kv_cache_bytes == measured["kv_cache_bytes"]
    assert memory.moments["prefill"] == pytest.approx(measured["prefill_peak_tensor_bytes"], rel=0.001)
    assert memory.moments["decode"] == pytest.approx(measured["decode_peak_tensor_bytes"], rel=0.001)


def test_components_add_up_to_the_peak() -> None:
    memory = inference_memory(serving({"model": "llama-3-8b", "prompt": 2048, "context": 4096}))
    assert sum(memory.components.values()) == pytest.approx(memory.bytes)
    assert memory.bytes == max(memory.moments.values())


def test_a_long_prompt_binds_where_it_passes_at_once() -> None:
    asked = {"model": "llama-3-8b", "prompt": 4096, "context": 4096, "concurrency": 8}
    assert inference_memory(serving(asked)).moment == "prefill"
    assert inference_memory(serving({**asked, "prompt": 1})).moment == "decode"


def test_llama_cpp_reserves_the_cache_and_buffers_for_a_pass_of_512_tokens() -> None:
    empty = inference_memory(serving({"model": "llama-3-8b", "engine": "llama.cpp", "prompt": 0, "context": 8192}))
    full = inference_memory(serving({"model": "llama-3-8b", "engine": "llama.cpp", "prompt": 8192, "context": 8192}))
    assert empty.bytes == full.bytes
    assert empty.components["kv_cache_bytes"] == 8192 * 32 * 2 * 1024 * 2
    # llama.cpp prints "compute buffer size = 258.50 MiB" for this model: 512 x 128256 fp32 logits and one stream
    buffer = empty.components["logits_bytes"] + empty.components["activations_bytes"]
    assert buffer == pytest.approx(258.5 * 2**20, rel=0.001)


def test_llama_cpp_without_flash_attention_keeps_the_scores_of_a_pass() -> None:
    asked = {"model": "llama-3-8b", "engine": "llama.cpp", "context": 8192}
    flash, eager = (inference_memory(serving(asked, attention=a)) for a in ("flash", "eager"))
    # "compute buffer size = 560 MiB" at a context of 8192
    assert eager.components["activations_bytes"] == pytest.approx(560 * 2**20, rel=0.05)
    assert eager.bytes > flash.bytes


def test_llama_cpp_leaves_the_token_table_on_the_host() -> None:
    memory = inference_memory(serving({"model": "llama-3-8b", "engine": "llama.cpp", "quant": "q4_k_m"}))
    assert memory.host_bytes == 128256 * 4096 * 144 / 256
    # "CUDA0 model buffer size = 4403.49 MiB"
    assert memory.components["weights_bytes"] == pytest.approx(4403.49 * 2**20, rel=0.0005)


def test_a_cpu_holds_everything_in_one_memory() -> None:
    asked = {"model": "llama-3-8b", "engine": "llama.cpp", "quant": "q4_k_m", "device": "ryzen-9-7950x"}
    memory = inference_memory(serving(asked, gpu_layers=10))
    whole = weight_bytes(FORMATS, serving(asked).model.architecture, "q4_k_m", "llama.cpp").total
    assert memory.host_bytes == 0
    assert memory.components["weights_bytes"] == pytest.approx(whole)


def test_layers_move_to_the_host_one_by_one() -> None:
    asked = {"model": "llama-3-70b", "engine": "llama.cpp", "quant": "q4_k_m", "device": "rtx-4090"}
    all_on, *some = (inference_memory(serving(asked, gpu_layers=n)) for n in (None, 60, 40, 20, 0))
    sizes = [memory.bytes for memory in some]
    hosts = [memory.host_bytes for memory in some]
    assert sizes == sorted(sizes, reverse=True)
    assert hosts == sorted(hosts)
    for memory in some:
        moved = memory.host_bytes - all_on.host_bytes
        left = all_on.components["weights_bytes"] - memory.components["weights_bytes"]
        left += all_on.cache_bytes - memory.cache_bytes
        assert moved == pytest.approx(left)


def test_more_gpu_layers_than_layers_are_all_of_them() -> None:
    asked = {"model": "llama-3-8b", "engine": "llama.cpp", "quant": "q4_k_m"}
    assert inference_memory(serving(asked, gpu_layers=99)) == inference_memory(serving(asked))


@pytest.mark.parametrize("layout", [{"tp": 4}, {"pp": 4}])
@pytest.mark.parametrize("model", ["llama-3-70b", "mixtral-8x7b"])
def test_devices_share_weights_and_cache(model: str, layout: dict[str, int]) -> None:
    asked = {"model": model, "engine": "vllm", "context": 4096}
    one, four = inference_memory(serving(asked)), inference_memory(serving(asked, num_devices=4, **layout))
    assert (
        one.components["weights_bytes"] / 4 <= four.components["weights_bytes"] < one.components["weights_bytes"] / 3.3
    )
    assert one.cache_bytes / 4.01 < four.cache_bytes < one.cache_bytes / 3.3
    assert four.kv_cache_bytes == one.kv_cache_bytes


def test_latents_are_on_every_tensor_parallel_rank() -> None:
    asked = {"model": "deepseek-v2", "engine": "vllm"}
    assert (
        inference_memory(serving(asked)).cache_bytes
        == inference_memory(serving(asked, num_devices=8, tp=8)).cache_bytes
    )


def test_replicas_share_the_sequences() -> None:
    one = serving({"model": "llama-3-8b", "concurrency": 64})
    four = replace(one, num_devices=4)
    assert inference_memory(four).cache_bytes * 4 == inference_memory(one).cache_bytes
    assert inference_memory(four).kv_cache_bytes == inference_memory(one).kv_cache_bytes


def test_an_8_bit_cache_is_half() -> None:
    asked = {"model": "llama-3-8b", "context": 8192}
    half, whole = (inference_memory(serving(asked, kv_dtype=kv)).kv_cache_bytes for kv in ("fp8", "bf16"))
    assert half * 2 == whole


def test_windows_bound_the_cache() -> None:
    asked = {"model": "mistral-7b", "context": 32768}
    per_token = 32 * 2 * 1024 * 2
    assert inference_memory(serving(asked)).cache_bytes == pytest.approx(4095 * per_token, rel=1e-4)
    # llama.cpp's graph of Llama has no window; where only some layers have one it keeps that and a pass of 512 tokens
    assert inference_memory(serving(asked, engine="llama.cpp")).cache_bytes == 32768 * per_token
    mixed = inference_memory(serving({"model": "gpt-oss-20b", "context": 32768}, engine="llama.cpp"))
    assert mixed.cache_bytes == 12 * (32768 + 128 + 512) * 2 * 512 * 2


def test_streamed_weights_leave_two_layers_on_the_device() -> None:
    memory = inference_memory(serving({"model": "llama-3-70b", "offload": "all"}))
    assert memory.components["weights_bytes"] < 10e9
    assert memory.host_bytes > 130e9


@settings(deadline=None)
@given(
    st.sampled_from(SERVED),
    st.sampled_from(ENGINES),
    st.sampled_from(["none", "q4_k_m", "int8"]),
    st.integers(1, 1024),
    st.integers(1, 16),
)
def test_more_context_or_sequences_never_need_less(
    model: str, engine: str, quant: str, context: int, concurrency: int
) -> None:
    asked = {"model": model, "engine": engine, "quant": quant, "context": context, "concurrency": concurrency}
    base = inference_memory(serving(asked))
    assert base.bytes <= inference_memory(serving({**asked, "context": context + 1})).bytes
    assert base.bytes <= inference_memory(serving({**asked, "concurrency": concurrency + 1})).bytes
    assert base.bytes <= inference_memory(serving({**asked, "prompt": context})).bytes
    assert base.host_bytes >= 0


def test_what_a_file_stores_counts_where_it_is_what_runs() -> None:
    scenario = serving({"model": "llama-3-8b", "engine": "llama.cpp", "quant": "q4_k_m"})
    stored = StoredWeights(
        container="gguf",
        quant="q4_k_m",
        label="q4_k_m",
        by_type=(("q4_k", 4_000_000_000),),
        file_bytes=4_100_000_000,
        tables=300_000_000,
        head=430_000_000,
        rest=16_384,
        layers=(100_000_000,) * 32,
        routed=(0,) * 32,
        layer_vectors=(32_768,) * 32,
    )
    from_file = inference_memory(replace(scenario, stored=stored))
    assert from_file.components["weights_bytes"] == 32 * 100_000_000 + 430_000_000 + 16_384
    assert from_file.host_bytes == 300_000_000
    other = replace(scenario, stored=stored, quant="q8_0")
    assert inference_memory(other) == inference_memory(replace(other, stored=None))


def test_an_encoder_beside_the_file_is_held_where_images_are_read() -> None:
    asked = {"model": "qwen2.5-vl-7b", "engine": "llama.cpp"}
    blind, seeing = (inference_memory(serving({**asked, "prompt": 6000}, images=images)) for images in (0, 4))
    towers = 2 * catalog().models["qwen2.5-vl-7b"].architecture.tower_parameters
    assert seeing.components["weights_bytes"] - blind.components["weights_bytes"] == towers
    whole = inference_memory(serving({**asked, "engine": "vllm", "prompt": 6000}, images=4))
    assert whole.components["weights_bytes"] > seeing.components["weights_bytes"]

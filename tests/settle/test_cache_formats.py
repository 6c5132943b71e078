"""Formats of the cache: who holds which, and what a cached value takes."""

from __future__ import annotations

from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.result import Estimate
from llmfeas.options import BLOCK_CACHES
from llmfeas.settle import resolution


def served(**more: Any) -> Estimate:
    asked = {"model": "llama-3.1-8b", "device": "rtx-4090", "task": "inference", "quant": "q4_k_m", "context": 32768}
    return estimate(resolution({**asked, **more}, catalog()))


@pytest.mark.parametrize(
    ("kv_dtype", "bytes_of_32"),
    [("fp16", 64), ("q8_0", 34), ("q5_1", 24), ("q5_0", 22), ("q4_1", 20), ("q4_0", 18), ("iq4_nl", 18)],
)
def test_a_cache_in_blocks_counts_their_scales(kv_dtype: str, bytes_of_32: int) -> None:
    """32 layers, 8 heads of 128 keys and values."""
    found = served(kv_dtype=kv_dtype)
    assert found.memory.kv_cache_bytes == 32768 * 32 * 2 * 8 * 128 * bytes_of_32 / 32


def test_fewer_bytes_of_cache_are_read_faster() -> None:
    speeds = [
        served(kv_dtype=each, prompt=30000).time.decode_tokens_per_second.expected for each in ("fp16", "q8_0", "q4_0")
    ]  # type: ignore[union-attr]
    assert speeds == sorted(speeds)


@pytest.mark.parametrize("asked", ["int8", "fp8"])
def test_8_bits_are_those_of_the_engine(asked: str) -> None:
    assert served(kv_dtype=asked).scenario.kv_dtype == "q8_0"
    assert served(kv_dtype=asked, engine="vllm", quant="none", context=4096).scenario.kv_dtype == asked


@pytest.mark.parametrize(("engine", "kv_dtype"), [("vllm", "q8_0"), ("ollama", "q5_1"), ("mlx", "q4_0")])
def test_an_engine_refuses_caches_that_it_does_not_hold_and_names_who_does(engine: str, kv_dtype: str) -> None:
    with pytest.raises(UsageError, match=f"{kv_dtype} is no cache of {engine}") as raised:
        served(engine=engine, kv_dtype=kv_dtype, quant="none")
    assert "llama.cpp" in raised.value.candidates


def test_who_asks_for_such_a_cache_gets_an_engine_that_holds_it() -> None:
    assert served(device="h100-sxm", quant="none", kv_dtype="q8_0").scenario.engine == "llama.cpp"


def test_blocks_need_fused_attention_and_heads_that_they_divide() -> None:
    with pytest.raises(UsageError, match="needs fused attention"):
        served(kv_dtype="q8_0", attention="eager")
    with pytest.raises(UsageError, match="do not divide the 80 of a head"):
        served(model="phi-2", kv_dtype="q4_0", context=2048)


@pytest.mark.parametrize("kv_dtype", BLOCK_CACHES)
def test_what_usual_builds_have_no_kernel_for_is_said(kv_dtype: str) -> None:
    said = any("GGML_CUDA_FA_ALL_QUANTS" in reason.message for reason in served(kv_dtype=kv_dtype).verdict.reasons)
    assert said == (kv_dtype not in ("q8_0", "q4_0"))
    by_vulkan = served(kv_dtype=kv_dtype, engine="llama.cpp-vulkan")
    assert not any("GGML_CUDA" in reason.message for reason in by_vulkan.verdict.reasons)

"""Bytes of stored weights against published files, and how formats treat single tensors."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from llmfeas.catalog.architecture import Architecture, Model
from llmfeas.catalog.parts import Experts
from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.workload.weights import (
    decode_read_bytes,
    distinct_experts,
    weight_bytes,
    weights_file_bytes,
)

FORMATS = catalog().tables.quantization


LLAMA_2_7B = Architecture(layers=32, hidden=4096, heads=32, ffn=11008, vocab=32000)
LLAMA_3_8B = Architecture(layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, vocab=128256)
LLAMA_3_70B = Architecture(layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28672, vocab=128256)
LLAMA_31_405B = Architecture(layers=126, hidden=16384, heads=128, kv_heads=8, ffn=53248, vocab=128256)
MIXTRAL = Architecture(
    layers=32, hidden=4096, heads=32, kv_heads=8, ffn=None, vocab=32000, experts=Experts(count=8, top_k=2, width=14336)
)
GPT_OSS_20B = Architecture(
    layers=24,
    hidden=2880,
    heads=64,
    kv_heads=8,
    head_dim=64,
    ffn=None,
    vocab=201088,
    qkv_bias=True,
    out_bias=True,
    sinks=True,
    experts=Experts(count=32, top_k=4, width=2880, router_bias=True, bias=True),
)
ARCHITECTURES = {
    "llama-3-8b": LLAMA_3_8B,
    "llama-3.1-8b": LLAMA_3_8B,
    "llama-3-70b": LLAMA_3_70B,
    "llama-3.1-70b": LLAMA_3_70B,
    "llama-3.1-405b": LLAMA_31_405B,
    "gpt-oss-20b": GPT_OSS_20B,
}
ROWS = yaml.safe_load((Path(__file__).parents[1] / "data" / "file_sizes.yaml").read_text())["rows"]
GGUF = ["q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_k_s", "q4_0", "q3_k_m", "q2_k"]


def model(architecture: Architecture, **other: object) -> Model:
    return Model(id="m", name="M", architecture=architecture, context=4096, **other)  # type: ignore[arg-type]


def error(row: dict[str, object]) -> float:
    file_bytes = weights_file_bytes(FORMATS, model(ARCHITECTURES[row["model"]]), "fp16", row["quant"], "llama.cpp")
    return abs(file_bytes / row["file_bytes"] - 1)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_files_of_llama_cpp_are_as_large_as_published(row: dict[str, object]) -> None:
    # the README of llama.cpp extrapolates its larger sizes from the 8B model's bits a weight
    assert error(row) < (0.025 if row["id"].endswith("-gb") else 0.002)


def test_median_error_of_file_sizes() -> None:
    assert statistics.median(map(error, ROWS)) < 0.0005


def test_mixtral_in_4_bits_is_as_large_as_published() -> None:
    # 28.45 GB: https://huggingface.co/bartowski/Mixtral-8x7B-Instruct-v0.1-GGUF (Q4_K_M)
    assert weights_file_bytes(FORMATS, model(MIXTRAL), "fp16", "q4_k_m", "llama.cpp") == pytest.approx(
        28.45e9, rel=0.003
    )


def test_published_gpt_oss_checkpoint() -> None:
    # 13.76 GB of safetensors: https://huggingface.co/openai/gpt-oss-20b
    assert weight_bytes(FORMATS, GPT_OSS_20B, "mxfp4", "vllm").total == pytest.approx(13.76e9, rel=0.002)


def test_longcat_flash_is_over_a_terabyte_in_16_bits() -> None:
    from llmfeas.catalog.architecture import Mla

    longcat = Architecture(
        layers=28,
        hidden=6144,
        heads=64,
        ffn=12288,
        vocab=131072,
        norms_per_layer=4,
        attention_blocks=2,
        mla=Mla(q_lora_rank=1536, kv_lora_rank=512, nope_head_dim=128, rope_head_dim=64, v_head_dim=128),
        experts=Experts(count=512, top_k=12, width=2048, zero=256, expected_real=8, parallel_dense=True),
    )
    assert weight_bytes(FORMATS, longcat).total == 2 * 560_664_958_976
    assert weights_file_bytes(FORMATS, model(longcat), "bf16") == 2 * 560_664_958_976


def test_more_bits_are_more_bytes() -> None:
    sizes = [weight_bytes(FORMATS, LLAMA_2_7B, quant, "llama.cpp").total for quant in GGUF]
    assert sizes == sorted(sizes, reverse=True)


def weight_bits(architecture: Architecture, quant: str, engine: str = "", native: float = 2.0) -> tuple[float, float]:
    """The mean bits of a weight (in the layers, in the head), scales and exceptions included."""
    weights, plain = (
        weight_bytes(FORMATS, architecture, quant, engine, native),
        weight_bytes(FORMATS, architecture, "none", "", 1.0),
    )
    body, elements = (sum(layer.total for layer in one.layers) for one in (weights, plain))
    return 8.0 * body / elements, 8.0 * weights.head / plain.head


@pytest.mark.parametrize(
    ("quant", "body", "head"),
    [
        ("none", 16, 16),
        ("q8_0", 8.5, 8.5),
        ("q6_k", 6.5625, 6.5625),
        ("q4_k_m", 4.82, 6.5625),
        ("q4_0", 4.5, 6.5625),
        ("nf4", 4.127, 16),
        ("int8", 8.007, 16),
        ("fp8", 8.002, 16),
        ("awq-int4", 4.156, 16),
        ("gptq-int8", 8.19, 16),
        ("mlx-4bit", 4.5, 4.5),
        ("exl2-4.0bpw", 4.0, 6),
    ],
)
def test_bits_of_a_weight(quant: str, body: float, head: float) -> None:
    assert weight_bits(LLAMA_2_7B, quant) == pytest.approx((body, head), rel=0.002)


def test_engines_run_their_own_format_under_the_same_name() -> None:
    table = FORMATS
    assert table.format("int8", "llama.cpp").id == "q8_0"
    assert table.format("int8", "transformers").id == "int8"
    assert table.format("q4_k_m", "mlx").id == "mlx-4bit"
    assert table.format("mxfp4", catalog().engines["llama.cpp-vulkan"].speaks).id == "mxfp4-gguf"


def test_unknown_format_names_near_ones() -> None:
    with pytest.raises(UsageError) as caught:
        FORMATS.format("q4km")
    assert "q4_k_m" in caught.value.candidates


def test_rows_that_blocks_do_not_divide_fall_back() -> None:
    # 2880 is no multiple of 256 but of 32: q4_k becomes q5_0 (5.5 bits), q6_k becomes q8_0
    odd = replace(LLAMA_2_7B, hidden=2880, heads=45, kv_heads=45, head_dim=64, ffn=2880)
    body, head = weight_bits(odd, "q4_k_m", "llama.cpp")
    assert 5.5 < body < 7.1
    assert head == 8.5


def test_a_tied_table_is_stored_once() -> None:
    tied, untied = (weight_bytes(FORMATS, replace(LLAMA_3_8B, tied=flag), "none") for flag in (True, False))
    assert untied.total - tied.total == 2 * 128256 * 4096
    assert tied.tables == 0
    assert tied.head == untied.head


def test_formats_made_while_loading_are_stored_as_published() -> None:
    assert weights_file_bytes(FORMATS, model(LLAMA_2_7B), "bf16", "nf4") == 2 * 6_738_415_616
    assert weights_file_bytes(FORMATS, model(LLAMA_2_7B, dtype="float32"), "bf16", "none") == 4 * 6_738_415_616


def test_one_token_reads_the_experts_it_is_sent_to() -> None:
    one, all_of_them = (decode_read_bytes(weight_bytes(FORMATS, MIXTRAL), MIXTRAL, n) for n in (1, 10_000))
    routed = 32 * 3 * 8 * 4096 * 14336 * 2
    assert all_of_them - one == pytest.approx(routed * 6 / 8)
    assert all_of_them == pytest.approx(weight_bytes(FORMATS, MIXTRAL).total - weight_bytes(FORMATS, MIXTRAL).tables)


@settings(deadline=None)
@given(st.floats(1, 1e6))
def test_distinct_experts_lie_between_those_of_one_token_and_all(tokens: float) -> None:
    assert distinct_experts(MIXTRAL, tokens) + 1e-9 >= 2
    assert distinct_experts(MIXTRAL, tokens) <= 8


@settings(deadline=None)
@given(st.sampled_from(sorted(FORMATS.formats)), st.sampled_from(list(ARCHITECTURES.values())))
def test_every_format_holds_every_tensor_of_every_model(quant: str, architecture: Architecture) -> None:
    weights = weight_bytes(FORMATS, architecture, quant)
    assert 0 < weights.total <= 1.01 * weight_bytes(FORMATS, architecture, "none").total
    assert all(layer.total > 0 for layer in weights.layers)
    assert decode_read_bytes(weights, architecture) <= weights.total

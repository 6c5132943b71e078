"""The table of storage formats: whole, and its rules apply where llama.cpp's do."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from llmfeas.catalog.architecture import Architecture
from llmfeas.catalog.device import Rates
from llmfeas.catalog.parts import Experts
from llmfeas.catalog.quantization import NATIVE, Encoding, Format, NarrowUnit, Quantization, expanded
from llmfeas.catalog.records import built
from llmfeas.catalog.store import catalog
from llmfeas.options import QUANTIZATIONS
from llmfeas.record import fields
from llmfeas.workload.weights import weights_file_bytes

TABLE = catalog().tables.quantization
DENSE = Architecture(layers=32, hidden=4096, heads=32, ffn=11008, vocab=32000)
GROUPED = Architecture(layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28672, vocab=128256)
EIGHT = Architecture(
    layers=32, hidden=4096, heads=32, kv_heads=8, ffn=None, vocab=32000, experts=Experts(count=8, top_k=2, width=14336)
)


def encoding(quant: str, role: str, layer: int = 10, architecture: Architecture = DENSE, routed: bool = False) -> str:
    return TABLE.formats[quant].encoding_of(role, routed, layer, architecture)


def test_every_choice_of_quant_is_a_format() -> None:
    assert set(QUANTIZATIONS) <= set(TABLE.formats)


@pytest.mark.parametrize("name", sorted(TABLE.formats))
def test_every_name_in_a_format_leads_somewhere(name: str) -> None:
    known = TABLE.formats[name]
    named = {known.base, known.head, known.embedding, known.router, known.vectors, *(r.encoding for r in known.rules)}
    assert named - {NATIVE} <= set(TABLE.encodings)
    assert set((known.under or {}).values()) <= set(TABLE.formats)
    assert known.stored == "" or known.stored in TABLE.formats
    assert known.source
    assert known.tasks


@pytest.mark.parametrize("name", sorted(TABLE.encodings))
def test_fallbacks_end(name: str) -> None:
    assert TABLE.fitting(name, 7) in (*TABLE.encodings, NATIVE)
    assert TABLE.fitting(name, 256 * 128) == name


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("q4_k", 4.5),
        ("q5_k", 5.5),
        ("q6_k", 6.5625),
        ("q8_0", 8.5),
        ("q2_k", 2.625),
        ("iq2_xxs", 2.0625),
        ("mxfp4", 4.25),
    ],
)
def test_bits_of_blocks(name: str, bits: float) -> None:
    assert TABLE.encodings[name].bits == bits


def test_scales_of_rows_and_columns_count() -> None:
    one = Encoding(block=32, bytes=18, row_bytes=4, column_bytes=2)
    assert one.matrix_bytes(10, 64) == 10 * 2 * 18 + 10 * 4 + 64 * 2


def test_q4_k_m_gives_more_bits_to_half_of_the_values_and_down_projections() -> None:
    better = [layer for layer in range(32) if encoding("q4_k_m", "attn_v", layer) == "q6_k"]
    # llama.cpp: the first and last eighth, and every third between
    assert better == [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]
    assert [layer for layer in range(32) if encoding("q4_k_m", "ffn_down", layer) == "q6_k"] == better
    assert encoding("q4_k_m", "attn_q", 0) == "q4_k"
    assert encoding("q4_k_m", "attn_qkv", 0) == "q5_k"


def test_heads_embeddings_and_routers() -> None:
    assert encoding("q4_k_m", "head") == "q6_k"
    assert encoding("q8_0", "head") == "q8_0"
    assert encoding("iq2_xs", "head") == "q5_k"
    assert encoding("q4_k_m", "embedding") == "q4_k"
    assert encoding("q4_k_m", "router") == "f32"
    assert encoding("awq-int4", "head") == NATIVE
    assert encoding("mlx-4bit", "head") == "mlx-4-64"


def test_grouped_values_of_80_layers_get_more_bits() -> None:
    assert encoding("q4_k_m", "attn_v", 11, GROUPED) == "q5_k"
    assert encoding("q3_k_s", "attn_v", 11, GROUPED) == "q5_k"
    assert encoding("q2_k", "attn_v", 11, GROUPED) == "q5_k"
    assert encoding("q2_k", "attn_v", 11, DENSE) == "q3_k"


def test_models_of_eight_experts_keep_their_attention_in_8_bits() -> None:
    assert encoding("q4_k_m", "attn_v", architecture=EIGHT) == "q8_0"
    assert encoding("q4_k_m", "attn_k", architecture=EIGHT) == "q8_0"
    assert encoding("q4_k_m", "attn_output", architecture=EIGHT) == "q5_k"


def test_only_routed_experts_are_in_mxfp4() -> None:
    assert encoding("mxfp4", "ffn_up", routed=True) == "mxfp4"
    assert encoding("mxfp4", "ffn_up", architecture=EIGHT) == NATIVE
    assert encoding("mxfp4-gguf", "ffn_up") == "q8_0"


def test_a_model_without_experts_is_in_mxfp4_as_a_whole() -> None:
    """As amd/Llama-3.3-70B-Instruct-MXFP4-Preview is, and no 16-bit weights under the name of 4."""
    assert {encoding("mxfp4", role) for role in ("attn_q", "attn_output", "ffn_gate", "ffn_down")} == {"mxfp4"}
    assert encoding("mxfp4", "head") == encoding("mxfp4", "embedding") == NATIVE


@pytest.mark.parametrize(
    ("model", "quant", "gigabytes"),
    [
        # sizes on the cards of ISTA-DASLab
        ("llama-2-7b", "aqlm-2bit-1x16", 2.4),
        ("llama-2-7b", "aqlm-2bit-2x8", 2.2),
        ("llama-2-7b", "aqlm-2bit-8x8", 2.2),
        ("llama-2-70b", "aqlm-2bit-1x16", 18.8),
        ("llama-2-70b", "aqlm-2bit-2x8", 18.2),
        # 2.08e9 ternary weights at 2 bits, a tied table of 128256 x 2560 in 16: 1.18
        ("bitnet-b1.58-2b-4t", "bitnet", 1.18),
    ],
)
def test_codebooks_and_ternary_weights_have_their_published_sizes(model: str, quant: str, gigabytes: float) -> None:
    stored = weights_file_bytes(TABLE, catalog().models[model], "bf16", quant)
    assert stored / 1e9 == pytest.approx(gigabytes, abs=0.06)


def test_hqq_packs_ten_values_of_three_bits_in_32() -> None:
    assert [TABLE.encoded_bits(f"hqq-{bits}bit")[0] for bits in (8, 4, 3, 2, 1)] == [8.5, 4.5, 3.7, 2.5, 1.5]


def test_codebooks_count_once_for_each_matrix() -> None:
    one = Encoding(block=8, bytes=2, row_bytes=2, table_bytes=1024)
    assert one.matrix_bytes(10, 64) == 10 * (64 / 8 * 2 + 2) + 1024


@settings(deadline=None)
@given(st.sampled_from(["more_bits", "first_eighth", "first_sixteenth", "middle"]), st.integers(1, 200))
def test_choices_of_layers_are_parts_of_the_whole(layers: str, count: int) -> None:
    raw = {
        "gguf_metadata_bytes_per_token": 1,
        "encodings": {"a": {"block": 1, "bytes": 1}, "b": {"block": 1, "bytes": 2}},
        "rule_sets": {"some": [{"tensors": ["attn_v"], "layers": layers, "encoding": "b"}]},
        "kinds": {"kind": {"tasks": ["inference"]}},
        "formats": {"one": {"kind": "kind", "base": "a", "rules": ["some"]}},
    }
    one = built(Quantization, expanded(raw)).formats["one"]
    architecture = Architecture(layers=count, hidden=64, heads=1, ffn=64, vocab=64)
    chosen = [one.encoding_of("attn_v", False, layer, architecture) == "b" for layer in range(count)]
    assert sum(chosen) <= count
    if layers == "middle" and count >= 8:
        assert not chosen[0]
        assert not chosen[-1]


def test_a_format_with_an_unknown_field_is_refused() -> None:
    raw = {
        "gguf_metadata_bytes_per_token": 1,
        "encodings": {},
        "rule_sets": {},
        "kinds": {"kind": {}},
        "formats": {"one": {"kind": "kind", "base": "a", "colour": "red"}},
    }
    with pytest.raises(TypeError, match="colour"):
        dict(built(Quantization, expanded(raw)).formats)


def test_a_format_that_quantizes_nothing_has_the_bits_of_the_run() -> None:
    formats = TABLE
    assert formats.encoded_bits("none") == formats.encoded_bits("gguf-16bit") == (16.0,)
    assert all(1 <= formats.encoded_bits(name)[0] <= 32 for name in formats.formats)


def test_narrow_units_are_rates_of_a_device() -> None:
    assert {field.name for field in fields(Rates)} >= set(get_args(NarrowUnit))
    assert TABLE.formats["w8a8"].units == ("int8",)
    assert TABLE.formats["w4a16"].units == ()
    with pytest.raises(ValidationError, match="fp6"):
        TypeAdapter(Format).validate_python({"id": "one", "kind": "kind", "base": "a", "units": ["fp6"]})

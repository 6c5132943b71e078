from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hf_files import read
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llmfeas.catalog.architecture import Architecture, Model
from llmfeas.catalog.parts import Dropout, Window
from llmfeas.catalog.store import catalog
from llmfeas.errors import DataError
from llmfeas.importers.hf.config import model_from_config
from llmfeas.importers.hf.families import family, table
from llmfeas.importers.hf.images import RULES
from llmfeas.importers.hf.parts import READERS
from llmfeas.importers.hf.tower_parts import COUNTS
from llmfeas.importers.hf.towers import PROJECTORS, encoder_kind
from llmfeas.importers.hf.towers import table as towers
from llmfeas.importers.model_file import model_from_file
from llmfeas.workload.parameters import parameters

DATA = Path(__file__).parent.parent / "data"
CLASSES = json.loads((DATA / "hf_classes.json").read_text())["rows"]
CONFIGS = sorted((DATA / "configs").glob("*.json"))
FAMILIES = {kind: record for kind in table()["families"] if (record := family(kind))}
TOWERS = json.loads((DATA / "tower_counts.json").read_text())["rows"]


def without_towers(model: Model) -> Architecture:
    return replace(model.architecture, tower_parameters=0)


@pytest.mark.parametrize("row", CLASSES, ids=lambda row: f"{row['config']['model_type']}-{len(row['config'])}")
def test_counts_equal_those_of_the_class_with_its_defaults(tmp_path: Path, row: dict[str, Any]) -> None:
    assert parameters(read(tmp_path, row["config"])).total == row["parameters"]


def test_all_types_are_counted_but_those_without_a_causal_class_of_their_own() -> None:
    counted = {row["config"]["model_type"] for row in CLASSES}
    inside_others = {
        *("qwen2_vl_text", "qwen2_5_vl_text", "ministral", "glm5_next_text", "ernie4_5_vl_moe_text", "git"),
        *("glm_ocr_text", "granite_docling_text", "mistral_large4_text", "molmo2_text", "moshi", "muse_glimmer_text"),
        *("paddleocr_vl_text", "qwen2_5_omni_text", "qwen3_omni_moe_text", "unlimited_ocr_text", "chameleon"),
        *("voxtral_realtime_text", "muse_spark_text", "hy_v4_vl_text", "cosmos3_edge_text", "kyutai_speech_to_text"),
    }
    outside = {
        "deepseek",
        "longcat_flash",
        "longcat_flash_ngram",
        "rwkv7",
        "mimo",
        "internlm2",
        "minicpm",
        "bailing_moe",
    }
    outside |= {
        *("deepseek_v41_text", "nemotron-nas", "chatglm", "PanguEmbedded", "bailing_moe_linear"),
        "deci",
        "openelm",
        "ouro",
        "nanbeige",
        "qwen",
        *("step3_text", "phi3small", "phi4flash", "diffusion_gemma_text"),
        *(kind for kind, record in FAMILIES.items() if record.fixed.get("encoder") or record.encoder_decoder),
    }
    without_a_file = {"granitemoeshared"}
    assert set(FAMILIES) - counted == inside_others | outside | without_a_file


def test_language_models_inside_others_equal_those_alone(tmp_path: Path, models: dict[str, Model]) -> None:
    text = {"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_key_value_heads": 8}
    nested = {"model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text", **text}}
    assert without_towers(read(tmp_path, nested)) == models["qwen3-8b"].architecture
    size = {"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28}
    flat = {"model_type": "qwen2_5_vl", **size, "num_key_value_heads": 4}
    assert read(tmp_path, flat).architecture == models["qwen2.5-7b"].architecture
    experts = {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "num_hidden_layers": 48}
    heads = {"num_attention_heads": 32, "num_key_value_heads": 4, "tie_word_embeddings": False}
    moe = {"model_type": "qwen3_vl_moe", "text_config": {**experts, **heads}}
    assert without_towers(read(tmp_path, moe)) == models["qwen3-30b-a3b"].architecture


def test_a_type_that_is_not_known_is_read_as_that_of_its_class(tmp_path: Path) -> None:
    sizes = {"num_hidden_layers": 2, "hidden_size": 512, "vocab_size": 1000}
    known = read(tmp_path, {"model_type": "deepseek_v4", **sizes})
    other = read(tmp_path, {"model_type": "deepseek_ref", "architectures": ["DeepseekV4ForCausalLM"], **sizes})
    assert other.architecture == known.architecture
    assert "'deepseek_ref' is not known: read as deepseek_v4" in other.notes
    with pytest.raises(DataError, match="'mine' is not known"):
        read(tmp_path, {"model_type": "mine", "architectures": ["MineForCausalLM"], **sizes})


GLM_4_9B = {
    "model_type": "chatglm",
    "add_qkv_bias": True,
    "ffn_hidden_size": 13696,
    "hidden_size": 4096,
    "kv_channels": 128,
    "multi_query_attention": True,
    "multi_query_group_num": 2,
    "num_attention_heads": 32,
    "num_layers": 40,
    "padded_vocab_size": 151552,
    "seq_length": 131072,
}
MINIMAX_M1 = {
    "model_type": "minimax_m1",
    "attn_type_list": [0, 0, 0, 0, 0, 0, 0, 1] * 10,
    "head_dim": 128,
    "hidden_size": 6144,
    "intermediate_size": 9216,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 80,
    "vocab_size": 200064,
}
DEEPSEEK_OCR = {
    "architectures": ["DeepseekV2ForCausalLM"],
    "first_k_dense_replace": 1,
    "hidden_size": 1280,
    "use_mla": False,
    "intermediate_size": 6848,
    "kv_lora_rank": None,
    "moe_intermediate_size": 896,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_attention_heads": 10,
    "num_key_value_heads": 10,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 12,
    "q_lora_rank": None,
    "v_head_dim": 0,
    "vocab_size": 129280,
}
RING_2_5 = {
    "model_type": "bailing_hybrid",
    "group_norm_size": 8,
    "layer_group_size": 2,
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "num_attention_heads": 4,
    "head_dim": 64,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "intermediate_size": 512,
    "first_k_dense_replace": 1,
    "vocab_size": 1000,
    "kv_lora_rank": 64,
    "q_lora_rank": 96,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 32,
    "v_head_dim": 32,
}
"""Two layers of lightning attention, two of latent attention (vLLM's bailing_moe_linear.py, counted by hand)."""
RING_COUNT = (
    2 * 256_000
    + 256
    + 4 * 512
    + 2 * (5 * 256 * 256 + 256 + 2 * 64)
    + 2 * (256 * 96 + 96 + 96 * 256 + 256 * 96 + 64 + 64 * 256 + 128 * 256)
    + 3 * 256 * 512
    + 3 * (5 * 3 * 256 * 64 + 4 * 256)
)


@pytest.mark.parametrize(
    ("config", "parameters_of_it"),
    [
        (GLM_4_9B, 9_399_951_360),
        (MINIMAX_M1, 456_089_655_296),
        ({"model_type": "deepseek_vl_v2", "language_config": DEEPSEEK_OCR}, 2_934_734_080),
        (RING_2_5, RING_COUNT),
    ],
)
def test_types_with_code_of_their_own_are_counted_as_their_files_are(
    tmp_path: Path, config: dict[str, Any], parameters_of_it: int
) -> None:
    assert parameters(read(tmp_path, config)).total == parameters_of_it


def test_a_type_of_several_language_models_is_read_by_its_version(tmp_path: Path) -> None:
    found = [read(tmp_path, {"model_type": "minicpmv", "version": version}) for version in (2.6, 4.5)]
    assert [model.architecture.qk_norm for model in found] == ["none", "head"]
    with pytest.raises(DataError, match="'minicpmv' is not known"):
        read(tmp_path, {"model_type": "minicpmv", "version": "9"})


@pytest.mark.parametrize(
    ("kind", "usual", "other"),
    [
        ("exaone", {"num_layers": 3}, {"num_hidden_layers": 3}),
        ("gpt2", {"n_embd": 128, "n_head": 4}, {"hidden_size": 128, "num_attention_heads": 4}),
        ("hy_v3", {"num_experts": 4, "num_experts_per_tok": 2}, {"n_routed_experts": 4, "num_experts_per_token": 2}),
    ],
)
def test_a_field_is_read_under_each_of_its_names(
    tmp_path: Path, kind: str, usual: dict[str, int], other: dict[str, int]
) -> None:
    one, two = (read(tmp_path, {"model_type": kind, **fields}) for fields in (usual, other))
    assert one.architecture == two.architecture
    assert read(tmp_path, {"model_type": kind, **other, **usual}).architecture == one.architecture


@pytest.mark.parametrize("row", TOWERS, ids=lambda row: row.get("of", row["config"]["model_type"]))
def test_encoders_beside_a_language_model_are_counted_as_its_class_does(tmp_path: Path, row: dict[str, Any]) -> None:
    assert parameters(read(tmp_path, row["config"])).total == row["parameters"]


def test_encoders_of_a_kind_that_nobody_reads_are_left_out_and_told(tmp_path: Path) -> None:
    for config in (
        {"model_type": "llava", "vision_config": {"model_type": "siglip9"}, "text_config": {"model_type": "llama"}},
        {"model_type": "llama", "audio_config": {"d_model": 80}},
    ):
        model = read(tmp_path, config)
        assert (model.architecture.tower_parameters, "without its encoders" in model.notes) == (0, True)


@pytest.mark.parametrize("side", [[14, 15], [], [0, 0], "x", 10**6, True])
def test_a_patch_that_is_no_square_is_told_with_its_place(tmp_path: Path, side: object) -> None:
    config = {"model_type": "internvl", "vision_config": {"patch_size": side}, "text_config": {"model_type": "qwen2"}}
    with pytest.raises(DataError, match=r"vision_config\.patch_size"):
        read(tmp_path, config)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_configs_written_by_hand_load(path: Path) -> None:
    model = model_from_config(path)
    assert model.id == path.stem
    assert parameters(model).total > 1e7


def test_every_type_and_every_model_names_a_known_implementation(models: dict[str, Model]) -> None:
    known = set(catalog().raw("implementations")["implementations"])
    assert {family.implementation for family in FAMILIES.values()} <= known
    assert {model.architecture.implementation for model in models.values()} <= known


def test_the_table_names_readers_and_types_that_there_are() -> None:
    """Building a record looks up its readers; a reader that no record names, and names that lead nowhere, are dead."""
    written = table()
    everything = json.dumps({key: written[key] for key in ("families", "bases", "shorthands")})
    assert not [name for name in READERS if f'"{name}"' not in everything]
    assert not [name for name in written["shorthands"] if f'"{name}"' not in json.dumps(written["families"])]
    assert set(written["language_models"].values()) <= set(FAMILIES)
    assert not set(written["language_models"]) & set(FAMILIES)


def test_the_table_of_encoders_names_what_there_is() -> None:
    written = towers()
    kinds = {kind for sense in ("sight", "sound") for kind in written[sense]}
    assert {record["count"] for kind in kinds if (record := encoder_kind(kind, "sight", "sound"))} == set(COUNTS)
    rows = written["beside"].values()
    ways = [row[way] for row in rows for way in ("see", "hear") if way in row]
    assert {way if isinstance(way, str) else next(iter(way)) for way in ways} == set(PROJECTORS)
    assert {row[sense] for row in rows for sense in ("vision", "audio") if sense in row} <= kinds
    assert {row["images"] for row in rows if "images" in row} == set(RULES)
    assert set(written["for_anybody"]) <= kinds


def test_a_config_equals_the_catalog(tmp_path: Path, models: dict[str, Model]) -> None:
    longcat = {"model_type": "longcat_flash", "dtype": "bfloat16"}
    assert read(tmp_path, longcat).architecture == models["longcat-flash"].architecture
    gpt2 = {"model_type": "gpt2", "n_layer": 48, "n_embd": 1600, "n_head": 25}
    assert read(tmp_path, gpt2).architecture == models["gpt2-xl"].architecture


def test_a_folder_names_the_model_and_a_file_does_too(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    assert read(folder, {"model_type": "gpt2"}).id == "my-model"
    assert model_from_config(folder / "config.json").id == "my-model"
    other = tmp_path / "tiny.json"
    other.write_text('{"model_type": "gpt2"}')
    assert model_from_config(other).id == "tiny"


@pytest.mark.parametrize(
    ("config", "quant"),
    [
        ({"quant_method": "gptq", "bits": 4}, "gptq-int4"),
        ({"quant_method": "gptq", "bits": 8}, "gptq-int8"),
        ({"quant_method": "awq", "bits": 4}, "awq-int4"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4-single"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, "nf4"),
        ({"load_in_8bit": True}, "int8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "quip"}, "none"),
    ],
)
def test_published_quantization(tmp_path: Path, config: dict[str, Any], quant: str) -> None:
    model = read(tmp_path, {"model_type": "llama", "quantization_config": config, "torch_dtype": "float16"})
    assert (model.published_quant, model.dtype) == (quant, "float16")
    assert ("not known" in model.notes) == (quant == "none")


def test_the_language_model_of_one_with_images(tmp_path: Path, models: dict[str, Model]) -> None:
    text = {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}
    model = read(tmp_path, {"model_type": "gemma3", "text_config": text, "vision_config": {}, "dtype": "bfloat16"})
    assert without_towers(model) == without_towers(models["gemma-3-4b"])
    assert model.architecture.window == Window(size=1024, local=5, full=1)
    assert model.architecture.tower_parameters > 90e6


@pytest.mark.parametrize(
    ("config", "window"),
    [
        ({"model_type": "mistral"}, Window(size=4096, local=32, full=0)),
        ({"model_type": "mistral", "sliding_window": None}, None),
        ({"model_type": "gpt_oss"}, Window(size=128, local=1, full=1)),
        ({"model_type": "qwen2", "sliding_window": 64}, None),
        ({"model_type": "llama4_text"}, Window(size=8192, local=3, full=1, chunked=True)),
        ({"model_type": "gpt_neo"}, Window(size=256, local=1, full=1, full_first=True, in_cache=False)),
        ({"model_type": "cohere2", "sliding_window_pattern": 2}, Window(size=4096, local=1, full=1)),
        (
            {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 64, "max_window_layers": 20},
            Window(size=64, local=12, full=20, full_first=True),
        ),
        ({"model_type": "gemma2", "layer_types": ["full_attention"] * 26}, None),
    ],
)
def test_windows(tmp_path: Path, config: dict[str, Any], window: Window | None) -> None:
    found = read(tmp_path, config).architecture
    if window is not None and window.full == 0:
        assert all(kind.windowed for kind in found.layer_kinds)
    else:
        assert found.window == window


LISTED = {
    "mlp_only_layers": (
        {"model_type": "qwen3_moe", "num_hidden_layers": 5, "mlp_only_layers": [0, 3]},
        "feed_forward",
        ["dense", "experts", "experts", "dense", "experts"],
    ),
    "moe_layers": (
        {"model_type": "llama4_text", "num_hidden_layers": 4, "moe_layers": [0, 3]},
        "feed_forward",
        ["experts", "dense", "dense", "experts"],
    ),
    "windows": (
        {
            "model_type": "gemma2",
            "num_hidden_layers": 5,
            "layer_types": [*["sliding_attention"], *["full_attention"] * 2, *["sliding_attention"] * 2],
        },
        "windowed",
        [True, False, False, True, True],
    ),
    "no_rope_layers": (
        {"model_type": "smollm3", "num_hidden_layers": 4, "no_rope_layers": [0, 1, 1, 0]},
        "rotates",
        [False, True, True, False],
    ),
    "linear": (
        {
            "model_type": "qwen3_next",
            "num_hidden_layers": 3,
            "layer_types": ["full_attention", "linear_attention", "linear_attention"],
        },
        "mixer",
        ["attention", "linear_attention", "linear_attention"],
    ),
}


@pytest.mark.parametrize("name", LISTED)
def test_layers_in_any_order(tmp_path: Path, name: str) -> None:
    config, field, values = LISTED[name]
    found = read(tmp_path, config).architecture
    assert [getattr(kind, field) for kind in found.layer_kinds] == values
    assert sum(run.times for run in found.layer_runs) == found.layers


def test_dropout_of_the_published_training(tmp_path: Path) -> None:
    assert read(tmp_path, {"model_type": "gpt2"}).architecture.dropout == Dropout(
        embedding=0.1, attention=0.1, residual=0.1
    )
    assert read(tmp_path, {"model_type": "opt"}).architecture.dropout == Dropout(residual=0.1)
    assert read(tmp_path, {"model_type": "gpt2", "resid_pdrop": 0}).architecture.dropout.residual == 0


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "no model_type"),
        ({"model_type": "llamma"}, "llamma"),
        ({"model_type": 7}, "model_type"),
        ({"model_type": "prophetnet"}, "prophetnet"),
        ({"model_type": "llama", "num_hidden_layers": "32"}, "num_hidden_layers"),
        ({"model_type": "llama", "num_hidden_layers": None}, "num_hidden_layers"),
        ({"model_type": "llama", "num_hidden_layers": 10**12}, "num_hidden_layers"),
        ({"model_type": "llama", "num_hidden_layers": 10**4000}, "num_hidden_layers"),
        ({"model_type": "llama", "hidden_size": -1}, "hidden_size"),
        ({"model_type": "llama", "hidden_size": True}, "hidden_size"),
        ({"model_type": "llama", "vocab_size": 1.5}, "vocab_size"),
        ({"model_type": "llama", "num_key_value_heads": 64}, "kv_heads"),
        ({"model_type": "llama", "num_key_value_heads": [8, 4]}, "num_key_value_heads"),
        ({"model_type": "llama", "num_attention_heads": 33}, "head_dim"),
        ({"model_type": "llama", "tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"model_type": "llama", "hidden_act": "\x1b[31mxielu"}, "hidden_act"),
        ({"model_type": "llama", "is_encoder_decoder": True}, "is_encoder_decoder"),
        ({"model_type": "gpt2", "add_cross_attention": True}, "add_cross_attention"),
        ({"model_type": "gpt2", "resid_pdrop": 2}, "resid_pdrop"),
        ({"model_type": "phi", "qk_layernorm": True}, "qk_layernorm"),
        ({"model_type": "qwen3_moe", "mlp_only_layers": [3, 900]}, "mlp_only_layers"),
        ({"model_type": "gemma2", "layer_types": ["full_attention"]}, "layer_types"),
        (
            {"model_type": "gemma2", "layer_types": ["sliding_attention", "full_attention"] * 12 + ["x", "x"]},
            "layer_types",
        ),
        ({"model_type": "gpt_neo", "attention_types": [[["global"], 10**9]]}, "attention_types"),
        ({"model_type": "deepseek_v3", "num_experts_per_tok": 999}, "top_k"),
        ({"model_type": "gemma3", "text_config": 3}, "text_config"),
        ({"model_type": "llama", "quantization_config": "gptq"}, "quantization_config"),
        ({"model_type": "smollm3", "no_rope_layers": [1, 0, 1, 1, 1]}, "no_rope_layers"),
        ("[1]", "object"),
        ('{"model_type": "llama", "vocab_size": NaN}', "NaN"),
        ('{"model_type": "llama", "vocab_size": 1e999}', "vocab_size"),
        ('{"model_type": "gpt2", "resid_pdrop": Infinity}', "resid_pdrop"),
        ("[" * 100_000, "JSON"),
        ("{", "JSON"),
        ("\x00\x01", "JSON"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_field(tmp_path: Path, config: object, said: str) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, config)
    assert said in caught.value.message
    assert "config.json" in caught.value.message
    assert "\x1b" not in caught.value.message


def test_a_near_type_is_offered(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, {"model_type": "qwen3moe"})
    assert "qwen3_moe" in caught.value.candidates


def test_files_that_are_none(tmp_path: Path) -> None:
    for path, said in (
        (tmp_path, "no config.json"),
        (tmp_path / "x.json", "no such file"),
        (Path("/dev/null"), "/dev/"),
    ):
        with pytest.raises(DataError, match=said):
            model_from_config(path)
    (tmp_path / "config.json").write_bytes(b" " * 5_000_000)
    with pytest.raises(DataError, match="larger"):
        model_from_config(tmp_path)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = {key for row in CLASSES for key in row["config"] if key != "model_type"} | {
    *("layer_types", "rope_parameters", "text_config", "quantization_config", "attn_config", "sliding_window"),
    *("no_rope_layers", "moe_layers", "partial_rotary_factor", "attention_layers"),
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    kind=st.sampled_from(sorted(FAMILIES)),
    fields=st.dictionaries(st.sampled_from(sorted(KEYS)), JSON_VALUES, max_size=4),
)
def test_strange_fields_give_a_model_or_a_clear_error(tmp_path: Path, kind: str, fields: dict[str, Any]) -> None:
    try:
        model = read(tmp_path, {"model_type": kind, **fields})
    except DataError as error:
        assert error.exit_code == 3
        assert "config.json" in error.message
    else:
        assert parameters(model).total > 0


def test_sizes_that_a_file_does_not_state_are_told(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama", "num_hidden_layers": 2}')
    notes = model_from_config(tmp_path).notes
    assert notes.startswith("hidden_size, vocab_size not in the file")


@pytest.mark.parametrize("text", ["{}", '{"model_type": "unheard"}'])
def test_an_error_names_the_file_once(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(DataError) as caught:
        model_from_config(tmp_path)
    assert caught.value.message.count("config.json") == 1


def test_an_unknown_type_is_told_that_weights_will_do(tmp_path: Path) -> None:
    for weights, said in ((False, "beside it would do"), (True, f"give the folder, '{tmp_path}'")):
        (tmp_path / "config.json").write_text('{"model_type": "wombat_7"}')
        if weights:
            (tmp_path / "model.safetensors").touch()
        with pytest.raises(DataError) as caught:
            model_from_file(tmp_path / "config.json")
        assert (caught.value.code, said in caught.value.hint) == ("unknown-model-type", True)


def test_what_a_configuration_leaves_open_is_told_with_the_answer(tmp_path: Path) -> None:
    from llmfeas.settle import resolution

    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    found = resolution({"model": str(tmp_path), "device": "rtx-4090", "task": "lora"}, catalog())
    assert ["hidden_size" in note.message for note in found.warnings if note.code == "imported-model"] == [True]


def test_a_feed_forward_of_no_width_is_refused(tmp_path: Path) -> None:
    config = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 0, "num_attention_heads": 4}
    with pytest.raises(DataError, match="intermediate_size is 0"):
        read(tmp_path, {**config, "num_hidden_layers": 2, "vocab_size": 100})


def test_a_width_of_zero_that_no_layer_has_is_none(tmp_path: Path) -> None:
    """Mixtures of experts in every layer leave it so."""
    config = next(row["config"] for row in CLASSES if row["config"]["model_type"] == "qwen3_moe")
    assert read(tmp_path, {**config, "intermediate_size": 0}).architecture.ffn is None


def test_minimax_m3_as_published_equals_its_class(tmp_path: Path, models: dict[str, Model]) -> None:
    """The file names an activation of its own and marks sparse layers and those of experts one by one."""
    marks = [0] * 3 + [1] * 57
    sparse = {"sparse_index_dim": 128, "sparse_num_index_heads": 4, "sparse_attention_freq": marks}
    text = {
        "hidden_size": 6144,
        "num_hidden_layers": 60,
        "num_attention_heads": 64,
        "num_key_value_heads": 4,
        "intermediate_size": 3072,
        "dense_intermediate_size": 12288,
        "shared_intermediate_size": 3072,
        "head_dim": 128,
        "vocab_size": 200064,
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
        "n_shared_experts": 1,
        "moe_layer_freq": marks,
        "hidden_act": "swigluoai",
        "partial_rotary_factor": 0.5,
        "sparse_attention_config": sparse,
        "max_position_embeddings": 1048576,
    }
    found = read(tmp_path, {"model_type": "minimax_m3_vl", "text_config": text})
    assert parameters(found).total == 427_040_132_864
    assert found.architecture == models["minimax-m3"].architecture


SO400M = {"model_type": "siglip_vision_model", "hidden_size": 1152, "num_hidden_layers": 27, "intermediate_size": 4304}
WINDOWS = {"hidden_size": 1280, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31]}


@pytest.mark.parametrize(
    ("model", "kind", "text", "vision"),
    [
        ("qwen2-vl-7b", "qwen2_vl", "qwen2_vl_text", {"embed_dim": 1280}),
        ("qwen2.5-vl-7b", "qwen2_5_vl", "qwen2_5_vl_text", WINDOWS),
        ("qwen3-vl-8b", "qwen3_vl", "qwen3_vl_text", {"depth": 27, "hidden_size": 1152}),
        ("mistral-small-3.1-24b", "mistral3", "mistral", {"patch_size": 14}),
        ("gemma-3-4b", "gemma3", "gemma3_text", {**SO400M, "image_size": 896, "patch_size": 14}),
        ("paligemma-3b", "paligemma", "gemma", {**SO400M, "image_size": 224, "patch_size": 14}),
        ("internvl3-8b", "internvl", "qwen2", {}),
    ],
)
def test_an_image_makes_as_many_tokens_as_of_the_catalogs_model(
    tmp_path: Path, models: dict[str, Model], model: str, kind: str, text: str, vision: dict[str, Any]
) -> None:
    said = {"mm_tokens_per_image": 256} if kind == "gemma3" else {"spatial_merge_size": 2}
    config = {"model_type": kind, "text_config": {"model_type": text}, "vision_config": vision, **said}
    found, known = read(tmp_path, config), models[model]
    assert found.image_tokens == known.image_tokens
    assert found.image_encoder is not None and known.image_encoder is not None
    assert replace(found.image_encoder, parameters=0) == replace(known.image_encoder, parameters=0)


def test_a_model_whose_rule_is_not_known_has_no_image_tokens(tmp_path: Path) -> None:
    config = {"model_type": "idefics3", "text_config": {"model_type": "llama"}, "vision_config": {}}
    assert read(tmp_path, config).image_tokens == 0


def test_one_width_of_gemma_3n_is_that_of_all_layers(tmp_path: Path) -> None:
    wide, narrow = (
        read(tmp_path, {"model_type": "gemma3n_text", "intermediate_size": width}).architecture
        for width in ([512] * 35, 512)
    )
    assert narrow == wide and narrow.ffn == 512

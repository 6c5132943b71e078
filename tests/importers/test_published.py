"""Quantized checkpoints by their configuration alone: the bytes that their files hold, and who is left out."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import safetensors_files

from llmfeas.errors import DataError
from llmfeas.importers.model_file import model_from_file
from llmfeas.importers.quantized.modules import Modules, is_tame
from llmfeas.importers.stores.hub_cache import name_of
from llmfeas.importers.tensors import ImportedModel
from llmfeas.planning.answer import bare_answer
from llmfeas.workload.published import with_published_bytes

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN_MOE = {
    "model_type": "qwen3_moe", "hidden_size": 4096, "intermediate_size": 12288, "moe_intermediate_size": 1536,
    "num_hidden_layers": 94, "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
    "num_experts_per_tok": 8, "vocab_size": 151936, "tie_word_embeddings": False,
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "first_k_dense_replace": 3, "vocab_size": 129280, "n_group": 8,
    "topk_group": 4, "num_nextn_predict_layers": 1,
}  # fmt: skip
KIMI = {**DEEPSEEK, "num_attention_heads": 64, "num_key_value_heads": 64, "n_routed_experts": 384, "vocab_size": 163840,
        "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "num_nextn_predict_layers": 0}  # fmt: skip
GPT_OSS = {
    "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "num_local_experts": 128,
    "num_experts_per_tok": 4, "vocab_size": 201088, "tie_word_embeddings": False,
}  # fmt: skip
SMALL = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "vocab_size": 512,
    "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


def packed(bits: int, group: int | None, ignore: list[str], **other: object) -> dict[str, object]:
    """The section that compressed-tensors writes."""
    weights = {"num_bits": bits, "type": "int", "strategy": "group", "group_size": group, "symmetric": True, **other}
    form = other.get("form", "pack-quantized")
    groups = {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}}
    return {"quant_method": "compressed-tensors", "format": form, "ignore": ignore, "config_groups": groups}


def read(folder: Path, config: dict[str, Any], beside: dict[str, Any] | None = None) -> ImportedModel:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if beside is not None:
        (folder / "hf_quant_config.json").write_text(json.dumps(beside))
    return with_published_bytes(model_from_file(folder))


KIMI_INT4 = packed(
    4, 32, ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", r"re:.*mlp\.(gate|up|gate_up|down)_proj.*"]
)
PUBLISHED = {
    # The totals of the checkpoints' own indices, or what the hub shows of them.
    "DeepSeek-V3": ({**DEEPSEEK, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}},
                    688_586_727_753, "fp8"),
    "gpt-oss-120b": ({**GPT_OSS, "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": [
                      "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}},
                     65_248_815_744, "mxfp4"),
    "Kimi-K2-Thinking": ({**KIMI, "model_type": "kimi_k2", "quantization_config": KIMI_INT4}, 594e9, "gptq-int4"),
    "Kimi-K2.5": ({"model_type": "kimi_k25", "text_config": {**KIMI, "quantization_config": KIMI_INT4}}, 595e9,
                  "gptq-int4"),
    "Llama-3.1-8B-Instruct-quantized.w4a16": ({**LLAMA, "quantization_config": packed(4, 128, ["lm_head"])}, 5.7e9,
                                              "gptq-int4"),
    "Llama-3.1-8B-Instruct-AWQ-INT4": ({**LLAMA, "quantization_config": {
        "quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "modules_to_not_convert": None}},
        5.73e9, "awq-int4"),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_bytes_are_within_a_percent_of_what_is_published(tmp_path: Path, name: str) -> None:
    config, published_bytes, quant = PUBLISHED[name]
    found = read(tmp_path / "model", config)
    assert found.file_bytes == pytest.approx(published_bytes, rel=0.01)
    assert (found.quant, found.model.published_quant) == (quant, quant)


def test_model_optimizer_says_it_beside_the_configuration(tmp_path: Path) -> None:
    routers = [f"model.layers.{index}.mlp.gate" for index in range(94)]
    quantization = {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16}
    section = {"quantization": {**quantization, "exclude_modules": ["lm_head", *routers]}}
    found = read(tmp_path / "m", QWEN_MOE, section)
    # Nine bytes for sixteen weights; embedding, head, routers and norms in 16 bits.
    whole, plain = 235_093_634_560, 2 * 151936 * 4096 + 94 * (128 * 4096 + 2 * 4096 + 2 * 128) + 4096
    assert found.quant == "nvfp4"
    assert found.file_bytes == pytest.approx((whole - plain) * 9 / 16 + 2 * plain, rel=1e-6)
    answer = bare_answer({"model": str(tmp_path / "m"), "device": "b200", "num_devices": 2, "task": "inference"})
    estimate = answer.to_dict()
    assert estimate["result"]["memory"]["weights_file_bytes"] == found.file_bytes  # type: ignore[index]
    assert estimate["inputs"]["quant"]["value"] == "nvfp4"  # type: ignore[index]
    assert estimate["inputs"]["engine"]["value"] == "vllm"  # type: ignore[index]


def test_attention_that_is_left_out_stays_in_16_bits(tmp_path: Path) -> None:
    def bytes_without(*excluded: str) -> int:
        section = {"quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head", *excluded]}}
        return read(tmp_path / "m", DEEPSEEK, section).file_bytes or 0

    all_of_it = bytes_without()
    by_layer = bytes_without(*(f"model.layers.{index}.self_attn*" for index in range(62)))
    assert by_layer == bytes_without("*self_attn*") == bytes_without("self_attn") > 1.02 * all_of_it


METHODS: dict[str, tuple[dict[str, Any], float]] = {
    # What 4096 weights of a row of 256 take, by the method's own layout.
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": 128}, 0.5 + 2.5 / 128),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 64}, 0.5 + 2.5 / 64),
    "auto-round": ({"quant_method": "auto-round", "bits": 2, "group_size": 32,
                    "packing_format": "auto_round:auto_gptq"}, 0.25 + 2.25 / 32),
    "nf4": ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, 8452 / 16384),
    "modelopt": ({"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]}, 1.0),
    "quark": ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4", "group_size": 32}},
               "exclude": ["lm_head"]}, 17 / 32),
    "torchao": ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int4WeightOnlyConfig",
                 "_data": {"group_size": 32}}}}, 0.5 + 4 / 32),
    "hqq": ({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}},
            0.5 + 4 / 64),
    "hqq of 3 bits": ({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 3, "group_size": 64}}},
                      0.4 + 4 / 64),
    "exl3": ({"quant_method": "exl3", "bits": 3.0, "head_bits": 16}, 3 / 8),
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_each_method_has_its_layout(tmp_path: Path, method: str) -> None:
    section, each = METHODS[method]
    found = read(tmp_path / "m", {**SMALL, "quantization_config": section})
    assert found.stored is not None
    matrices = 2 * 256 * (256 + 128 + 128 + 256 + 3 * 512)
    indices = 2 * 4 * (6 * 256 + 512) if method == "gptq" else 0
    assert sum(found.stored.layers) - sum(found.stored.layer_vectors) == pytest.approx(
        matrices * each + indices, rel=1e-3
    )
    assert found.stored.head == 2 * 512 * 256


@pytest.mark.parametrize("method", [*METHODS, "mlx"])
def test_a_head_that_shares_the_embedding_is_stored_once(tmp_path: Path, method: str) -> None:
    section = METHODS[method][0] if method in METHODS else {"group_size": 64, "bits": 4}
    own, shared = (
        read(tmp_path / f"{tied}", {**SMALL, "tie_word_embeddings": tied, "quantization_config": section}).stored
        for tied in (False, True)
    )
    assert own is not None and shared is not None
    assert shared.head == own.tables > 0 == shared.tables
    assert shared.total == own.total - own.head


def test_layers_of_their_own_are_read(tmp_path: Path) -> None:
    kept = {"bits": 16, "data_type": "float"}
    plain = {"quant_method": "auto-round", "bits": 4, "group_size": 128}
    whole = read(tmp_path / "a", {**SMALL, "quantization_config": plain})
    part = read(
        tmp_path / "b",
        {**SMALL, "quantization_config": {**plain, "extra_config": {"model.layers.1.mlp.down_proj": kept}}},
    )
    assert whole.stored is not None
    assert part.stored is not None
    assert part.stored.layers[0] == whole.stored.layers[0]
    assert part.stored.layers[1] - whole.stored.layers[1] == pytest.approx(256 * 512 * (2 - 0.5 - 2.5 / 128), abs=2)


def test_codebooks_of_aqlm_and_scales_of_bitnet_count_once_for_each_matrix(tmp_path: Path) -> None:
    aqlm = {"quant_method": "aqlm", "nbits_per_codebook": 8, "num_codebooks": 2, "in_group_size": 8,
            "out_group_size": 1}  # fmt: skip
    weights, rows, matrices = 2 * 256 * (768 + 3 * 512), 2 * (768 + 2 * 512 + 256), 2 * 7
    for section, expected in (
        (aqlm, weights / 4 + 2 * rows + matrices * 2 * 256 * 8 * 2),
        ({"quant_method": "bitnet"}, weights / 4 + 2 * matrices),
    ):
        found = read(tmp_path / "m", {**SMALL, "quantization_config": section})
        assert found.stored is not None
        assert sum(found.stored.layers) - sum(found.stored.layer_vectors) == expected
        assert found.stored.head == 2 * 512 * 256
    assert read(tmp_path / "m", {**SMALL, "quantization_config": aqlm}).quant == "aqlm-2bit-2x8"


def test_experts_may_be_narrower_than_the_rest(tmp_path: Path) -> None:
    fp8 = {"quant_method": "fp8", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"}
    found = read(tmp_path / "m", {**DEEPSEEK, "expert_dtype": "fp4", "quantization_config": fp8})
    assert found.stored is not None
    assert found.quant == "mxfp4"
    assert found.stored.routed[-1] == 256 * 3 * 7168 * 2048 * 17 // 32
    plain = read(tmp_path / "m", {**DEEPSEEK, "quantization_config": fp8})
    assert plain.stored is not None and plain.stored.layers[0] == pytest.approx(found.stored.layers[0], rel=1e-3)


@pytest.mark.parametrize("section", [{"config_groups": {}}, {"quant_method": "compressed-tensors", "ignore": []}])
def test_a_section_that_says_nothing_is_no_known_method(tmp_path: Path, section: dict[str, object]) -> None:
    found = read(tmp_path / "m", {**SMALL, "quantization": "a word", "quantization_config": section})
    assert found.stored is None and "16 bits" in found.notes[0]


def test_an_unknown_method_is_said(tmp_path: Path) -> None:
    found = read(tmp_path / "m", {**SMALL, "quantization_config": {"quant_method": "vptq"}})
    assert found.stored is None
    assert "vptq" in found.notes[0]
    assert "16 bits" in found.notes[0]


def test_wrong_fields_are_said_with_their_place(tmp_path: Path) -> None:
    for section in ({"quant_method": "gptq", "bits": "four"}, {"quant_method": "awq", "bits": 99},
                    {"quant_method": "fp8", "modules_to_not_convert": "lm_head"}):  # fmt: skip
        with pytest.raises(DataError, match=r"quantization_config\."):
            read(tmp_path / "m", {**SMALL, "quantization_config": section})


def test_patterns_cannot_take_long() -> None:
    assert is_tame(r".*mlp\.(gate|up|gate_up|down)_proj.*")
    assert is_tame(r".*\.(self_attn|linear_attn)\.[qkvo]_proj$")
    assert not any(is_tame(bad) for bad in ("(a+)+$", "((.*)x)*y", "(a|a)*b", "(", "(?:.+){9}z", ".*" * 9))
    before = time.process_time()
    modules = Modules.of(["re:(.*)*!", "re:(\\w+)+$", "*" * 300, *(f"a{index}*" for index in range(3000))])
    assert not modules.hold("layers.0." + "q" * 200)
    assert time.process_time() - before < 2


def test_fp4_files_are_told_apart_by_their_scales(tmp_path: Path) -> None:
    for folder, group, kind in (("nv", 16, "F8_E4M3"), ("mx", 32, "U8")):
        tensors: dict[str, tuple[list[int], str]] = {}
        (tmp_path / folder).mkdir()
        for index in range(2):
            for name, rows, columns in (
                ("self_attn.q_proj", 256, 256), ("self_attn.k_proj", 128, 256), ("self_attn.v_proj", 128, 256),
                ("self_attn.o_proj", 256, 256), ("mlp.gate_proj", 512, 256), ("mlp.up_proj", 512, 256),
                ("mlp.down_proj", 256, 512),
            ):  # fmt: skip
                base = f"model.layers.{index}.{name}"
                tensors[f"{base}.weight"] = ([rows, columns // 2], "U8")
                tensors[f"{base}.weight_scale"] = ([rows, columns // group], kind)
            tensors[f"model.layers.{index}.input_layernorm.weight"] = ([256], "BF16")
            tensors[f"model.layers.{index}.post_attention_layernorm.weight"] = ([256], "BF16")
        tensors |= {"model.embed_tokens.weight": ([512, 256], "BF16"), "lm_head.weight": ([512, 256], "BF16"),
                    "model.norm.weight": ([256], "BF16")}  # fmt: skip
        safetensors_files.write(tmp_path / folder / "model.safetensors", tensors)
        (tmp_path / folder / "config.json").write_text(json.dumps(SMALL))
        found = model_from_file(tmp_path / folder)
        assert found.quant == {"nv": "nvfp4", "mx": "mxfp4"}[folder]
        alone = read(tmp_path / "alone", SMALL, {"quantization": {
            "quant_algo": {"nv": "NVFP4", "mx": "MXFP4"}[folder], "exclude_modules": ["lm_head"]}})  # fmt: skip
        assert found.stored is not None
        assert alone.file_bytes == found.stored.total


def test_a_folder_of_the_cache_is_called_after_its_repository(tmp_path: Path) -> None:
    repository = tmp_path / "models--some-org--Small-8B"
    commit = "0123456789abcdef0123456789abcdef01234567"
    (repository / "blobs").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    (repository / "snapshots" / commit).mkdir(parents=True)
    (repository / "blobs" / "abc").write_text(json.dumps(SMALL))
    link = repository / "snapshots" / commit / "config.json"
    link.symlink_to(Path("..") / ".." / "blobs" / "abc")
    for place in (repository, link.parent, link):
        assert model_from_file(place).model.name == "some-org/Small-8B"
    assert name_of(tmp_path / "folder") == "folder"
    link.unlink()
    os.rmdir(link.parent)  # noqa: PTH106
    with pytest.raises(DataError, match="holds no snapshot"):
        model_from_file(repository)


@pytest.mark.parametrize(
    ("kind", "outer", "inner", "tied"),
    [("qwen2_5_vl", True, False, True), ("qwen2_5_vl", False, True, True), ("qwen3_vl", True, None, True),
     ("qwen3_vl", False, True, False), ("qwen3_vl", None, None, False)],
)  # fmt: skip
def test_heads_of_models_with_images_are_tied_as_their_classes_have_it(
    tmp_path: Path, kind: str, outer: bool | None, inner: bool | None, tied: bool
) -> None:
    text = {key: value for key, value in SMALL.items() if key not in ("model_type", "tie_word_embeddings")}
    config: dict[str, Any] = {
        "model_type": kind,
        "text_config": text if inner is None else {**text, "tie_word_embeddings": inner},
    }
    found = read(tmp_path / "m", config if outer is None else {**config, "tie_word_embeddings": outer})
    assert found.model.architecture.tied is tied

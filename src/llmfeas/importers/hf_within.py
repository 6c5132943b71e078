"""Rows of language models that are found inside models of images or sounds and nowhere else.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..catalog.parts import SideWeights
from ..record import replace
from . import hf_parts as read
from .config_file import Config
from .hf_encoder import class_of
from .hf_latent import LATENT, indexer
from .hf_llama import LLAMA
from .hf_moe import MOE
from .hf_parts import ATTENTION_DROPOUT, BIASED, BIASED_LAYERS, ROUTED_EXPERTS, Family, Parts, sizes
from .hf_recent import RECENT
from .hf_sound import MIMI, mimi


def _like(family: Family, defaults: Mapping[str, Any], *more: read.Part, **fixed: Any) -> Family:
    """The same class under another name, with defaults of its own and perhaps something more in it."""
    return replace(
        family,
        defaults={**family.defaults, **defaults},
        parts=(*family.parts, *more),
        fixed={**family.fixed, **fixed},
    )


def _time_norm(_: Config, parts: Parts) -> Parts:
    """Two narrow products a layer that scale its norm by how far the sound has come (Voxtral Realtime)."""
    hidden = parts["hidden"]
    side = SideWeights(matrices=((hidden, _TIME_RANK), (_TIME_RANK, hidden)))
    return {"beside": [side] * parts["layers"]}


_TIME_RANK: Final = 32


def _further_words(config: Config, parts: Parts) -> Parts:
    """Rows of the embedding that the head lacks (Molmo)."""
    rows = config.optional_count("additional_vocab_size", "rows", zero=True) or 0
    return {"side": SideWeights(vectors=rows * parts["hidden"])} if rows else {}


def _ernie_pairs(config: Config, parts: Parts) -> Parts:
    """Read ERNIE's pairs of experts for text and for images; the former are the language model's."""
    fields = {key: _first(config.raw(key)) for key in _PAIRED}
    whole = replace(config, fields={**config.fields, **{key: value for key, value in fields.items() if value}})
    found: Parts = {}
    for part in RECENT["ernie4_5_moe"].parts:
        found |= part(whole, {**parts, **found})
    return {**found, **read.listed_experts(whole, {**parts, **found})}


_PAIRED: Final = ("moe_intermediate_size", "moe_num_experts", "moe_layer_start_index", "moe_layer_end_index")


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _scaled_index(config: Config, parts: Parts) -> Parts:
    """Mistral Large 4: a norm before each indexer, and two numbers a head that scale what both softmaxes see.

    Layers without rotation make no rotated key and unpack that much more of the latent one.
    """
    found, hidden, mla = indexer(config, parts), parts["hidden"], parts["mla"]
    vectors = 2 * parts["heads"]
    if "indexer" in found:
        vectors += 2 * hidden + 2 * found["indexer"].heads
    more = mla.rope_head_dim * (parts["heads"] * mla.kv_lora_rank - hidden)
    rotates = config.numbers("no_rope_layers", 10_000) or [(index + 1) % 4 for index in range(parts["layers"])]
    if len(rotates) < parts["layers"]:
        raise config.wrong("no_rope_layers", f"names {len(rotates)} of {parts['layers']} layers")
    sides = [SideWeights(vectors=vectors + (0 if turns else max(0, more))) for turns in rotates]
    return {**found, "beside": sides, "rotates": [bool(turns) for turns in rotates]}


def _git(config: Config, parts: Parts) -> Parts:
    """Read GIT, which looks at frames of a film with a vector for each of them."""
    frames = config.optional_count("num_image_with_embedding", "few", zero=True) or 0
    seen = config.nested("vision_config")
    width = (seen.optional_count("hidden_size") if seen is not None else None) or 768
    return {"side": SideWeights(vectors=frames * width)} if frames else {}


def _moshi(config: Config, parts: Parts) -> Parts:
    """Read Moshi: half of the width that it says is its feed-forward's; a class that speaks has tables for two voices,
    a small decoder with weights for each book of sounds, and what makes sound of them."""
    hidden = parts["hidden"]
    found: Parts = {"ffn": parts["ffn"] // 2, **read.every_layer_windowed(config, parts)}
    if class_of(config) == "CausalLM":
        return {**found, "side": SideWeights(vectors=hidden)}
    books = config.count("num_codebooks", "few")
    codec = (
        config.nested("audio_encoder_config") or Config(config.file, {}, {}, "audio_encoder_config.")
    ).with_defaults(MIMI)
    rows = config.optional_count("audio_vocab_size", "rows") or codec.count("codebook_size", "rows")
    depth = config.nested("depth_decoder_config") or Config(config.file, {}, {}, "depth_decoder_config.")
    return {
        **found,
        "side": SideWeights(vectors=hidden, table=(2 * books * (rows + 1), hidden)),
        "tower_parameters": _depth(depth, parts, books, rows) + mimi(codec),
    }


def _depth(config: Config, parts: Parts, books: int, rows: int) -> int:
    """Parameters of Moshi's decoder of the books of sounds of one moment, each with weights of its own."""
    config = config.with_defaults(
        {"hidden_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 16, "ffn_dim": 5632}
    )
    width, heads = config.count("hidden_size"), config.count("num_attention_heads", "heads")
    outer: int = parts["hidden"]
    head = config.optional_count("head_dim") or width // heads
    keys = config.optional_count("num_key_value_heads", "heads") or heads
    ffn = config.count("ffn_dim")
    attention = 2 * width * (heads + keys) * head
    layer = books * (attention + width * ffn + ffn // 2 * width) + 2 * width
    tables: int = (parts["vocab"] + 1 + (books - 1) * (rows + 1)) * width
    return tables + books * width * (outer + rows) + config.count("num_hidden_layers", "layers") * layer


WITHIN: Final[Mapping[str, Family]] = {
    "glm_ocr_text": _like(
        LLAMA["glm4"],
        sizes(16, 1024, 16, 8, 4096, 59392, 131072, head_dim=None, attention_bias=False),
    ),
    "glm4v_text": _like(LLAMA["glm4"], {"max_position_embeddings": 32768, "head_dim": None}),
    "glm4v_moe_text": _like(LATENT["glm4_moe"], {"attention_bias": True}),
    "paddleocr_vl_text": LLAMA["ernie4_5"],
    "qwen2_5_omni_text": _like(LLAMA["qwen2"], sizes(28, 3584, 28, 4, 18944, 152064, 32768)),
    "qwen3_omni_moe_text": _like(
        MOE["qwen3_moe"], sizes(28, 2048, 28, 4, 18944, 3584, 32768, num_experts=128, head_dim=None)
    ),
    "voxtral_realtime_text": _like(
        LLAMA["mistral"],
        sizes(26, 3072, 32, 8, 9216, 131072, 131072, head_dim=128, sliding_window=8192, tie_word_embeddings=True),
        _time_norm,
    ),
    "molmo2_text": _like(
        LLAMA["qwen3"], sizes(36, 4096, 32, 8, 12288, 151936, 36864, additional_vocab_size=128), _further_words
    ),
    "muse_glimmer_text": Family(
        implementation="hf-recent",
        names={"activation": "hidden_activation"},
        defaults=sizes(52, 6656, 32, 2, 19968, 202048, 131072, head_dim=128, sliding_window=2048),
        fixed={"norms_per_layer": 4, "output_gate": True},
        parts=(BIASED, read.windows(4), ATTENTION_DROPOUT),
    ),
    "granite_docling_text": _like(
        LLAMA["granite"], sizes(28, 1024, 16, 4, 2048, 133800, 32768, tie_word_embeddings=True)
    ),
    "unlimited_ocr_text": _like(
        LATENT["deepseek"],
        sizes(
            *(12, 1280, 10, 10, 6848, 129280, 32768),
            moe_intermediate_size=896,
            n_routed_experts=64,
            n_shared_experts=2,
            num_experts_per_tok=6,
            first_k_dense_replace=1,
            head_dim=128,
        ),
        read.listed_experts,
    ),
    "ernie4_5_vl_moe_text": replace(
        _like(RECENT["ernie4_5_moe"], {"head_dim": None, "moe_intermediate_size": [1536, 512]}), parts=(_ernie_pairs,)
    ),
    "mistral_large4_text": Family(
        implementation="hf-deepseek-v3",
        defaults=sizes(
            *(72, 6144, 64, 64, 24576, 204800, 1048576),
            moe_intermediate_size=6144,
            n_shared_experts=1,
            n_routed_experts=128,
            num_experts_per_tok=4,
            kv_lora_rank=512,
            qk_rope_head_dim=64,
            v_head_dim=128,
            qk_nope_head_dim=64,
            first_k_dense_replace=1,
            index_topk=2048,
            index_head_dim=128,
            index_n_heads=32,
        ),
        parts=(BIASED, read.latent, ROUTED_EXPERTS, read.listed_experts, _scaled_index, ATTENTION_DROPOUT),
    ),
    "git": Family(
        implementation="hf-git",
        defaults={
            **sizes(6, 768, 12, None, 3072, 30522, 1024),
            "hidden_act": "gelu",
            "hidden_dropout_prob": 0.1,
            "attention_probs_dropout_prob": 0.1,
        },
        fixed={
            **BIASED_LAYERS,
            "positions": "learned",
            "norm_position": "post",
            "final_norm": False,
            "embedding_norm": True,
            "head_bias": True,
        },
        parts=(
            _git,
            read.dropout(
                embedding="hidden_dropout_prob",
                attention="attention_probs_dropout_prob",
                residual="hidden_dropout_prob",
            ),
        ),
    ),
    "moshi": Family(
        implementation="hf-moshi",
        names={"ffn": "ffn_dim"},
        defaults=sizes(*(32, 4096, 32, None, 0, 32000, 3000), ffn_dim=22528, sliding_window=3000, num_codebooks=8),
        fixed={"fused_gate_up": True},
        parts=(_moshi, ATTENTION_DROPOUT),
    ),
}

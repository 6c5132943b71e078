"""Rows of model types in the manner of DeepSeek: shared experts, latent attention, identity experts.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..catalog.parts import Indexer, Mla, NgramEmbedding, SideWeights
from . import hf_parts as read
from .config_file import Config
from .hf_parts import ATTENTION_DROPOUT, BIASED, QKV_BIASED, ROUTED_EXPERTS, Family, Parts, sizes

_LATENT: Final = {
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
_DEEPSEEK_EXPERTS: Final = read.experts(
    count=("n_routed_experts",),
    shared="n_shared_experts",
    first_dense="first_k_dense_replace",
    step="moe_layer_freq",
    dense="intermediate_size",
)
_LONGCAT_EXPERTS: Final = read.experts(
    count=("n_routed_experts",),
    top_k="moe_topk",
    width="expert_ffn_hidden_size",
    zero="zero_expert_num",
    dense="ffn_hidden_size",
    expected_real=True,
    parallel_dense=True,
)
_LONGCAT_SIZES: Final = {
    **sizes(28, 6144, 64, None, 12288, 131072, 131072),
    **_LATENT,
    "num_layers": 28,
    "ffn_hidden_size": 12288,
    "moe_topk": 12,
    "n_routed_experts": 512,
    "zero_expert_num": 256,
    "expert_ffn_hidden_size": 2048,
}


def _head_norm(config: Config, _: Parts) -> Parts:
    return {"qk_norm": "head" if config.flag("use_qk_norm") else "none"}


def _ngrams(config: Config, _: Parts) -> Parts:
    return {
        "ngram": NgramEmbedding(
            ratio=config.number("ngram_vocab_size_ratio", 0.0),
            max_order=config.count("emb_neighbor_num", "few"),
            splits=config.count("emb_split_num", "few"),
        )
    }


def _deepseek(implementation: str, defaults: Mapping[str, Any]) -> Family:
    return Family(
        implementation=implementation,
        defaults={**defaults, **{key: defaults.get(key, value) for key, value in _LATENT.items()}},
        parts=(BIASED, read.latent, _DEEPSEEK_EXPERTS, ATTENTION_DROPOUT),
        only={"mlp_bias": (False, None)},
    )


_DEEPSEEK_V3: Final = _deepseek(
    "hf-deepseek-v3",
    sizes(
        *(61, 7168, 128, None, 18432, 129280, 4096),
        moe_intermediate_size=2048,
        n_shared_experts=1,
        n_routed_experts=256,
        num_experts_per_tok=8,
        first_k_dense_replace=3,
    ),
)


def indexer(config: Config, parts: Parts) -> Parts:
    """Read the indexer of sparse attention, and which layers take the choice of the one before them."""
    heads = config.optional_count("index_n_heads", "heads")
    if heads is None:
        return {}
    found: Parts = {
        "indexer": Indexer(
            heads=heads, head_dim=config.count("index_head_dim"), top_k=config.count("index_topk", "tokens")
        )
    }
    kinds = config.words("indexer_types", 10_000)
    if kinds is not None:
        found["indexes"] = [kind != "shared" for kind in kinds[: parts["layers"]]]
    return found


_LATENT_FIELDS: Final = (
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "v_head_dim",
    "num_attention_heads",
    "head_dim",
)


def _windowed_latent(config: Config) -> Mla:
    """Read latent attention of windowed layers: older files mark its fields (`swa_`), newer ones keep what differs by
    layer."""
    layered = config.nested("per_layer_config")
    first = next(iter(layered.fields), None) if layered is not None else None
    same = {key: config.raw(key) for key in (*_LATENT_FIELDS, "qk_rope_head_dim")}
    own, mark = (layered.nested(first, same), "") if layered is not None and first is not None else (None, "swa_")
    source = config if own is None else own
    queries, latent, nope, values = (source.count(f"{mark}{key}") for key in _LATENT_FIELDS[:4])
    rope = source.optional_count(f"{mark}qk_rope_head_dim")
    return Mla(
        q_lora_rank=queries,
        kv_lora_rank=latent,
        nope_head_dim=nope,
        rope_head_dim=rope or source.count(f"{mark}head_dim") - nope,
        v_head_dim=values,
        heads=source.count(f"{mark}num_attention_heads", "heads"),
    )


def _dots_layers(config: Config, parts: Parts) -> Parts:
    """Read dots3: windowed layers have latent attention of their own sizes, the others an indexer; all have a gate a
    head and a norm of the rotated key."""
    layers, hidden, mla = parts["layers"], parts["hidden"], parts["mla"]
    kinds = config.words("layer_types", 10_000)
    if kinds is None:
        slides = config.raw("use_sliding_window") is not False
        kinds = tuple(
            "sliding_attention" if slides and i > 1 and i % 4 != 1 else "full_attention" for i in range(layers)
        )
    picks = config.raw("use_dsa")
    if picks is None and config.raw("per_layer_config") is None:
        picks = True
    size = config.optional_count("sliding_window", "tokens") or config.count("sliding_window_size", "tokens")
    plain = ["full_attention" if kind == "indexed_attention" else kind for kind in kinds]
    found = read.pattern(config, "layer_types", plain, layers, size)
    windowed = found.get("windowed", [False] * layers)
    own = _windowed_latent(config)
    shapes = [(own.heads, own.rope_head_dim) if local else (parts["heads"], mla.rope_head_dim) for local in windowed]
    return {
        **found,
        **indexer(config, parts),
        "windowed_mla": own,
        "indexes": [
            not local and (picks or (picks is None and kind == "indexed_attention"))
            for kind, local in zip(kinds, windowed, strict=False)
        ],
        "beside": [SideWeights(matrices=((hidden, heads),), vectors=rope) for heads, rope in shapes],
    }


_LATENT_PARTS: Final = (BIASED, read.latent, ROUTED_EXPERTS, read.listed_experts, ATTENTION_DROPOUT)

LATENT: Final[Mapping[str, Family]] = {
    "glm4_moe": Family(
        implementation="hf-glm4-moe",
        defaults=sizes(
            *(46, 4096, 96, 8, 10944, 151552, 131072),
            moe_intermediate_size=1408,
            num_experts_per_tok=8,
            n_shared_experts=1,
            n_routed_experts=128,
            first_k_dense_replace=1,
            partial_rotary_factor=0.5,
        ),
        parts=(QKV_BIASED, _head_norm, _DEEPSEEK_EXPERTS, read.rope_fraction, ATTENTION_DROPOUT),
    ),
    "deepseek": Family(
        implementation="hf-deepseek-moe",
        defaults=sizes(30, 4096, 32, None, 11008, 102400, 2048, moe_intermediate_size=1407, first_k_dense_replace=0),
        parts=(BIASED, _DEEPSEEK_EXPERTS, ATTENTION_DROPOUT),
    ),
    "deepseek_v2": _deepseek(
        "hf-deepseek-v2",
        sizes(
            *(32, 4096, 32, None, 11008, 102400, 2048),
            moe_intermediate_size=1407,
            n_shared_experts=2,
            n_routed_experts=64,
            first_k_dense_replace=0,
        ),
    ),
    "deepseek_v3": _DEEPSEEK_V3,
    "kimi_k2": _DEEPSEEK_V3,
    "longcat_flash": Family(
        implementation="hf-longcat",
        names={"layers": "num_layers", "ffn": "ffn_hidden_size"},
        defaults=_LONGCAT_SIZES,
        fixed={"attention_blocks": 2, "norms_per_layer": 4},
        parts=(BIASED, read.latent, _LONGCAT_EXPERTS, ATTENTION_DROPOUT),
        only={"router_bias": (False, None)},
    ),
    "longcat_flash_ngram": Family(
        implementation="hf-longcat",
        names={"layers": "num_layers", "ffn": "ffn_hidden_size"},
        defaults=_LONGCAT_SIZES,
        fixed={"attention_blocks": 2, "norms_per_layer": 4},
        parts=(BIASED, read.latent, _LONGCAT_EXPERTS, _ngrams, ATTENTION_DROPOUT),
        only={"router_bias": (False, None)},
    ),
    "dots3_note_text": Family(
        implementation="hf-recent-side",
        defaults=sizes(
            *(46, 5120, 128, 128, 13824, 152064, 524288),
            moe_intermediate_size=1536,
            moe_shared_expert_intermediate_size=1536,
            n_shared_experts=1,
            n_routed_experts=256,
            num_experts_per_tok=8,
            first_k_dense_replace=1,
            **{**_LATENT, "q_lora_rank": 1024},
            index_topk=2048,
            index_head_dim=128,
            index_n_heads=64,
            sliding_window_size=512,
            swa_num_attention_heads=64,
            swa_q_lora_rank=1024,
            swa_kv_lora_rank=1024,
            swa_head_dim=256,
            swa_qk_nope_head_dim=192,
            swa_v_head_dim=128,
        ),
        parts=(*_LATENT_PARTS, _dots_layers),
    ),
    "glm4_moe_lite": Family(
        implementation="hf-deepseek-v3",
        defaults=sizes(47, 2048, 20, None, 10240, 154880, 202752, n_shared_experts=1, n_routed_experts=64),
        parts=_LATENT_PARTS,
    ),
    "mistral4": Family(
        implementation="hf-deepseek-v3",
        defaults=sizes(36, 4096, 32, None, 12288, 131072, 1048576, n_shared_experts=1, n_routed_experts=128),
        parts=_LATENT_PARTS,
    ),
    "axk1": Family(
        implementation="hf-deepseek-v3",
        defaults=sizes(61, 7168, 64, None, 18432, 163840, 131072, n_shared_experts=1, n_routed_experts=192),
        parts=(
            BIASED,
            read.latent,
            read.experts(
                count=("n_routed_experts",),
                shared="n_shared_experts",
                first_dense="first_k_dense_replace",
                dense="intermediate_size",
                norms=1,
            ),
            read.listed_experts,
            ATTENTION_DROPOUT,
        ),
    ),
    "deepseek_v32": Family(
        implementation="hf-deepseek-v3",
        defaults=sizes(
            *(61, 7168, 128, None, 18432, 129280, 163840),
            n_shared_experts=1,
            n_routed_experts=256,
            first_k_dense_replace=3,
        ),
        parts=(*_LATENT_PARTS, indexer),
    ),
    "glm_moe_dsa": Family(
        implementation="hf-deepseek-v3",
        defaults=sizes(
            78, 6144, 64, None, 12288, 154880, 202752, n_shared_experts=1, n_routed_experts=256, first_k_dense_replace=3
        ),
        parts=(*_LATENT_PARTS, indexer),
    ),
    "youtu": Family(
        implementation="hf-deepseek-v3",
        defaults=sizes(32, 2048, 16, None, 6144, 128256, 131072, tie_word_embeddings=True),
        parts=(BIASED, read.latent, ATTENTION_DROPOUT),
    ),
    "minicpm3": Family(
        implementation="hf-deepseek-v3",
        defaults=sizes(62, 2560, 40, None, 6400, 73448, 32768, tie_word_embeddings=True),
        parts=(BIASED, read.latent, ATTENTION_DROPOUT),
    ),
}

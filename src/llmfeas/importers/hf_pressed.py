"""Rows of model types of 2026 with parallel residual streams, sparse attention by blocks, or caches pressed together.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
Sizes were compared with the classes on the meta device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..catalog.parts import CompressedAttention, Experts, Indexer, LinearAttention, SideWeights, Window
from . import hf_parts as read
from .config_file import Config
from .hf_latent import indexer
from .hf_parts import ATTENTION_DROPOUT, BIASED, PER_TOKEN_EXPERTS, QK_NORM, ROUTED_EXPERTS, Family, Parts, sizes
from .hf_side import Matrices


def _ring_indexer(config: Config, parts: Parts) -> Parts:
    """Read an indexer that the first layer and every fourth behind it have."""
    found: Parts = {
        "indexer": Indexer(
            heads=config.count("index_n_heads", "heads"),
            head_dim=config.count("index_head_dim"),
            top_k=config.count("index_topk", "tokens"),
        )
    }
    kinds = config.words("indexer_types", 10_000)
    if kinds is not None:
        found["indexes"] = [kind != "shared" for kind in kinds[: parts["layers"]]]
    return found


def _hy_indexer(config: Config, parts: Parts) -> Parts:
    found = _ring_indexer(config, parts)
    return {"indexes": [i == 0 or (i - 1) % 4 == 0 for i in range(parts["layers"])], **found}


def _gated_latent(config: Config, parts: Parts) -> Parts:
    """Read A.X K2: queries and an output gate from both sides of the queries' norm, norms with a gate of low rank."""
    heads, mla = parts["heads"], parts["mla"]
    rank, hidden = config.count("gated_norm_rank"), parts["hidden"]
    low = mla.q_lora_rank or hidden
    queries = [(low, heads * (mla.nope_head_dim + mla.rope_head_dim)), (low, 2 * heads * mla.v_head_dim)]
    gate = [(hidden, rank), (rank, hidden)]
    plain, gated = (SideWeights(matrices=(*queries, *gate * times)) for times in (1, 2))
    return {"beside": [gated if kind == "experts" else plain for kind in parts["feed_forward"]]}


def _hyper_connections(config: Config, parts: Parts, kinds: int, scales: int) -> tuple[Matrices, int]:
    """Two of a layer, each a matrix from all streams to `kinds` numbers, with a bias and scales."""
    streams = config.count("hc_mult", "few")
    return [(streams * parts["hidden"], kinds)] * 2, 2 * (kinds + scales)


def _hyper_head(config: Config, parts: Parts) -> SideWeights:
    streams = config.count("hc_mult", "few")
    return SideWeights(matrices=((streams * parts["hidden"], streams),), vectors=streams + 1)


def _hy_layers(config: Config, parts: Parts) -> Parts:
    """Read Hy 4: sinks and an output gate beside latent attention, and connections of parallel streams."""
    matrices, vectors = _hyper_connections(config, parts, 2 * config.count("hc_mult", "few"), 2)
    heads, mla = parts["heads"], parts["mla"]
    side = SideWeights(matrices=(*matrices, (parts["hidden"], heads * mla.v_head_dim)), vectors=vectors + heads)
    return {"beside": [side] * parts["layers"], "side": _hyper_head(config, parts)}


_PRESSED: Final = {
    "sliding_attention": (True, False),
    "compressed_sparse_attention": (False, True),
    "heavily_compressed_attention": (False, False),
}


def _pressed_layers(config: Config, parts: Parts) -> Parts:
    """Read DeepSeek-V4: what each layer presses together, connections of parallel streams."""
    layers: int = parts["layers"]
    rates = config.nested("compress_rates", {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128})
    assert rates is not None
    head, width = parts["head_dim"], config.rate("partial_rotary_factor")
    streams = config.count("hc_mult", "few")
    matrices, vectors = _hyper_connections(config, parts, (2 + streams) * streams, 3)
    kinds = _pressed_kinds(config, layers)
    return {
        "compressed_attention": CompressedAttention(
            q_rank=config.count("q_lora_rank"),
            rope_head_dim=config.optional_count("qk_rope_head_dim") or int(head * width) or 64,
            window=config.count("sliding_window", "tokens"),
            out_groups=config.count("o_groups", "few"),
            out_rank=config.count("o_lora_rank"),
            rate=config.optional_count("compress_rate_csa", "tokens") or rates.count("compressed_sparse_attention"),
            heavy_rate=config.optional_count("compress_rate_hca", "tokens")
            or rates.count("heavily_compressed_attention"),
            index_heads=config.count("index_n_heads", "heads"),
            index_head_dim=config.count("index_head_dim"),
            top_k=config.count("index_topk", "tokens"),
        ),
        "window": Window(size=config.count("sliding_window", "tokens")),
        "mixer": ["compressed_attention"] * layers,
        "windowed": [_PRESSED[kind][0] for kind in kinds],
        "indexes": [_PRESSED[kind][1] for kind in kinds],
        "beside": [SideWeights(matrices=tuple(matrices), vectors=vectors)] * layers,
        "side": _hyper_head(config, parts),
    }


def _pressed_kinds(config: Config, layers: int) -> Sequence[str]:
    kinds = config.words("layer_types", 10_000)
    ratios = config.numbers("compress_ratios", 10_000)
    if kinds is None and ratios is not None:
        names = dict(zip((0, 4, 128), _PRESSED, strict=True))
        kinds = tuple(names.get(ratio, "") for ratio in ratios)
    if kinds is None:
        by_turns = ("heavily_compressed_attention", "compressed_sparse_attention")
        kinds = tuple(by_turns[index % 2 if index > 1 else 0] for index in range(layers))
    if len(kinds) < layers or any(kind not in _PRESSED for kind in kinds[:layers]):
        raise config.wrong("layer_types", f"does not name {layers} known layers")
    return kinds[:layers]


def _bailing_layers(config: Config, parts: Parts) -> Parts:
    """Read Ling 3: every n-th layer keeps latent attention with a gate a head, the others a delta rule by channel."""
    layers: int = parts["layers"]
    group = config.count("layer_group_size", "layers")
    kinds = config.words("layer_types", 10_000) or tuple(
        "linear_attention" if (index + 1) % group else "full_attention" for index in range(layers)
    )
    heads, width = config.optional_count("linear_num_heads", "heads") or parts["heads"], 128
    width = config.optional_count("linear_head_dim") or width
    shape = LinearAttention(
        key_heads=heads,
        value_heads=heads,
        key_head_dim=width,
        value_head_dim=width,
        conv_kernel=config.count("short_conv_kernel_size", "few"),
        by_channel=True,
    )
    gate = SideWeights(matrices=((parts["hidden"], parts["heads"]),))
    names = {"linear_attention": "linear_attention", "full_attention": "attention", "attention": "attention"}
    if len(kinds) < layers or any(kind not in names for kind in kinds[:layers]):
        raise config.wrong("layer_types", f"does not name {layers} known layers")
    mixer = [names[kind] for kind in kinds[:layers]]
    return {
        "linear_attention": shape,
        "mixer": mixer,
        "beside": [gate if kind == "attention" else None for kind in mixer],
    }


def _glm_next_layers(config: Config, parts: Parts) -> Parts:
    """Read GLM 5.3 Flash: every fourth layer keeps latent attention, whose indexer presses keys together; the others
    a delta rule with decays of each channel. All connect parallel streams."""
    layers, hidden = parts["layers"], parts["hidden"]
    names = {"linear_attention": "linear_attention", "indexed_attention": "attention", "full_attention": "attention"}
    if config.raw("layer_types") is None:
        mixer = ["linear_attention" if (index + 1) % 4 else "attention" for index in range(layers)]
    else:
        mixer = read.mixers(config, parts, "layer_types", names)["mixer"]
    own = config.nested("linear_attn_config") or Config(config.file, {}, {})
    heads = own.optional_count("num_heads", "heads") or config.count("linear_num_heads", "heads")
    width = own.optional_count("head_dim") or config.count("linear_head_dim")
    shape = LinearAttention(
        key_heads=heads,
        value_heads=heads,
        key_head_dim=width,
        value_head_dim=width,
        conv_kernel=own.optional_count("short_conv_kernel_size", "few")
        or config.count("linear_conv_kernel_dim", "few"),
        channel_rank=width,
    )
    streams = config.count("hc_mult", "few")
    matrices, vectors = _hyper_connections(config, parts, (2 + streams) * streams, 3)
    plain = SideWeights(matrices=tuple(matrices), vectors=vectors)
    key = config.count("index_head_dim")
    press = SideWeights(matrices=(*matrices, (hidden, key)), vectors=vectors + config.count("index_kpool", "few") * key)
    found = indexer(config, parts)
    indexes = found.get("indexes", [True] * layers)
    return {
        **found,
        "linear_attention": shape,
        "mixer": mixer,
        "indexes": [kind == "attention" and has for kind, has in zip(mixer, indexes, strict=False)],
        "beside": [press if kind == "attention" else plain for kind in mixer],
    }


def _minimax_layers(config: Config, parts: Parts) -> Parts:
    """Read MiniMax M3: experts with a shared one, and indexers of blocks where attention is sparse."""
    layers: int = parts["layers"]
    sparse = config.nested("sparse_attention_config") or Config(config.file, {}, {})
    experts = Experts(
        count=config.count("num_local_experts", "experts"),
        top_k=config.count("num_experts_per_tok", "experts"),
        width=config.count("intermediate_size"),
        shared=1,
        shared_width=config.count("shared_intermediate_size"),
    )
    found: Parts = {"experts": experts, "ffn": None, "feed_forward": ["experts"] * layers}
    listed = read.listed_experts(config, {**parts, "ffn": 1})
    if "dense" in listed.get("feed_forward", ()):
        found |= {**listed, "ffn": config.count("dense_intermediate_size")}
    kinds = config.words("layer_types", 10_000)
    marks = sparse.numbers("sparse_attention_freq", 10_000)
    if kinds is None and marks is not None:
        kinds = tuple("minimax_m3_sparse" if mark else "full_attention" for mark in marks)
    heads = sparse.optional_count("sparse_num_index_heads", "heads") or config.count("index_n_heads", "heads")
    width = sparse.optional_count("sparse_index_dim") or config.count("index_head_dim")
    index = SideWeights(matrices=((parts["hidden"], heads * width), (parts["hidden"], width)), vectors=2 * width)
    if kinds is not None:
        found["beside"] = [index if kind == "minimax_m3_sparse" else None for kind in kinds[:layers]]
    return found


PRESSED: Final[Mapping[str, Family]] = {
    "axk2": Family(
        implementation="hf-recent-side",
        defaults=sizes(
            *(48, 2048, 32, None, 5120, 163840, 131072),
            moe_intermediate_size=512,
            n_shared_experts=1,
            n_routed_experts=128,
            num_experts_per_tok=8,
            kv_lora_rank=128,
            q_lora_rank=384,
            qk_rope_head_dim=32,
            v_head_dim=64,
            qk_nope_head_dim=64,
            index_topk=2048,
            index_head_dim=128,
            index_n_heads=16,
            gated_norm_rank=16,
            first_k_dense_replace=1,
        ),
        parts=(
            BIASED,
            read.latent,
            ROUTED_EXPERTS,
            read.listed_experts,
            _ring_indexer,
            _gated_latent,
            ATTENTION_DROPOUT,
        ),
    ),
    "hy_v4": Family(
        implementation="hf-recent-side",
        defaults=sizes(
            *(34, 2816, 32, None, 6912, 120832, 262144),
            moe_intermediate_size=768,
            n_shared_experts=1,
            n_routed_experts=256,
            num_experts_per_tok=8,
            kv_lora_rank=512,
            q_lora_rank=1536,
            qk_rope_head_dim=64,
            v_head_dim=256,
            qk_nope_head_dim=192,
            index_topk=2048,
            index_head_dim=128,
            index_n_heads=16,
            hc_mult=4,
            first_k_dense_replace=1,
        ),
        parts=(BIASED, read.latent, ROUTED_EXPERTS, read.listed_experts, _hy_indexer, _hy_layers, ATTENTION_DROPOUT),
    ),
    "deepseek_v4": Family(
        implementation="hf-recent-side",
        names={"ffn": "dense_width"},
        defaults=sizes(
            *(43, 4096, 64, 1, 0, 129280, 1048576),
            head_dim=512,
            moe_intermediate_size=2048,
            n_shared_experts=1,
            n_routed_experts=256,
            num_experts_per_tok=6,
            q_lora_rank=1024,
            sliding_window=128,
            o_groups=8,
            o_lora_rank=1024,
            index_n_heads=64,
            index_head_dim=128,
            index_topk=512,
            hc_mult=4,
            partial_rotary_factor=0.125,
            compress_rates={},
        ),
        parts=(
            read.experts(count=("n_routed_experts", "num_local_experts"), shared="n_shared_experts"),
            _pressed_layers,
            ATTENTION_DROPOUT,
        ),
    ),
    "bailing_hybrid": Family(
        implementation="hf-hybrid",
        names={"context": "model_max_length"},
        defaults=sizes(
            *(42, 2560, 32, None, 6144, 157184, 262144),
            model_max_length=262144,
            moe_intermediate_size=768,
            num_experts=512,
            num_experts_per_token=8,
            num_shared_experts=1,
            first_k_dense_replace=2,
            kv_lora_rank=512,
            qk_rope_head_dim=64,
            v_head_dim=128,
            qk_nope_head_dim=128,
            layer_group_size=6,
            short_conv_kernel_size=4,
        ),
        parts=(
            read.latent,
            PER_TOKEN_EXPERTS,
            read.listed_experts,
            _bailing_layers,
            ATTENTION_DROPOUT,
        ),
    ),
    "glm5_next_text": Family(
        implementation="hf-hybrid",
        defaults=sizes(
            *(45, 4096, 64, 64, 12288, 154880, 1048576),
            moe_intermediate_size=2048,
            n_shared_experts=1,
            n_routed_experts=288,
            num_experts_per_tok=8,
            first_k_dense_replace=3,
            kv_lora_rank=512,
            q_lora_rank=1536,
            qk_rope_head_dim=0,
            qk_nope_head_dim=256,
            v_head_dim=256,
            index_topk=2048,
            index_head_dim=128,
            index_n_heads=32,
            index_kpool=16,
            linear_head_dim=128,
            linear_num_heads=64,
            linear_conv_kernel_dim=4,
            hc_mult=4,
        ),
        fixed={"rope_fraction": 0.0},
        parts=(BIASED, read.latent, ROUTED_EXPERTS, read.listed_experts, _glm_next_layers, ATTENTION_DROPOUT),
    ),
    "minimax_m3_vl_text": Family(
        implementation="hf-recent-side",
        defaults=sizes(
            *(60, 6144, 64, 4, 3072, 200064, 524288),
            head_dim=128,
            num_local_experts=128,
            num_experts_per_tok=4,
            dense_intermediate_size=12288,
            shared_intermediate_size=3072,
            index_n_heads=4,
            index_head_dim=128,
        ),
        fixed={**QK_NORM, "activation": "silu", "rope_fraction": 0.5},
        parts=(_minimax_layers, ATTENTION_DROPOUT),
    ),
}

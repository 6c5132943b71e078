"""Rows of model types with routed experts behind ordinary or linear attention.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from . import hf_parts as read
from .config_file import Config
from .hf_parts import ATTENTION_DROPOUT, BIASED, Family, Parts, sizes

_MIXTRAL_EXPERTS: Final = read.experts(count=("num_local_experts",), width="intermediate_size")

_QWEN3_EXPERTS: Final = read.experts(
    count=("num_local_experts", "num_experts"), step="decoder_sparse_step", dense="intermediate_size"
)
SHARED_EXPERTS: Final = read.experts(
    count=("num_experts", "num_local_experts"),
    shared_width="shared_expert_intermediate_size",
    step="decoder_sparse_step",
    dense="intermediate_size",
    shared_gate=True,
)
DELTA_RULE: Final[Mapping[str, Any]] = {
    "head_dim": 256,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "partial_rotary_factor": 0.25,
}
GATED: Final = {"qk_norm": "head", "output_gate": True}


def _llama4_norm(config: Config, _: Parts) -> Parts:
    return {"qk_norm": "l2" if config.flag("use_qk_norm") else "none"}


def _llama4_layers(config: Config, parts: Parts) -> Parts:
    """Read which layers hold experts, and which do not rotate."""
    found: Parts = {"no_rope_every": config.optional_count("no_rope_layer_interval", "layers") or 4}
    listed = config.numbers("moe_layers", 10_000)
    if listed is not None:
        found["feed_forward"] = ["experts" if i in listed else "dense" for i in range(parts["layers"])]
        if "dense" in found["feed_forward"]:
            found["ffn"] = config.count("intermediate_size_mlp")
    return found


MOE: Final[Mapping[str, Family]] = {
    "mixtral": Family(
        implementation="hf-mixtral",
        defaults=sizes(32, 4096, 32, 8, 14336, 32000, 131072, num_local_experts=8, num_experts_per_tok=2),
        parts=(_MIXTRAL_EXPERTS, read.every_layer_windowed, ATTENTION_DROPOUT),
    ),
    "phimoe": Family(
        implementation="hf-phimoe",
        defaults=sizes(32, 4096, 32, 8, 6400, 32064, 131072, num_local_experts=16, num_experts_per_tok=2),
        fixed={"norm": "layer", "norm_bias": True},
        parts=(
            BIASED,
            read.flags(head_bias="lm_head_bias"),
            _MIXTRAL_EXPERTS,
            read.every_layer_windowed,
            ATTENTION_DROPOUT,
        ),
    ),
    "minimax_m2": Family(
        implementation="hf-mixtral",
        defaults=sizes(
            62, 3072, 48, 8, 1536, 200064, 196608, head_dim=128, num_local_experts=256, num_experts_per_tok=8
        ),
        fixed={"qk_norm": "full"},
        parts=(_MIXTRAL_EXPERTS, ATTENTION_DROPOUT),
    ),
    "olmoe": Family(
        implementation="hf-olmoe",
        defaults=sizes(16, 2048, 16, None, 2048, 50304, 4096, num_experts=64, num_experts_per_tok=8),
        fixed={"qk_norm": "full"},
        parts=(BIASED, read.experts(count=("num_experts",), width="intermediate_size"), ATTENTION_DROPOUT),
    ),
    "granitemoe": Family(
        implementation="hf-granitemoe",
        defaults=sizes(32, 4096, 32, None, 11008, 32000, 2048, num_local_experts=8, num_experts_per_tok=2),
        parts=(BIASED, _MIXTRAL_EXPERTS, ATTENTION_DROPOUT),
    ),
    "gpt_oss": Family(
        implementation="hf-gpt-oss",
        defaults=sizes(
            *(36, 2880, 64, 8, 2880, 201088, 131072),
            head_dim=64,
            num_local_experts=128,
            num_experts_per_tok=4,
            sliding_window=128,
            attention_bias=True,
        ),
        fixed={"sinks": True},
        parts=(
            BIASED,
            read.experts(
                count=("num_local_experts", "num_experts"), width="intermediate_size", bias=True, router_bias=True
            ),
            read.windows(2),
            ATTENTION_DROPOUT,
        ),
    ),
    "qwen2_moe": Family(
        implementation="hf-qwen2-moe",
        defaults=sizes(
            *(24, 2048, 16, 16, 5632, 151936, 32768),
            qkv_bias=True,
            num_experts=60,
            num_experts_per_tok=4,
            moe_intermediate_size=1408,
            shared_expert_intermediate_size=5632,
            max_window_layers=28,
        ),
        parts=(
            read.flags(qkv_bias="qkv_bias"),
            SHARED_EXPERTS,
            read.optional_window,
            ATTENTION_DROPOUT,
        ),
    ),
    "qwen3_moe": Family(
        implementation="hf-qwen3-moe",
        defaults=sizes(
            *(24, 2048, 32, 4, 6144, 151936, 32768),
            num_local_experts=128,
            num_experts_per_tok=8,
            moe_intermediate_size=768,
        ),
        fixed={"qk_norm": "head"},
        parts=(
            BIASED,
            _QWEN3_EXPERTS,
            ATTENTION_DROPOUT,
        ),
        only={"use_sliding_window": (False,)},
    ),
    "qwen3_vl_moe_text": Family(
        implementation="hf-qwen3-moe",
        defaults=sizes(
            *(24, 2048, 16, 16, 5632, 151936, 128000),
            head_dim=128,
            num_local_experts=60,
            num_experts_per_tok=4,
            moe_intermediate_size=1408,
            tie_word_embeddings=True,
        ),
        fixed={"qk_norm": "head"},
        parts=(BIASED, _QWEN3_EXPERTS, ATTENTION_DROPOUT),
    ),
    "qwen3_next": Family(
        implementation="hf-qwen3-next",
        defaults=sizes(
            *(48, 2048, 16, 2, 5632, 151936, 32768),
            **DELTA_RULE,
            num_experts=512,
            num_experts_per_tok=10,
            moe_intermediate_size=512,
            shared_expert_intermediate_size=512,
        ),
        fixed=GATED,
        parts=(BIASED, read.linear_attention, SHARED_EXPERTS, read.rope_fraction, ATTENTION_DROPOUT),
    ),
    "qwen3_5_text": Family(
        implementation="hf-qwen3-5",
        defaults=sizes(32, 4096, 16, 4, 12288, 248320, 32768, **DELTA_RULE),
        fixed=GATED,
        parts=(BIASED, read.linear_attention_apart, read.rope_fraction, ATTENTION_DROPOUT),
    ),
    "qwen3_5_moe_text": Family(
        implementation="hf-qwen3-5",
        defaults=sizes(
            *(40, 2048, 16, 2, 0, 248320, 32768),
            **DELTA_RULE,
            num_experts=256,
            num_experts_per_tok=8,
            moe_intermediate_size=512,
            shared_expert_intermediate_size=512,
        ),
        fixed=GATED,
        parts=(BIASED, read.linear_attention_apart, SHARED_EXPERTS, read.rope_fraction, ATTENTION_DROPOUT),
    ),
    "llama4_text": Family(
        implementation="hf-llama4",
        defaults=sizes(
            *(48, 5120, 40, 8, 8192, 202048, 131072),
            head_dim=128,
            intermediate_size_mlp=16384,
            num_local_experts=16,
            num_experts_per_tok=1,
            use_qk_norm=True,
            attention_chunk_size=8192,
        ),
        parts=(
            BIASED,
            _llama4_norm,
            read.experts(
                count=("num_local_experts",),
                width="intermediate_size",
                shared_width="intermediate_size",
                step="interleave_moe_layer_step",
                dense="intermediate_size_mlp",
            ),
            _llama4_layers,
            read.windows(4, size_key="attention_chunk_size", chunked=True),
            ATTENTION_DROPOUT,
        ),
    ),
}

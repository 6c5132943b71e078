"""Rows of model types of 2025 and 2026 some of whose layers hold small weights beside their operators, or sinks.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
Sizes were compared with the classes on the meta device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ..catalog.parts import (
    ShortConvolution,
    SideWeights,
    Window,
)
from . import hf_parts as read
from .config_file import Config
from .hf_parts import ATTENTION_DROPOUT, BIASED, MLP_BIASED, QK_NORM, ROUTED_EXPERTS, Family, Parts, sizes

_GRANITE: Final = (BIASED, MLP_BIASED)

Matrices = Sequence[tuple[int, int]]


def _everywhere(side: Callable[[Config, Parts], tuple[Matrices, int]]) -> read.Part:
    """The same small weights in every layer."""

    def read_side(config: Config, parts: Parts) -> Parts:
        matrices, vectors = side(config, parts)
        return {"beside": [SideWeights(matrices=tuple(matrices), vectors=vectors)] * parts["layers"]}

    return read_side


def _whole_first(config: Config, parts: Parts) -> Parts:
    """Read Granite's windows: every fourth layer from the first on sees all; none rotates where its base is 0."""
    size = config.optional_count("sliding_window", "tokens", zero=True)
    layers: int = parts["layers"]
    kinds = config.words("layer_types", 10_000) or tuple(
        "sliding_attention" if index % 4 else "full_attention" for index in range(layers)
    )
    found = read.pattern(config, "layer_types", kinds, layers, size) if size else {}
    bases = config.raw("layer_rope_theta")
    if isinstance(bases, list) and len(bases) >= layers:
        found["rotates"] = [bool(base) for base in bases[:layers]]
    return found


def _shared_granite_experts(config: Config, parts: Parts) -> Parts:
    return read.experts(
        count=("num_local_experts",), width="intermediate_size", shared_width="shared_intermediate_size"
    )(config, parts)


def _post_norms(config: Config, _: Parts) -> Parts:
    return {"norms_per_layer": 2 if config.raw("use_post_norm") is False else 4}


def _lfm3_layers(config: Config, parts: Parts) -> Parts:
    """Read LFM 3: gated convolutions, or attention to a window or to everything."""
    layers: int = parts["layers"]
    kinds = config.words("layer_types", 10_000)
    if kinds is None:
        turns = ("full_attention", "sliding_attention")
        kinds = tuple("conv" if i % 2 or i == 0 else turns[(i // 2 - 1) % 2] for i in range(layers))
    names = {"conv": "short_convolution", "full_attention": "attention", "sliding_attention": "attention"}
    if len(kinds) < layers or any(kind not in names for kind in kinds[:layers]):
        raise config.wrong("layer_types", f"does not name {layers} known layers")
    return {
        "short_convolution": ShortConvolution(
            kernel=config.count("conv_L_cache", "few"), bias=config.flag("conv_bias")
        ),
        "mixer": [names[kind] for kind in kinds[:layers]],
        "window": Window(size=config.count("sliding_window", "tokens")),
        "windowed": [kind == "sliding_attention" for kind in kinds[:layers]],
        "norms_per_layer": 2 if config.raw("use_sandwich_norm") is False else 4,
        "head_gate": config.raw("use_attention_gate") is not False,
    }


def _inner_norms(_: Config, parts: Parts) -> tuple[Matrices, int]:
    """BitNet's norms before the products out of attention and feed-forward."""
    head = parts["head_dim"] or parts["hidden"] // parts["heads"]
    return (), parts["heads"] * head + parts["ffn"]


def _lambdas(_: Config, parts: Parts) -> tuple[Matrices, int]:
    """Four vectors of a head that weigh its two attention maps (differential attention)."""
    return (), 4 * (parts["head_dim"] or parts["hidden"] // parts["heads"])


def _head_biases(_: Config, parts: Parts) -> tuple[Matrices, int]:
    return (), parts["heads"]


def _flint_experts(config: Config, parts: Parts) -> Parts:
    return read.experts(
        count=("num_experts", "num_local_experts"),
        shared_width="shared_expert_intermediate_size",
        step="decoder_sparse_step",
        dense="intermediate_size",
    )(config, parts)


SIDE: Final[Mapping[str, Family]] = {
    "granite_swa": Family(
        implementation="hf-granite",
        defaults=sizes(24, 2560, 20, 4, 8192, 100352, 8192, tie_word_embeddings=True, sliding_window=128),
        fixed={"sinks": True},
        parts=(*_GRANITE, _whole_first, ATTENTION_DROPOUT),
    ),
    "granitemoe_swa": Family(
        implementation="hf-granitemoe",
        defaults=sizes(
            32, 4096, 32, None, 11008, 32000, 2048, num_local_experts=8, num_experts_per_tok=2, sliding_window=128
        ),
        fixed={"sinks": True},
        parts=(BIASED, _shared_granite_experts, _whole_first, ATTENTION_DROPOUT),
    ),
    "hyperclovax": Family(
        implementation="hf-granite",
        defaults=sizes(32, 4096, 32, None, 11008, 32000, 2048),
        parts=(*_GRANITE, _post_norms, ATTENTION_DROPOUT),
    ),
    "kolibri1": Family(
        implementation="hf-recent-side",
        defaults=sizes(
            *(50, 2560, 48, 4, 0, 128000, 262144),
            head_dim=128,
            sliding_window=513,
            moe_intermediate_size=512,
            shared_expert_intermediate_size=512,
            num_experts_per_tok=6,
            num_local_experts=384,
        ),
        fixed={**QK_NORM, "norms_per_layer": 4},
        parts=(
            read.experts(count=("num_local_experts", "num_experts"), shared_width="shared_expert_intermediate_size"),
            read.windows(5),
            ATTENTION_DROPOUT,
        ),
    ),
    "flint": Family(
        implementation="hf-recent-side",
        defaults=sizes(
            *(49, 2048, 32, 4, 6144, 150144, 262144),
            head_dim=128,
            sliding_window=513,
            decoder_sparse_step=1,
            moe_intermediate_size=512,
            shared_expert_intermediate_size=1024,
            num_experts_per_tok=6,
            num_experts=256,
            mlp_only_layers=[0, 1],
        ),
        fixed={**QK_NORM, "sinks": True},
        parts=(BIASED, _flint_experts, read.windows(4), ATTENTION_DROPOUT),
    ),
    "beam": Family(
        implementation="hf-recent-side",
        defaults=sizes(
            *(52, 5120, 48, 8, 20480, 151936, 8192),
            head_dim=128,
            sliding_window=512,
            moe_intermediate_size=2560,
            n_routed_experts=256,
            num_experts_per_tok=8,
            first_k_dense_replace=3,
        ),
        fixed={**QK_NORM, "norms_per_layer": 4, "output_gate": True},
        parts=(
            BIASED,
            ROUTED_EXPERTS,
            read.listed_experts,
            read.windows(6),
            _everywhere(_head_biases),
            ATTENTION_DROPOUT,
        ),
    ),
    "nanochat": Family(
        implementation="hf-recent",
        defaults=sizes(12, 768, 6, 6, 8192, 50304, 2048) | {"hidden_act": "relu2"},
        fixed={"gated": False, "norm": "layer-plain", "qk_norm": "l2"},
        parts=(BIASED, ATTENTION_DROPOUT),
    ),
    "flex_olmo": Family(
        implementation="hf-olmoe",
        defaults=sizes(32, 4096, 32, None, 11008, 100352, 4096, num_experts=7, num_experts_per_tok=5),
        fixed={"qk_norm": "full", "norm_position": "post"},
        parts=(BIASED, read.experts(count=("num_experts",), width="intermediate_size"), ATTENTION_DROPOUT),
    ),
    "bitnet": Family(
        implementation="hf-recent-side",
        defaults=sizes(30, 2560, 20, 5, 6912, 128256, 2048) | {"hidden_act": "relu2"},
        parts=(BIASED, _everywhere(_inner_norms), ATTENTION_DROPOUT),
    ),
    "diffllama": Family(
        implementation="hf-recent-side",
        defaults=sizes(16, 2048, 32, None, 8192, 32000, 2048),
        parts=(BIASED, _everywhere(_lambdas), ATTENTION_DROPOUT),
    ),
    "lfm3": Family(
        implementation="hf-hybrid",
        defaults=sizes(
            *(24, 2048, 16, 4, 7680, 128000, 128000),
            conv_L_cache=7,
            sliding_window=256,
            head_dim=128,
            tie_word_embeddings=True,
        ),
        fixed=QK_NORM,
        parts=(BIASED, _lfm3_layers, ATTENTION_DROPOUT),
    ),
    "olmo_hybrid": Family(
        implementation="hf-hybrid",
        defaults=sizes(
            *(32, 3840, 30, None, 11008, 100352, 65536),
            linear_num_key_heads=30,
            linear_num_value_heads=30,
            linear_key_head_dim=96,
            linear_value_head_dim=192,
            linear_conv_kernel_dim=4,
        ),
        fixed={"qk_norm": "full"},
        parts=(BIASED, read.linear_attention_apart, ATTENTION_DROPOUT),
    ),
    "aria_text": Family(
        implementation="hf-recent-side",
        defaults=sizes(32, 4096, 32, None, 4096, 32000, 2048, moe_num_experts=8, moe_topk=2, moe_num_shared_experts=2),
        parts=(
            BIASED,
            read.experts(
                count=("moe_num_experts",), top_k="moe_topk", width="intermediate_size", shared="moe_num_shared_experts"
            ),
            ATTENTION_DROPOUT,
        ),
    ),
}

"""Rows of model types whose heads differ between layers that see everything and windowed ones.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..catalog.parts import HeadShape
from . import hf_parts as read
from .config_file import Config
from .hf_parts import ATTENTION_DROPOUT, QK_NORM, ROUTED_EXPERTS, Family, Parts, sizes


def _heads_by_layer(config: Config, parts: Parts) -> Parts:
    """Read Laguna's query heads, a number for each layer: of layers that see everything, and of the others.

    Raises:
        DataError: they follow no such rule.
    """
    numbers = config.numbers("num_attention_heads_per_layer", 10_000)
    windowed = parts.get("windowed")
    if not numbers or windowed is None:
        return {}
    whole = {n for n, flag in zip(numbers, windowed, strict=False) if not flag}
    local = {n for n, flag in zip(numbers, windowed, strict=False) if flag}
    if len(whole) != 1 or len(local) != 1:
        raise config.wrong("num_attention_heads_per_layer", "differs among layers of one kind, which is not supported")
    shape = HeadShape(heads=whole.pop(), kv_heads=parts["kv_heads"], head_dim=parts["head_dim"])
    return {"heads": local.pop(), "whole_heads": shape}


def _other_heads(config: Config, parts: Parts) -> Parts:
    """Read Step's heads: those of windowed layers stand in a mapping of their own."""
    other = config.nested("attention_other_setting")
    if other is None or "windowed" not in parts:
        return {}
    shape = HeadShape(heads=parts["heads"], kv_heads=parts["kv_heads"], head_dim=parts["head_dim"])
    return {
        "whole_heads": shape,
        "heads": other.count("num_attention_heads", "heads"),
        "kv_heads": other.optional_count("num_attention_groups", "heads") or parts["kv_heads"],
    }


def _mimo_layers(config: Config, parts: Parts) -> Parts:
    """Read MiMo V2: marks of windowed layers, which have other heads and sinks; values are narrower than keys."""
    marks = config.numbers("hybrid_layer_pattern", 10_000)
    size = config.optional_count("sliding_window", "tokens")
    if not marks or not size:
        return {}
    kinds = tuple("sliding_attention" if mark else "full_attention" for mark in marks)
    found = read.pattern(config, "hybrid_layer_pattern", kinds, parts["layers"], size)
    shape = HeadShape(
        heads=parts["heads"],
        kv_heads=parts["kv_heads"],
        head_dim=parts["head_dim"],
        sinks=config.flag("add_full_attention_sink_bias"),
    )
    return {
        **found,
        "whole_heads": shape,
        "heads": config.optional_count("swa_num_attention_heads", "heads") or parts["heads"],
        "kv_heads": config.optional_count("swa_num_key_value_heads", "heads") or parts["kv_heads"],
        "v_head_dim": config.optional_count("v_head_dim") or 0,
        "sinks": config.flag("add_swa_attention_sink_bias"),
    }


def _gates(config: Config, _: Parts) -> Parts:
    return {"head_gate": config.raw("gating") is not False}


HEADS: Final[Mapping[str, Family]] = {
    "mimo_v2_flash": Family(
        implementation="hf-glm4-moe",
        defaults=sizes(48, 4096, 64, 4, 16384, 152576, 262144, head_dim=192),
        parts=(ROUTED_EXPERTS, read.listed_experts, _mimo_layers, read.rope_fraction, ATTENTION_DROPOUT),
    ),
    "step3p5": Family(
        implementation="hf-glm4-moe",
        defaults=sizes(45, 4096, 64, 8, 11264, 128896, 262144, head_dim=128, sliding_window=512),
        fixed={**QK_NORM, "head_gate": True},
        parts=(
            read.experts(
                count=("n_routed_experts", "moe_num_experts", "num_experts"),
                shared_width="share_expert_dim",
                first_dense="first_k_dense_replace",
                dense="intermediate_size",
            ),
            read.listed_experts,
            read.windows(4),
            _other_heads,
            ATTENTION_DROPOUT,
        ),
    ),
    "laguna": Family(
        implementation="hf-glm4-moe",
        defaults=sizes(40, 2048, 48, 8, 8192, 100352, 131072, head_dim=128, sliding_window=512),
        fixed=QK_NORM,
        parts=(
            read.experts(
                count=("num_experts",),
                shared_width="shared_expert_intermediate_size",
                dense="intermediate_size",
                router_bias=True,
            ),
            read.listed_experts,
            read.windows(4),
            _heads_by_layer,
            _gates,
            ATTENTION_DROPOUT,
        ),
    ),
}

"""Rows of model types whose heads differ between layers that see everything and windowed ones.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..catalog.parts import HeadShape, SideWeights
from ..record import replace
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
    """Read MiMo V2: marks of windowed layers, which have other heads and sinks; values are narrower than keys.

    Files that transformers wrote name the kinds of layers, and leave out that heads of windowed ones are twice as many.
    """
    marks = config.numbers("hybrid_layer_pattern", 10_000)
    size = config.optional_count("sliding_window", "tokens")
    named = config.words("layer_types", 10_000) if marks is None else None
    if not (marks or named) or not size:
        return {}
    kinds = named or tuple("sliding_attention" if mark else "full_attention" for mark in marks or ())
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
        "kv_heads": config.optional_count("swa_num_key_value_heads", "heads")
        or parts["kv_heads"] * (2 if named else 1),
        "v_head_dim": config.optional_count("v_head_dim") or 0,
        "sinks": bool(named) or config.flag("add_swa_attention_sink_bias"),
    }


def _inkling_layers(config: Config, parts: Parts) -> Parts:
    """Read Inkling: windowed layers have other heads; short convolutions and a bias by distance everywhere.

    Files call the width of an expert `intermediate_size` where they have a `dense_intermediate_size`.
    """
    layers, hidden, width = parts["layers"], parts["hidden"], parts["head_dim"]
    listed = config.numbers("local_layer_ids", 10_000)
    windowed = [i in listed if listed is not None else bool((i + 1) % 6) for i in range(layers)]
    heads = {True: config.count("swa_num_attention_heads", "heads"), False: parts["heads"]}
    kv_heads = {True: config.count("swa_num_key_value_heads", "heads"), False: parts["kv_heads"]}
    window, rank = config.count("sliding_window_size", "tokens"), config.count("d_rel", "few")
    marks = ["local" if local else "global" for local in windowed]
    extent = {True: window, False: config.count("rel_extent", "tokens")}
    kernel = config.optional_count("sconv_kernel_size", "few") or config.count("conv_kernel_size", "few")
    dense = config.optional_count("dense_mlp_idx", "layers", zero=True) or 0
    sinks = config.count("n_shared_experts", "experts")
    sides = []
    for index, local in enumerate(windowed):
        routed = () if index < dense else ((hidden, sinks),)
        vectors = rank * extent[local] + 2 * kernel * (kv_heads[local] * width + hidden) + 1
        sides.append(SideWeights(matrices=((hidden, heads[local] * rank), *routed), vectors=vectors))
    return {
        **read.pattern(config, "local_layer_ids", marks, layers, window),
        "whole_heads": HeadShape(heads=heads[False], kv_heads=kv_heads[False], head_dim=width),
        "heads": heads[True],
        "kv_heads": kv_heads[True],
        "beside": sides,
    }


def _inkling2_layers(config: Config, parts: Parts) -> Parts:
    """Read Inkling 2: as Inkling, with gates and sinks of each token, learned scales of heads, and queries that pick
    from the sums of blocks of layers what a layer reads; layers that see everything norm their queries, keys and
    values apart and mix neighbours by weights of each token."""
    layers, hidden, width = parts["layers"], parts["hidden"], parts["head_dim"]
    kinds = config.words("layer_types", 10_000) or tuple("" if (i + 1) % 6 else "hybrid" for i in range(layers))
    windowed = [kind != "hybrid" for kind in kinds[:layers]]
    window, rank = config.count("sliding_window_size", "tokens"), config.count("d_rel", "few")
    kernel = config.optional_count("conv_kernel_size", "few") or config.count("sconv_kernel_size", "few")
    whole = HeadShape(heads=parts["heads"], kv_heads=parts["kv_heads"], head_dim=width)
    local = HeadShape(
        heads=config.count("swa_num_attention_heads", "heads"),
        kv_heads=config.count("swa_num_key_value_heads", "heads"),
        head_dim=config.count("swa_head_dim"),
    )
    sides = []
    for index, slides in enumerate(windowed):
        shape, extent = (local, window) if slides else (whole, config.count("rel_extent", "tokens"))
        heads, wide = shape.heads, shape.heads * shape.head_dim
        mixing = [] if slides else [(hidden, shape.kv_heads * kernel)] * 2
        picks = (0 if not index else 1 if slides else 3) + 1
        vectors = rank * extent + 2 * kernel * (shape.kv_heads * shape.head_dim + hidden) + wide + heads * rank
        sides.append(
            SideWeights(
                matrices=((hidden, heads * rank), (hidden, wide), (hidden, heads), *mixing),
                vectors=vectors + (picks + (0 if slides else 2)) * hidden,
            )
        )
    marks = ["local" if slides else "global" for slides in windowed]
    return {
        **read.pattern(config, "layer_types", marks, layers, window),
        "whole_heads": whole,
        "heads": local.heads,
        "kv_heads": local.kv_heads,
        "head_dim": local.head_dim,
        "beside": sides,
        "side": SideWeights(vectors=hidden),
    }


def _inkling_experts(config: Config, parts: Parts) -> Parts:
    dense = config.optional_count("dense_intermediate_size")
    fields = {"moe_intermediate_size": config.raw("intermediate_size"), "intermediate_size": dense} if dense else {}
    whole = replace(config, fields={**config.fields, **fields})
    part = read.experts(
        count=("n_routed_experts",), shared="n_shared_experts", first_dense="dense_mlp_idx", dense="intermediate_size"
    )
    found = part(whole, parts)
    return {**found, **read.listed_experts(whole, {**parts, **found})}


def _gates(config: Config, _: Parts) -> Parts:
    return {"head_gate": config.raw("gating") is not False}


HEADS: Final[Mapping[str, Family]] = {
    "inkling_text": Family(
        implementation="hf-recent-side",
        names={"context": "model_max_length"},
        defaults=sizes(
            *(66, 6144, 64, 8, 24576, 201024, 131072),
            head_dim=128,
            swa_num_attention_heads=64,
            swa_num_key_value_heads=16,
            sliding_window_size=512,
            d_rel=16,
            rel_extent=1024,
            conv_kernel_size=4,
            moe_intermediate_size=3072,
            n_routed_experts=256,
            num_experts_per_tok=6,
            n_shared_experts=2,
            model_max_length=131072,
        ),
        fixed={**QK_NORM, "embedding_norm": True, "rope_fraction": 0.0},
        parts=(_inkling_experts, _inkling_layers, ATTENTION_DROPOUT),
    ),
    "inkling2_text": Family(
        implementation="hf-recent-side",
        defaults=sizes(
            *(48, 4608, 48, 8, 0, 201024, 1048576),
            head_dim=128,
            swa_num_attention_heads=48,
            swa_num_key_value_heads=8,
            swa_head_dim=128,
            sliding_window_size=1024,
            d_rel=16,
            rel_extent=1024,
            conv_kernel_size=4,
            moe_intermediate_size=2304,
            n_routed_experts=384,
            num_experts_per_tok=8,
        ),
        fixed={"embedding_norm": True, "rope_fraction": 0.0},
        parts=(read.experts(count=("n_routed_experts", "num_local_experts")), _inkling2_layers, ATTENTION_DROPOUT),
    ),
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

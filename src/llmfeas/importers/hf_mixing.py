"""Rows of model types whose attention is unlike others': experts of queries (JetMoE), queries and keys that
convolutions mix (ZAYA), a mask that values make (Doge).

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..catalog.parts import Experts, SideWeights
from . import hf_parts as read
from .config_file import Config
from .hf_parts import ATTENTION_DROPOUT, BIASED, MLP_BIASED, QK_NORM, Family, Parts, sizes


def _jetmoe(config: Config, parts: Parts) -> Parts:
    """Read JetMoE: queries and outputs of a token are those of the experts that it chooses, as many heads as if they
    were one; the other experts lie idle beside them."""
    hidden, kv_heads, width = parts["hidden"], parts["kv_heads"], parts["head_dim"]
    count, chosen = config.count("num_local_experts", "experts"), config.count("num_experts_per_tok", "experts")
    if chosen > count:
        raise config.wrong("num_experts_per_tok", f"is {chosen} of {count} experts")
    idle = 2 * (count - chosen) * kv_heads * width
    side = SideWeights(matrices=((hidden, count),), vectors=2 * hidden, table=(idle, hidden) if idle else None)
    return {"heads": kv_heads * chosen, "beside": [side] * parts["layers"]}


def _zaya(config: Config, parts: Parts) -> Parts:
    """Read ZAYA: two convolutions over queries and keys, a router of three layers with a choice of no expert, scales
    and shifts of the stream. The rows of the router that experts have are the first of its product."""
    layers, hidden, head = parts["layers"], parts["hidden"], parts["head_dim"]
    count, rank = config.count("num_experts", "experts"), config.count("router_hidden_size")
    channels = (parts["heads"] + parts["kv_heads"]) * head
    if rank <= count + 1:
        raise config.wrong("router_hidden_size", f"is {rank}, not above the {count + 1} choices that it has")
    matrices = (
        (head * config.count("cca_time1", "few"), channels),
        (hidden, rank - count - 1),
        (rank, rank),
        (rank, rank),
        (rank, count + 1),
    )
    vectors = channels * (config.count("cca_time0", "few") + 2) + parts["kv_heads"] + 4 * rank + 8 * hidden
    kinds = config.words("layer_types", 10_000)
    found: Parts = {}
    if kinds is not None and "hybrid_sliding" in kinds:
        marks = ["local" if kind == "hybrid_sliding" else "global" for kind in kinds]
        found = read.pattern(config, "layer_types", marks, layers, config.count("sliding_window", "tokens"))
    first = SideWeights(matrices=matrices, vectors=vectors)
    return {
        **found,
        "experts": Experts(
            count=count, top_k=1, width=config.count("moe_intermediate_size"), zero=1, expected_real=count / (count + 1)
        ),
        "ffn": None,
        "beside": [first, *[SideWeights(matrices=matrices, vectors=vectors + rank)] * (layers - 1)],
        "side": SideWeights(vectors=2 * hidden),
        "head_bias": config.flag("lm_head_bias"),
    }


def _doge(config: Config, parts: Parts) -> Parts:
    """Read Doge: values make a mask of their own; scales of the stream around both branches."""
    kv_heads = parts["kv_heads"] or parts["heads"]
    width = kv_heads * (parts["hidden"] // parts["heads"])
    vectors = kv_heads * (2 if config.flag("attention_bias") else 1) + 2 * parts["hidden"]
    side = SideWeights(matrices=((width, kv_heads),), vectors=vectors)
    return {"beside": [side] * parts["layers"], **read.every_layer_windowed(config, parts)}


MIXING: Final[Mapping[str, Family]] = {
    "jetmoe": Family(
        implementation="hf-recent-side",
        names={"activation": "activation_function", "head_dim": "kv_channels"},
        defaults={
            **sizes(12, 2048, 1, 16, 5632, 32000, 4096, tie_word_embeddings=True),
            "activation_function": "silu",
            "kv_channels": 128,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
        },
        parts=(_jetmoe, read.experts(count=("num_local_experts",), width="intermediate_size"), ATTENTION_DROPOUT),
    ),
    "zaya": Family(
        implementation="hf-recent-side",
        defaults=sizes(
            *(40, 2048, 8, 2, 0, 262272, 131072),
            tie_word_embeddings=True,
            head_dim=128,
            num_experts=16,
            moe_intermediate_size=2048,
            router_hidden_size=256,
            cca_time0=2,
            cca_time1=2,
        ),
        fixed={"rope_fraction": 0.5},
        parts=(BIASED, _zaya, ATTENTION_DROPOUT),
        only={"num_experts_per_tok": (1,), "attention_bias": (False,)},
    ),
    "doge": Family(
        implementation="hf-recent-side",
        defaults=sizes(32, 1024, 8, None, 2048, 32768, 2048),
        fixed=QK_NORM,
        parts=(BIASED, MLP_BIASED, _doge, ATTENTION_DROPOUT),
        only={"is_moe": (False,)},
    ),
}

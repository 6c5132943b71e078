"""Rows of Gemma 3n and 4: embeddings of each layer, caches that layers share, heads that differ by layer.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..catalog.parts import AltUp, Experts, HeadShape, PerLayerEmbedding
from . import hf_parts as read
from .config_file import Config
from .hf_parts import ATTENTION_DROPOUT, BIASED, Family, Parts, sizes


def _gemma4_layers(config: Config, parts: Parts) -> Parts:
    """Read Gemma 4: other heads where a layer sees everything, shared caches, embeddings of each layer, experts."""
    found = read.windows(6)(config, parts)
    if "windowed" in found:
        found["windowed"][-1] = False  # the class sees to it
    keys_are_values = config.flag("attention_k_eq_v")
    kv_heads = config.optional_count("num_global_key_value_heads", "heads") if keys_are_values else None
    found["whole_heads"] = HeadShape(
        heads=parts["heads"],
        kv_heads=kv_heads or parts["kv_heads"] or parts["heads"],
        head_dim=config.optional_count("global_head_dim") or parts["head_dim"],
        keys_are_values=keys_are_values,
    )
    found |= _shared_layers(config, parts)
    if found["shared_cache_layers"] and config.flag("use_double_wide_mlp"):
        found["shared_cache_ffn"] = 2 * parts["ffn"]
    if config.flag("enable_moe_block"):
        found["implementation"] = "hf-gemma4-moe"
        found["experts"] = Experts(
            count=config.count("num_experts", "experts"),
            top_k=config.count("top_k_experts", "experts"),
            width=config.optional_count("moe_intermediate_size") or config.count("expert_intermediate_size"),
            parallel_dense=True,
            norms=3,
            scales=True,
        )
    return found


def _shared_layers(config: Config, parts: Parts) -> Parts:
    """Read how many of the last layers share a cache, and embeddings of each layer."""
    found: Parts = {
        "shared_cache_layers": config.optional_count("num_kv_shared_layers", "layers", zero=True) or 0,
    }
    width = config.optional_count("hidden_size_per_layer_input", zero=True)
    if width:
        rows = config.optional_count("vocab_size_per_layer_input", "rows") or parts["vocab"]
        found["per_layer_embedding"] = PerLayerEmbedding(width=width, rows=rows)
    if found["shared_cache_layers"]:
        layers: int = parts["layers"]
        found["shares_cache"] = [index >= layers - found["shared_cache_layers"] for index in range(layers)]
    return found


def _gemma3n_layers(config: Config, parts: Parts) -> Parts:
    """Read Gemma 3n: parallel streams, shared caches, embeddings of each layer, feed-forwards of some widths."""
    found = {**read.windows(5)(config, parts), **_shared_layers(config, parts)}
    listed = isinstance(config.raw("intermediate_size"), list)
    if listed:
        found |= read.widths(config, "intermediate_size", parts["layers"])
    else:
        found["ffn"] = config.count("intermediate_size")
    found["altup"] = AltUp(streams=config.count("altup_num_inputs", "few"), rank=config.count("laurel_rank"))
    return found


_PER_LAYER: Final = {"hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144}
_GEMMA: Final = {
    "hidden_activation": "gelu_pytorch_tanh",
    "tie_word_embeddings": True,
    "head_dim": 256,
    "sliding_window": 512,
}

GEMMA: Final[Mapping[str, Family]] = {
    "gemma4_text": Family(
        implementation="hf-gemma4",
        names={"activation": "hidden_activation"},
        defaults={**sizes(30, 2304, 8, 4, 9216, 262144, 131072), **_GEMMA, **_PER_LAYER, "global_head_dim": 512},
        fixed={"norms_per_layer": 4, "qk_norm": "head"},
        parts=(BIASED, _gemma4_layers, ATTENTION_DROPOUT),
    ),
    "gemma4_unified_text": Family(
        implementation="hf-gemma4",
        names={"activation": "hidden_activation"},
        defaults={
            **sizes(30, 2304, 8, 4, 9216, 262144, 262144),
            **_GEMMA,
            "global_head_dim": 512,
            "sliding_window": 1024,
        },
        fixed={"norms_per_layer": 4, "qk_norm": "head"},
        parts=(BIASED, _gemma4_layers, ATTENTION_DROPOUT),
    ),
    "gemma3n_text": Family(
        implementation="hf-gemma3n",
        names={"activation": "hidden_activation", "ffn": "no_one_width"},
        defaults={
            **sizes(35, 2048, 8, 2, 16384, 262400, 32768),
            **_GEMMA,
            **_PER_LAYER,
            "altup_num_inputs": 4,
            "laurel_rank": 64,
            "num_kv_shared_layers": 15,
        },
        fixed={"norms_per_layer": 4, "qk_norm": "head"},
        parts=(BIASED, _gemma3n_layers, ATTENTION_DROPOUT),
    ),
}

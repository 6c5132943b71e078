"""Readers of models with a part that no other has: Step 3, Phi-3 small and Phi-4 mini flash, whose code stands in their
own repositories, and Chameleon.
"""

from __future__ import annotations

from ...catalog.parts import MemoryUnit, SideWeights, StateSpace, Window
from ..config_file import Config
from .parts import Parts, reader


@reader
def factored_queries(config: Config, parts: Parts) -> Parts:
    """Read Step 3: queries through a shared low rank, one head of keys, experts in layers that are named."""
    layers: int = parts["layers"]
    named = config.raw("moe_layers_enum")
    written = named.split(",") if isinstance(named, str) else named
    if written is None:
        routed = set(range(1, layers))
    elif isinstance(written, list) and all(str(each).strip().isdecimal() for each in written):
        routed = {int(each) for each in written}
    else:
        raise config.wrong("moe_layers_enum", "does not name layers")
    if any(each >= layers for each in routed):
        raise config.wrong("moe_layers_enum", f"names layers that a model of {layers} layers has not")
    return {
        "kv_heads": 1,
        "query_rank": config.optional_count("share_q_dim") or parts["head_dim"],
        "ffn": config.count("intermediate_size"),
        "feed_forward": ["experts" if index in routed else "dense" for index in range(layers)],
    }


@reader
def norms_of_heads(config: Config, parts: Parts) -> Parts:
    """Read Chameleon: norms of queries and keys with weights and biases of each head, shared by so many ranks."""
    ranks, heads = config.count("model_parallel_size", "few"), parts["heads"]
    width = parts["head_dim"] or parts["hidden"] // heads
    normed = heads // ranks + (parts["kv_heads"] or heads) // ranks
    return {"beside": [SideWeights(vectors=2 * normed * width)] * parts["layers"]}


@reader
def block_sparse(config: Config, parts: Parts) -> Parts:
    """Read Phi-3 small: layers that see near blocks and every so manyth before, between layers that see all."""
    layers: int = parts["layers"]
    dense = config.optional_count("dense_attention_every_n_layers", "layers", zero=True) or layers + 1
    near = config.count("blocksparse_num_local_blocks", "tokens") * config.count("blocksparse_block_size", "tokens")
    return {
        "window": Window(size=near, every=config.count("blocksparse_vert_stride", "tokens"), in_cache=False),
        "windowed": [(index + 1) % dense != 0 for index in range(layers)],
    }


@reader
def sambay(config: Config, parts: Parts) -> Parts:
    """Read SambaY: state spaces between windows, one layer that sees all, then memory units between layers that read
    its keys and values.

    Raises:
        DataError: an order of layers that its code does not have.
    """
    layers: int = parts["layers"]
    if layers % 4 or config.count("mb_per_layer", "few") != 2:
        raise config.wrong("mb_per_layer", "is not 2 in a multiple of four layers, which is not supported")
    middle, inner = layers // 2, config.count("mamba_expand", "few") * parts["hidden"]
    rank = config.raw("mamba_dt_rank")
    size = config.optional_count("sliding_window", "tokens") or config.count("max_position_embeddings", "tokens")
    places = range(layers)
    return {
        "state_space": StateSpace(
            heads=inner,
            state=config.count("mamba_d_state"),
            conv_kernel=config.count("mamba_d_conv", "few"),
            conv_bias=config.flag("mamba_conv_bias"),
            bias=config.flag("mamba_proj_bias"),
            step_rank=rank if type(rank) is int and rank > 0 else -(-parts["hidden"] // 16),
            norm=False,
        ),
        "memory_unit": MemoryUnit(width=inner),
        "window": Window(size=size),
        "mixer": [_MIXERS[index % 2, index > middle] for index in places],
        "windowed": [index % 2 == 1 and index < middle for index in places],
        "shares_cache": [index % 2 == 1 and index > middle + 1 for index in places],
    }


_MIXERS = {(0, False): "state_space", (0, True): "memory_unit", (1, False): "attention", (1, True): "attention"}

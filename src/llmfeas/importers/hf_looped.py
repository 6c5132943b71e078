"""Readers of models that run one set of weights several times: layers that run again (ALBERT, Ouro, Nanbeige 4.2,
HRM), and a transformer block that Mamba layers share (Zamba 1 and 2).
"""

from __future__ import annotations

from ..catalog.parts import SharedBlock, SideWeights, StateSpace
from .config_file import MOST_LAYERS, Config
from .hf_hybrid import MAMBA_KEYS, first_space
from .hf_parts import Parts, mixers, reader


@reader
def loops(config: Config, parts: Parts, *, key: str, norm_key: str = "") -> Parts:
    """Read how often all layers run, one loop after the other."""
    held, times = parts["layers"], config.count(key, "few")
    if times == 1:
        return {}
    if times * held > MOST_LAYERS:
        raise config.wrong(key, f"is {times}: more than {MOST_LAYERS} layers would run")
    between = not (norm_key and config.flag(norm_key))
    return {"layers": times * held, "held_layers": held, "loop_norm": between}


@reader
def exit_gate(config: Config, parts: Parts) -> Parts:
    """Ouro's gate, which says of each token after which loop it may leave."""
    return {"side": SideWeights(matrices=((parts["hidden"], 1),), vectors=1)}


@reader
def two_paces(config: Config, parts: Parts) -> Parts:
    """Read HRM: a stack that runs several times, then another one once, and all of it several times over.

    Files that transformers wrote say how many layers run, and of one stack beside it.
    """
    held = config.optional_count("num_layers_per_stack", "layers") or parts["layers"]
    slow, fast = config.count("H_cycles", "few"), config.count("L_cycles", "few")
    if held * slow * (fast + 1) > MOST_LAYERS:
        raise config.wrong("H_cycles", f"is {slow}: more than {MOST_LAYERS} layers would run")
    sets = [*range(1, held + 1)] * fast + [*range(held + 1, 2 * held + 1)]
    return {
        "layers": held * slow * (fast + 1),
        "weight_set": sets * slow,
        "kv_heads": parts["heads"],
        "side": SideWeights(vectors=parts["hidden"]),
    }


@reader
def groups(config: Config, parts: Parts) -> Parts:
    """Read ALBERT's groups: layers of one run the same weights.

    Raises:
        DataError: more than one layer in a group.
    """
    layers, groups = parts["layers"], config.count("num_hidden_groups", "layers")
    if config.count("inner_group_num", "layers") != 1:
        raise config.wrong("inner_group_num", "is above 1, which is not supported")
    if groups == 1:
        return {"held_layers": 1}
    return {"weight_set": [int(index / (layers / groups)) + 1 for index in range(layers)]}


@reader
def shared_block(config: Config, parts: Parts) -> Parts:
    """Read which layers run a shared block ahead of their mixer, and which of the blocks that there are."""
    mamba = {"mamba": "state_space", "linear_attention": "state_space", "hybrid": "hybrid"}
    kinds = mixers(config, parts, "layers_block_type", mamba)["mixer"]
    blocks, used, sets = config.optional_count("num_mem_blocks", "few") or 1, 0, []
    for kind in kinds:
        sets.append(used % blocks + 1 if kind == "hybrid" else 0)
        used += kind == "hybrid"
    return {
        "mixer": ["state_space"] * len(kinds),
        "feed_forward": ["none"] * len(kinds),
        "weight_set": sets,
        "head_dim": 2 * parts["hidden"] // parts["heads"],
        "ffn": parts["ffn"] or 4 * parts["hidden"],
    }


@reader
def zamba(config: Config, parts: Parts) -> Parts:
    """Read Zamba: heads of Mamba 1, each with projections of its own to step, in and out."""
    hidden = parts["hidden"]
    inner = config.count("mamba_expand", "few") * hidden
    space = first_space(
        config, hidden, inner, MAMBA_KEYS, norm=False, stacked_steps=True, scans=config.count("n_mamba_heads", "heads")
    )
    return {"state_space": space, "shared_block": SharedBlock(), "rope_fraction": 0.0}


@reader
def zamba2(config: Config, parts: Parts) -> Parts:
    """Read Zamba 2: Mamba 2, and low-rank pairs that each use adds to the block's projections."""
    heads = config.count("n_mamba_heads", "heads")
    space = StateSpace(
        heads=heads,
        head_dim=config.count("mamba_expand", "few") * parts["hidden"] // heads,
        groups=config.count("mamba_ngroups", "heads"),
        state=config.count("mamba_d_state"),
        conv_kernel=config.count("mamba_d_conv", "few"),
        bias=config.flag("add_bias_linear"),
        chunk=config.count("chunk_size"),
    )
    block = SharedBlock(
        adapter_rank=config.count("adapter_rank"), adapts_attention=config.flag("use_shared_attention_adapter")
    )
    turns = 1.0 if config.flag("use_mem_rope") else 0.0
    return {"state_space": space, "shared_block": block, "rope_fraction": turns, "mlp_bias": space.bias}


"""What Nanbeige's class knows besides and its published models leave out."""

"""Readers of models that run one set of weights several times: layers that run again (ALBERT, Ouro, Nanbeige 4.2,
HRM), and a transformer block that Mamba layers share (Zamba 1 and 2).
"""

from __future__ import annotations

from ...catalog.parts import SharedBlock, SideWeights, StateSpace, Window
from ...record import replace
from ..config_file import MOST_LAYERS, Config
from .hybrid import MAMBA_KEYS, first_space
from .parts import COLUMNS, Parts, mixers, reader


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
def middle_again(config: Config, parts: Parts) -> Parts:
    """Read Dory: layers between the first and the last ones run several times; scales beside matrices, gates of
    attention from a product of their own.

    Published files list attention and feed-forwards as layers of their own.

    Raises:
        DataError: layers that are not those of three parts, or too many that would run.
    """
    layers, hidden, width = parts["layers"], parts["hidden"], parts["heads"] * parts["head_dim"]
    kinds = config.words("layer_types", 10_000)
    blocks = 2 if kinds and "mlp" in kinds else 1
    kinds = (kinds or tuple("sliding_attention" if (i + 1) % 4 else "full_attention" for i in range(layers)))[::blocks]
    first, last = (config.count(key, "layers", zero=True) // blocks for key in ("n_input_layers", "n_output_layers"))
    layers, times = layers // blocks, config.count("n_recurrent_loops", "few")
    again = layers - first - last
    if again < 1 or len(kinds) < layers or first + times * again + last > MOST_LAYERS:
        raise config.wrong("n_recurrent_loops", f"does not run {again} of {len(kinds)} layers again")
    order = [*range(first), *[first + index for index in range(again)] * times, *range(first + again, layers)]
    vectors = 2 * (width + parts["ffn"] + hidden)
    return {
        "layers": len(order),
        "window": Window(size=config.count("sliding_window", "tokens")),
        "windowed": [kinds[index] == "sliding_attention" for index in order],
        "weight_set": [index + 1 if first <= index < first + again and times > 1 else 0 for index in order],
        "beside": [SideWeights(vectors=vectors)] * len(order),
        "side": SideWeights(vectors=parts["vocab"]),
    }


@reader
def gated_again(config: Config, parts: Parts) -> Parts:
    """Read Inkling 2's loops: some layers run several times, and gates of low rank let in what the pass before made.

    The gates are counted in each pass, the first too, which passes them by.

    Raises:
        DataError: layers that there are not, or too many that would run.
    """
    layers, hidden = parts["layers"], parts["hidden"]
    start, end = (config.count(f"loop_layer_index_{key}", "layers", zero=True) for key in ("start", "end"))
    times, rank = config.count("loop_num_passes", "few"), config.count("loop_gate_rank")
    if not start < end <= layers or layers + (times - 1) * (end - start) > MOST_LAYERS:
        raise config.wrong("loop_layer_index_end", f"does not end a part of {layers} layers")
    order = [*range(start), *[*range(start, end)] * times, *range(end, layers)]
    # Of queries, keys, values and feed-forward, each down to the rank and twice up: one matrix of as many numbers.
    gates = (2 * hidden, 4 * 2 * rank)
    columns: Parts = {name: [parts[name][index] for index in order] for name in COLUMNS if name in parts}
    looped = [start <= index < end for index in order]
    besides = zip(columns["beside"], looped, strict=True)
    side: SideWeights = parts["side"]
    return {
        **columns,
        "layers": len(order),
        "beside": [replace(each, matrices=(*each.matrices, gates)) if again else each for each, again in besides],
        "weight_set": [index + 1 if again else 0 for index, again in zip(order, looped, strict=True)],
        "side": replace(side, vectors=side.vectors + 4 * (end - start) * hidden),
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

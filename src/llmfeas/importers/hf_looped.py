"""Rows of model types that run one set of weights several times: layers that run again (ALBERT, Ouro, Nanbeige 4.2,
HRM), and a transformer block that Mamba layers share (Zamba 1 and 2).

`defaults` are those of the configuration classes of transformers 5.23, and of the classes that lie beside the weights
where it has none (Ouro, Nanbeige): a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..catalog.parts import SharedBlock, SideWeights, StateSpace
from .config_file import MOST_LAYERS, Config
from .hf_encoder import ALBERT_FIXED, albert_behind
from .hf_mamba import MAMBA_KEYS, first_space
from .hf_parts import ATTENTION_DROPOUT, BIASED, MLP_BIASED, Family, Part, Parts, mixers, optional_window, sizes


def _loops(key: str, *, norm_key: str = "") -> Part:
    """Read how often all layers run, one loop after the other."""

    def read(config: Config, parts: Parts) -> Parts:
        held, times = parts["layers"], config.count(key, "few")
        if times == 1:
            return {}
        if times * held > MOST_LAYERS:
            raise config.wrong(key, f"is {times}: more than {MOST_LAYERS} layers would run")
        between = not (norm_key and config.flag(norm_key))
        return {"layers": times * held, "held_layers": held, "loop_norm": between}

    return read


def _exit_gate(config: Config, parts: Parts) -> Parts:
    """Ouro's gate, which says of each token after which loop it may leave."""
    return {"side": SideWeights(matrices=((parts["hidden"], 1),), vectors=1)}


def _two_paces(config: Config, parts: Parts) -> Parts:
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


def _groups(config: Config, parts: Parts) -> Parts:
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


def _shared_block(config: Config, parts: Parts) -> Parts:
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


def _zamba(config: Config, parts: Parts) -> Parts:
    """Read Zamba: heads of Mamba 1, each with projections of its own to step, in and out."""
    hidden = parts["hidden"]
    inner = config.count("mamba_expand", "few") * hidden
    space = first_space(
        config, hidden, inner, MAMBA_KEYS, norm=False, stacked_steps=True, scans=config.count("n_mamba_heads", "heads")
    )
    return {"state_space": space, "shared_block": SharedBlock(), "rope_fraction": 0.0}


def _zamba2(config: Config, parts: Parts) -> Parts:
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


_UNUSED: Final = dict.fromkeys(
    ("enable_double_loop_split", "enable_hyper_connection", "enable_depth_attention", "qk_layernorm"), (False,)
)
"""What Nanbeige's class knows besides and its published models leave out."""

LOOPED: Final[Mapping[str, Family]] = {
    "albert": Family(
        implementation="hf-bert",
        defaults={
            **sizes(12, 4096, 64, None, 16384, 30000, 512, type_vocab_size=2, tie_word_embeddings=True),
            "hidden_act": "gelu_new",
            "embedding_size": 128,
            "num_hidden_groups": 1,
            "inner_group_num": 1,
        },
        fixed=ALBERT_FIXED,
        parts=(_groups, albert_behind),
    ),
    "ouro": Family(
        implementation="hf-ouro",
        defaults=sizes(24, 2048, 16, None, 5632, 49152, 65536, total_ut_steps=4),
        fixed={"norms_per_layer": 4},
        parts=(_exit_gate, optional_window, _loops("total_ut_steps"), ATTENTION_DROPOUT),
    ),
    "hrm_text": Family(
        implementation="hf-hrm",
        defaults=sizes(16, 1536, 12, None, 4096, 151808, 2048, head_dim=128, H_cycles=2, L_cycles=3),
        fixed={"norm": "layer-plain", "output_gate": True},
        parts=(BIASED, MLP_BIASED, _two_paces, ATTENTION_DROPOUT),
    ),
    "nanbeige": Family(
        implementation="hf-llama",
        defaults=sizes(32, 4096, 32, None, 11008, 32000, 2048, num_loops=1),
        only={**_UNUSED, "emb_neighbor_num": (None,), "loop_loss_weights": ([],)},
        parts=(BIASED, MLP_BIASED, _loops("num_loops", norm_key="skip_loop_final_norm"), ATTENTION_DROPOUT),
    ),
    "zamba": Family(
        implementation="hf-zamba",
        names={"head_dim": "attention_head_dim"},
        defaults={
            **sizes(76, 3712, 16, 16, 14848, 32000, 4096, tie_word_embeddings=True),
            "hidden_act": "gelu",
            "mamba_d_state": 16,
            "mamba_d_conv": 4,
            "mamba_expand": 2,
            "n_mamba_heads": 2,
            "layers_block_type": [
                *("mamba", "mamba", "hybrid"),
                *("hybrid" if index % 6 == 4 else "mamba" for index in range(73)),
            ],
        },
        fixed={"norms_per_layer": 1},
        parts=(_shared_block, _zamba, ATTENTION_DROPOUT),
    ),
    "zamba2": Family(
        implementation="hf-zamba2",
        names={"head_dim": "attention_head_dim"},
        defaults={
            **sizes(54, 2560, 32, None, 0, 32000, 4096, tie_word_embeddings=True),
            "hidden_act": "gelu",
            "mamba_d_state": 64,
            "mamba_d_conv": 4,
            "mamba_expand": 2,
            "mamba_ngroups": 1,
            "n_mamba_heads": 8,
            "adapter_rank": 128,
            "chunk_size": 256,
            "layers_block_type": [
                "mamba",
                *(("mamba",) * 5 + ("hybrid",)) * 7,
                *(("mamba",) * 4 + ("hybrid",)),
                *(("mamba",) * 3 + ("hybrid",)),
                *("mamba",) * 2,
            ],
        },
        fixed={"norms_per_layer": 1, "fused_gate_up": True},
        parts=(_shared_block, _zamba2, ATTENTION_DROPOUT),
    ),
}

"""Rows of model types that are state spaces alone (Mamba 1 and 2), and of Jamba, which has attention between Mamba 1.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..catalog.parts import Experts, StateSpace
from .config_file import Config
from .hf_parts import ATTENTION_DROPOUT, Family, Parts, headless, sizes


def first_space(config: Config, hidden: int, inner: int, keys: Mapping[str, str], **fixed: Any) -> StateSpace:
    """Read a state space of Mamba 1, whose fields have these names."""
    rank = config.raw(keys["step_rank"])
    return StateSpace(
        heads=inner,
        state=config.count(keys["state"]),
        conv_kernel=config.count(keys["conv_kernel"], "few"),
        conv_bias=config.raw(keys["conv_bias"]) is not False,
        bias=config.flag(keys["bias"]),
        step_rank=rank if type(rank) is int else -(-hidden // 16),
        **fixed,
    )


_OWN_KEYS: Final = {
    "state": "state_size",
    "conv_kernel": "conv_kernel",
    "conv_bias": "use_conv_bias",
    "bias": "use_bias",
    "step_rank": "time_step_rank",
}
MAMBA_KEYS: Final = {
    "state": "mamba_d_state",
    "conv_kernel": "mamba_d_conv",
    "conv_bias": "mamba_conv_bias",
    "bias": "mamba_proj_bias",
    "step_rank": "mamba_dt_rank",
}
"""Fields of a state space in a model that has more than those."""


def _alone(parts: Parts, space: StateSpace) -> Parts:
    """Every layer is one mixer."""
    layers = parts["layers"]
    kinds = {"mixer": ["state_space"] * layers, "feed_forward": ["none"] * layers}
    return {"state_space": space, **kinds, "ffn": 1, **headless(parts["hidden"])}


def _mamba(config: Config, parts: Parts) -> Parts:
    """Read Mamba 1, every layer of which is one mixer."""
    hidden: int = parts["hidden"]
    inner = config.optional_count("intermediate_size", zero=True) or config.count("expand", "few") * hidden
    return _alone(parts, first_space(config, hidden, inner, _OWN_KEYS, norm=False))


def _mamba2(config: Config, parts: Parts) -> Parts:
    """Read Mamba 2 alone."""
    space = StateSpace(
        heads=config.count("num_heads", "heads"),
        head_dim=config.count("head_dim"),
        groups=config.count("n_groups", "heads"),
        state=config.count("state_size"),
        conv_kernel=config.count("conv_kernel", "few"),
        conv_bias=config.raw("use_conv_bias") is not False,
        bias=config.flag("use_bias"),
        chunk=config.count("chunk_size"),
    )
    return _alone(parts, space)


def _jamba_layers(config: Config, parts: Parts) -> Parts:
    """Read Jamba: attention and experts each so many layers apart, Mamba 1 and dense feed-forwards between."""
    layers, hidden = parts["layers"], parts["hidden"]
    space = first_space(config, hidden, config.count("mamba_expand", "few") * hidden, MAMBA_KEYS)
    places = {name: _places(config, name, layers) for name in ("attn", "expert")}
    found: Parts = {
        "state_space": space,
        "mixer": ["attention" if index in places["attn"] else "state_space" for index in range(layers)],
        "rope_fraction": 0.0,
    }
    count = config.count("num_experts", "experts")
    if count > 1:
        found["experts"] = Experts(
            count=count, top_k=config.count("num_experts_per_tok", "experts"), width=config.count("intermediate_size")
        )
        found["feed_forward"] = ["experts" if index in places["expert"] else "dense" for index in range(layers)]
    return found


def _places(config: Config, name: str, layers: int) -> range:
    period = config.count(f"{name}_layer_period", "layers")
    offset = config.optional_count(f"{name}_layer_offset", "layers", zero=True) or 0
    return range(offset, layers, period)


MAMBA: Final[Mapping[str, Family]] = {
    "mamba": Family(
        implementation="hf-mamba2",
        defaults=sizes(
            32, 768, 1, None, 0, 50280, 2048, state_size=16, expand=2, conv_kernel=4, tie_word_embeddings=True
        ),
        fixed={"norms_per_layer": 1},
        parts=(_mamba,),
    ),
    "falcon_mamba": Family(
        implementation="hf-mamba2",
        defaults=sizes(
            64, 4096, 1, None, 0, 65024, 8192, state_size=16, expand=2, conv_kernel=4, tie_word_embeddings=True
        ),
        fixed={"norms_per_layer": 1},
        parts=(_mamba,),
    ),
    "mamba2": Family(
        implementation="hf-mamba2",
        defaults=sizes(
            64,
            4096,
            1,
            None,
            0,
            32768,
            262144,
            num_heads=128,
            head_dim=64,
            n_groups=8,
            state_size=128,
            conv_kernel=4,
            chunk_size=256,
        ),
        fixed={"norms_per_layer": 1},
        parts=(_mamba2,),
    ),
    "jamba": Family(
        implementation="hf-jamba",
        defaults=sizes(
            *(32, 4096, 32, 8, 14336, 65536, 262144),
            num_experts=16,
            num_experts_per_tok=2,
            attn_layer_period=8,
            attn_layer_offset=4,
            expert_layer_period=2,
            expert_layer_offset=1,
            mamba_d_state=16,
            mamba_d_conv=4,
            mamba_expand=2,
            mamba_conv_bias=True,
        ),
        parts=(_jamba_layers, ATTENTION_DROPOUT),
    ),
}

"""Readers of layers that mix tokens otherwise than by attention: state spaces, delta rules, convolutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...catalog.parts import Experts, LinearAttention, ShortConvolution, SideWeights, StateSpace, Window
from ...record import replace
from ..config_file import Config
from . import parts as read
from .parts import Parts, headless, reader


def _state_space(config: Config, parts: Parts) -> Parts:
    """Read Mamba 2 as IBM, AI2 and TII spell it."""
    heads = config.count("mamba_n_heads", "heads")
    width = config.optional_count("mamba_d_ssm") or config.count("mamba_expand", "few") * parts["hidden"]
    head = config.raw("mamba_d_head")
    space = StateSpace(
        heads=heads,
        head_dim=head if type(head) is int and head > 0 else max(1, width // heads),
        groups=config.count("mamba_n_groups", "heads"),
        state=config.count("mamba_d_state"),
        conv_kernel=config.count("mamba_d_conv", "few"),
        conv_bias=config.flag("mamba_conv_bias"),
        bias=config.flag("mamba_proj_bias"),
        norm=config.raw("mamba_rms_norm") is not False,
        chunk=config.optional_count("mamba_chunk_size") or 256,
    )
    return {"state_space": space}


@reader
def granite_layers(config: Config, parts: Parts) -> Parts:
    """Read Granite 4's mixers and its feed-forward: experts beside a shared one, or that one alone."""
    found: Parts = {} if config.text("position_embedding_type", "rope") == "rope" else {"rope_fraction": 0.0}
    names = {"mamba": "state_space", "linear_attention": "state_space", "attention": "attention"}
    key = next((key for key in ("layer_types", "layers_block_type") if config.raw(key) is not None), None)
    found["mixer"] = ["state_space"] * parts["layers"]
    if key is not None:
        found |= read.mixers(config, parts, key, {**names, "full_attention": "attention"})
    if "state_space" in found["mixer"]:
        found |= _state_space(config, parts)
    shared = config.count("shared_intermediate_size")
    count = config.optional_count("num_local_experts", "experts", zero=True) or 0
    if not count:
        return {**found, "ffn": shared}
    experts = Experts(
        count=count,
        top_k=config.count("num_experts_per_tok", "experts"),
        width=config.count("intermediate_size"),
        shared=1,
        shared_width=shared,
    )
    return {**found, "experts": experts, "ffn": None}


@reader
def listed_attention(config: Config, parts: Parts) -> Parts:
    """Read Bamba's layers: a list of those with attention."""
    marks = config.numbers("attn_layer_indices", 10_000) or ()
    mixer = ["attention" if index in marks else "state_space" for index in range(parts["layers"])]
    return {**_state_space(config, parts), "mixer": mixer, "rope_fraction": 0.5}


@reader
def side_by_side(config: Config, parts: Parts) -> Parts:
    """Read Falcon-H1: attention and Mamba 2 in every layer."""
    return {**_state_space(config, parts), "mixer": ["hybrid"] * parts["layers"]}


_SUBLAYERS: Final = {
    "M": ("state_space", "none"),
    "*": ("attention", "none"),
    "-": ("none", "dense"),
    "E": ("none", "experts"),
    "mamba": ("state_space", "none"),
    "linear_attention": ("state_space", "none"),
    "mlp": ("none", "dense"),
    "attention": ("attention", "none"),
    "full_attention": ("attention", "none"),
    "moe": ("none", "experts"),
}


def _second_space(config: Config, prefix: str, *, state: str) -> StateSpace:
    """Read Mamba 2 as its own class spells it; of some names only the beginning differs."""
    return StateSpace(
        heads=config.count(f"{prefix}num_heads", "heads"),
        head_dim=config.count(f"{prefix}head_dim"),
        groups=config.count("n_groups", "heads"),
        state=config.count(state),
        conv_kernel=config.count("conv_kernel", "few"),
        conv_bias=config.raw("use_conv_bias") is not False,
        bias=config.flag("use_bias"),
        chunk=config.optional_count(f"{prefix}chunk_size") or config.count("chunk_size"),
    )


@reader
def nemotron_layers(config: Config, parts: Parts) -> Parts:
    """Read Nemotron-H: each layer is one mixer or one feed-forward.

    Raises:
        DataError: no pattern, a short one, or a letter that is not known.
    """
    key = "hybrid_override_pattern" if config.raw("hybrid_override_pattern") is not None else "layers_block_type"
    marks = config.text(key) if key == "hybrid_override_pattern" else config.words(key, 10_000) or ()
    layers: int = parts["layers"] if "num_hidden_layers" in config.fields else len(marks)
    if len(marks) < layers or not marks or any(mark not in _SUBLAYERS for mark in marks[:layers]):
        raise config.wrong(key, f"does not name {layers} known layers", "Letters: M, *, -, E.")
    kinds = [_SUBLAYERS[mark] for mark in marks[:layers]]
    found: Parts = {"layers": layers, "state_space": _second_space(config, "mamba_", state="ssm_state_size")}
    found |= {"mixer": [mixer for mixer, _ in kinds], "feed_forward": [fed for _, fed in kinds]}
    if "experts" in found["feed_forward"]:
        found["experts"] = Experts(
            count=config.count("n_routed_experts", "experts"),
            top_k=config.count("num_experts_per_tok", "experts"),
            width=config.count("moe_intermediate_size"),
            shared=1 if config.optional_count("n_shared_experts", "experts", zero=True) else 0,
            shared_width=config.optional_count("moe_shared_expert_intermediate_size"),
            latent_width=config.optional_count("moe_latent_size"),
        )
    return found


@reader
def lfm2_layers(config: Config, parts: Parts) -> Parts:
    """Read LFM2: gated convolutions or attention, and a feed-forward whose width is rounded."""
    layers: int = parts["layers"]
    convolution = ShortConvolution(kernel=config.count("conv_L_cache", "few"), bias=config.flag("conv_bias"))
    found: Parts = {"short_convolution": convolution}
    if config.raw("layer_types") is not None:
        names = {"conv": "short_convolution", "full_attention": "attention", "attention": "attention"}
        found |= read.mixers(config, parts, "layer_types", names)
    else:
        marks = config.numbers("full_attn_idxs", 10_000) or ()
        found["mixer"] = ["attention" if index in marks else "short_convolution" for index in range(layers)]
    return found


@reader
def lfm2_width(config: Config, parts: Parts) -> Parts:
    """Read LFM2's width of the feed-forward, which may be rounded."""
    width = config.optional_count("block_ff_dim") or config.count("intermediate_size")
    if not config.flag("block_auto_adjust_ff_dim"):
        return {"ffn": width}
    width = int(config.number("block_ffn_dim_multiplier", 0.0) * int(2 * width / 3))
    multiple = config.count("block_multiple_of")
    return {"ffn": multiple * -(-width // multiple)}


@reader
def tied_embedding(config: Config, parts: Parts) -> Parts:
    """Read whether the head is tied, in the older spelling."""
    return {"tied": config.flag("tie_embedding")} if config.raw("tie_embedding") is not None else {}


def of_linear_layers(config: Config) -> Config:
    """What a configuration says of its linear layers alone, in a section of theirs."""
    return config.nested("linear_attn_config") or Config(config.file, {}, {})


def channel_decays(config: Config) -> LinearAttention:
    """A delta rule with decays of each channel, as Kimi Linear writes its sizes."""
    own = of_linear_layers(config)
    heads = own.optional_count("num_heads", "heads") or config.count("linear_num_heads", "heads")
    width = own.optional_count("head_dim") or config.count("linear_head_dim")
    kernel = own.optional_count("short_conv_kernel_size", "few") or config.count("linear_conv_kernel_dim", "few")
    return LinearAttention(
        key_heads=heads,
        value_heads=heads,
        key_head_dim=width,
        value_head_dim=width,
        conv_kernel=kernel,
        channel_rank=width,
    )


@reader
def kimi_layers(config: Config, parts: Parts) -> Parts:
    """Read Kimi Linear: which layers (from 1) keep latent attention, and the shape of the others."""
    linear = of_linear_layers(config)
    shape = replace(channel_decays(config), whole_gate=linear.flag("use_full_rank_gate"))
    mixer = _kimi_mixers(config, linear, parts)
    return {"linear_attention": shape, "mixer": mixer, **_kimi_gates(config, parts, mixer)}


def _kimi_mixers(config: Config, linear: Config, parts: Parts) -> list[str]:
    """Which layers keep latent attention: as the file lists them in either way, else every fourth behind the first."""
    layers: int = parts["layers"]
    whole = linear.numbers("full_attn_layers", 10_000)
    if whole is None and config.raw("layer_types") is not None:
        names = {"linear_attention": "linear_attention", "full_attention": "attention"}
        return list(read.mixers(config, parts, "layer_types", names)["mixer"])
    if whole is None:
        whole = tuple(range(5, layers + 1, 4))
    return ["attention" if index + 1 in whole else "linear_attention" for index in range(layers)]


def _kimi_gates(config: Config, parts: Parts, mixer: Sequence[str]) -> Parts:
    """Read what Kimi K3 adds: a gate on latent attention's output, experts that work in a narrower width."""
    found: Parts = {}
    if config.flag("mla_use_output_gate"):
        gate = SideWeights(matrices=((parts["hidden"], parts["heads"] * parts["mla"].v_head_dim),))
        found["beside"] = [gate if kind == "attention" else None for kind in mixer]
    narrow = config.optional_count("routed_expert_hidden_size")
    if narrow is not None:
        found["experts"] = replace(parts["experts"], latent_width=narrow)
    return found


@reader
def lightning_layers(config: Config, parts: Parts) -> Parts:
    """Read MiniMax's lightning attention, by words or by marks (1: softmax)."""
    marks = config.numbers("attn_type_list", 10_000)
    if marks is not None:
        mixer: Parts = {"mixer": ["attention" if mark else "linear_attention" for mark in marks[: parts["layers"]]]}
    else:
        names = {"linear_attention": "linear_attention", "full_attention": "attention"}
        mixer = read.mixers(config, parts, "layer_types", names)
    heads, width = parts["heads"], parts["head_dim"] or parts["hidden"] // parts["heads"]
    shape = _lightning(heads, width)
    return {"linear_attention": shape, **mixer, "rope_fraction": 0.5}


def _lightning(heads: int, width: int) -> LinearAttention:
    return LinearAttention(
        key_heads=heads,
        value_heads=heads,
        key_head_dim=width,
        value_head_dim=width,
        conv_kernel=1,
        interval=0,
        lightning=True,
    )


@reader
def lightning_groups(config: Config, parts: Parts) -> Parts:
    """Read Ring's lightning attention (Ring-linear 2.0, Ling and Ring 2.5): all layers of a group but its last one,
    with norms of queries and keys; what is left of a group keeps ordinary or latent attention."""
    layers, group = parts["layers"], config.count("layer_group_size", "layers")
    heads: int = parts["heads"]
    width = config.optional_count("head_dim") or parts["hidden"] // heads
    whole = [bool((index + 1) % group == 0 or index >= layers // group * group) for index in range(layers)]
    shape = _lightning(heads, width)
    norms = SideWeights(vectors=2 * width) if config.raw("use_qk_norm") is not False else None
    return {
        "linear_attention": shape,
        "mixer": ["attention" if keeps else "linear_attention" for keeps in whole],
        "beside": [None if keeps else norms for keeps in whole],
    }


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


@reader
def mamba(config: Config, parts: Parts) -> Parts:
    """Read Mamba 1, every layer of which is one mixer."""
    hidden: int = parts["hidden"]
    inner = config.optional_count("intermediate_size", zero=True) or config.count("expand", "few") * hidden
    return _alone(parts, first_space(config, hidden, inner, _OWN_KEYS, norm=False))


@reader
def mamba2(config: Config, parts: Parts) -> Parts:
    """Read Mamba 2 alone."""
    return _alone(parts, _second_space(config, "", state="state_size"))


@reader
def jamba_layers(config: Config, parts: Parts) -> Parts:
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


@reader
def lfm3_layers(config: Config, parts: Parts) -> Parts:
    """Read LFM 3: gated convolutions, or attention to a window or to everything."""
    layers: int = parts["layers"]
    kinds = config.words("layer_types", 10_000)
    if kinds is None:
        turns = ("full_attention", "sliding_attention")
        kinds = tuple("conv" if i % 2 or i == 0 else turns[(i // 2 - 1) % 2] for i in range(layers))
    names = {"conv": "short_convolution", "full_attention": "attention", "sliding_attention": "attention"}
    return {
        "short_convolution": ShortConvolution(
            kernel=config.count("conv_L_cache", "few"), bias=config.flag("conv_bias")
        ),
        "mixer": read.named_layers(config, "layer_types", kinds, names, layers),
        "window": Window(size=config.count("sliding_window", "tokens")),
        "windowed": [kind == "sliding_attention" for kind in kinds[:layers]],
        "norms_per_layer": 2 if config.raw("use_sandwich_norm") is False else 4,
        "head_gate": config.raw("use_attention_gate") is not False,
    }

"""Rows of model types that mix tokens otherwise than by attention in some of their layers, and of Gemma 3n and 4.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..catalog.parts import Experts, LinearAttention, ShortConvolution, SideWeights, StateSpace
from ..record import replace
from . import hf_parts as read
from .config_file import Config
from .hf_parts import ATTENTION_DROPOUT, BIASED, MLP_BIASED, PER_TOKEN_EXPERTS, Family, Parts, sizes

_SPACE: Final = {
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_d_state": 256,
    "mamba_n_groups": 1,
    "mamba_conv_bias": True,
    "mamba_n_heads": 128,
    "mamba_d_head": 64,
}
_STILL: Final = {"positions": "rope", "rope_fraction": 0.0}


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


def _granite_layers(config: Config, parts: Parts) -> Parts:
    """Read Granite 4's mixers and its feed-forward: experts beside a shared one, or that one alone."""
    found: Parts = {} if config.text("position_embedding_type", "rope") == "rope" else {"rope_fraction": 0.0}
    names = {"mamba": "state_space", "linear_attention": "state_space", "attention": "attention"}
    if config.raw("layer_types") is not None or config.raw("layers_block_type") is not None:
        key = "layer_types" if config.raw("layer_types") is not None else "layers_block_type"
        found |= read.mixers(config, parts, key, {**names, "full_attention": "attention"})
    if "state_space" in found.get("mixer", ("state_space",)):
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


def _listed_attention(config: Config, parts: Parts) -> Parts:
    """Read Bamba's layers: a list of those with attention."""
    marks = config.numbers("attn_layer_indices", 10_000) or ()
    mixer = ["attention" if index in marks else "state_space" for index in range(parts["layers"])]
    return {**_state_space(config, parts), "mixer": mixer, "rope_fraction": 0.5}


def _side_by_side(config: Config, parts: Parts) -> Parts:
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


def _nemotron_layers(config: Config, parts: Parts) -> Parts:
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
    space = StateSpace(
        heads=config.count("mamba_num_heads", "heads"),
        head_dim=config.count("mamba_head_dim"),
        groups=config.count("n_groups", "heads"),
        state=config.count("ssm_state_size"),
        conv_kernel=config.count("conv_kernel", "few"),
        conv_bias=config.raw("use_conv_bias") is not False,
        bias=config.flag("mamba_proj_bias"),
        chunk=config.optional_count("mamba_chunk_size") or config.count("chunk_size"),
    )
    found: Parts = {"layers": layers, "state_space": space}
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


def _lfm2_layers(config: Config, parts: Parts) -> Parts:
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


def _lfm2_width(config: Config, parts: Parts) -> Parts:
    width = config.optional_count("block_ff_dim") or config.count("intermediate_size")
    if not config.flag("block_auto_adjust_ff_dim"):
        return {"ffn": width}
    width = int(config.number("block_ffn_dim_multiplier", 0.0) * int(2 * width / 3))
    multiple = config.count("block_multiple_of")
    return {"ffn": multiple * -(-width // multiple)}


def _tied_embedding(config: Config, parts: Parts) -> Parts:
    return {"tied": config.flag("tie_embedding")} if config.raw("tie_embedding") is not None else {}


def _kimi_layers(config: Config, parts: Parts) -> Parts:
    """Read Kimi Linear: which layers (from 1) keep latent attention, and the shape of the others."""
    linear = config.nested("linear_attn_config") or Config(config.file, {}, {})
    heads = linear.optional_count("num_heads", "heads") or config.count("linear_num_heads", "heads")
    width = linear.optional_count("head_dim") or config.count("linear_head_dim")
    shape = LinearAttention(
        key_heads=heads,
        value_heads=heads,
        key_head_dim=width,
        value_head_dim=width,
        conv_kernel=linear.optional_count("short_conv_kernel_size", "few")
        or config.count("linear_conv_kernel_dim", "few"),
        interval=0,
        channel_rank=width,
        whole_gate=linear.flag("use_full_rank_gate"),
    )
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


def _lightning_layers(config: Config, parts: Parts) -> Parts:
    """Read MiniMax's lightning attention, by words or by marks (1: softmax)."""
    marks = config.numbers("attn_type_list", 10_000)
    if marks is not None:
        mixer: Parts = {"mixer": ["attention" if mark else "linear_attention" for mark in marks[: parts["layers"]]]}
    else:
        names = {"linear_attention": "linear_attention", "full_attention": "attention"}
        mixer = read.mixers(config, parts, "layer_types", names)
    heads, width = parts["heads"], parts["head_dim"] or parts["hidden"] // parts["heads"]
    shape = LinearAttention(
        key_heads=heads,
        value_heads=heads,
        key_head_dim=width,
        value_head_dim=width,
        conv_kernel=1,
        interval=0,
        lightning=True,
    )
    return {"linear_attention": shape, **mixer, "rope_fraction": 0.5}


HYBRID: Final[Mapping[str, Family]] = {
    "granitemoehybrid": Family(
        implementation="hf-granite-hybrid",
        defaults=sizes(32, 4096, 32, None, 11008, 32000, 2048, tie_word_embeddings=True, **_SPACE),
        parts=(BIASED, _granite_layers, ATTENTION_DROPOUT),
    ),
    "bamba": Family(
        implementation="hf-bamba",
        defaults=sizes(32, 4096, 32, 8, 14336, 128000, 262144, **_SPACE),
        parts=(BIASED, MLP_BIASED, _listed_attention, ATTENTION_DROPOUT),
    ),
    "falcon_h1": Family(
        implementation="hf-falcon-h1",
        defaults=sizes(32, 4096, 32, 8, 14336, 128000, 8192, mamba_rms_norm=False, **_SPACE),
        parts=(BIASED, MLP_BIASED, _side_by_side, ATTENTION_DROPOUT),
    ),
    "nemotron_h": Family(
        implementation="hf-nemotron-h",
        names={"activation": "mlp_hidden_act"},
        defaults=sizes(
            *(52, 4096, 32, 8, 21504, 131072, 4096),
            head_dim=128,
            n_groups=8,
            ssm_state_size=128,
            conv_kernel=4,
            mamba_head_dim=64,
            mamba_num_heads=128,
            chunk_size=128,
            mlp_hidden_act="relu2",
        ),
        fixed={"gated": False, "activation": "relu2", "norms_per_layer": 1, "rope_fraction": 0.0},
        parts=(BIASED, MLP_BIASED, _nemotron_layers, ATTENTION_DROPOUT),
    ),
    "lfm2": Family(
        implementation="hf-lfm2",
        defaults=sizes(
            *(32, 2560, 32, 8, 12288, 65536, 128000),
            conv_L_cache=3,
            block_multiple_of=256,
            block_ffn_dim_multiplier=1.0,
            block_auto_adjust_ff_dim=True,
            tie_word_embeddings=True,
        ),
        fixed={"qk_norm": "head"},
        parts=(_lfm2_layers, _lfm2_width, _tied_embedding),
    ),
    "lfm2_moe": Family(
        implementation="hf-lfm2",
        defaults=sizes(
            *(32, 2048, 32, 8, 7168, 65536, 128000),
            conv_L_cache=3,
            moe_intermediate_size=1792,
            num_dense_layers=2,
            num_experts=32,
            num_experts_per_tok=4,
            tie_word_embeddings=True,
        ),
        fixed={"qk_norm": "head"},
        parts=(
            _lfm2_layers,
            read.experts(count=("num_experts",), first_dense="num_dense_layers", dense="intermediate_size"),
            _tied_embedding,
        ),
    ),
    "kimi_linear": Family(
        implementation="hf-hybrid",
        names={"context": "model_max_length"},
        defaults=sizes(
            *(27, 2304, 32, None, 9216, 163840, 1048576),
            model_max_length=1048576,
            num_experts=256,
            num_experts_per_token=8,
            moe_intermediate_size=1024,
            num_shared_experts=1,
            first_k_dense_replace=1,
            kv_lora_rank=512,
            qk_nope_head_dim=128,
            qk_rope_head_dim=64,
            v_head_dim=128,
            linear_num_heads=32,
            linear_head_dim=128,
            linear_conv_kernel_dim=4,
        ),
        parts=(
            read.latent,
            PER_TOKEN_EXPERTS,
            read.listed_experts,
            _kimi_layers,
        ),
    ),
    "minimax": Family(
        implementation="hf-hybrid",
        defaults=sizes(
            80, 6144, 64, 8, 9216, 200064, 10240000, head_dim=128, num_local_experts=32, num_experts_per_tok=2
        ),
        parts=(
            read.experts(count=("num_local_experts",), width="intermediate_size"),
            _lightning_layers,
            ATTENTION_DROPOUT,
        ),
    ),
}

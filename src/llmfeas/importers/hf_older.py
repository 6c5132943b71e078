"""Rows of decoders of a few well-known models: the first GPT and Qwen, CTRL, Persimmon, DBRX, GPT-NeoX in Japanese,
ModernBERT as a decoder, CPM-Ant.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..catalog.parts import Dropout, SideWeights
from . import hf_parts as read
from .config_file import Config
from .hf_encoder import modern_windows
from .hf_parts import ATTENTION_DROPOUT, BIASED, BIASED_LAYERS, MLP_BIASED, Family, Parts, sizes

_GPT_NAMES: Final = {
    "layers": "n_layer",
    "hidden": "n_embd",
    "heads": "n_head",
    "context": "n_positions",
}
_FIRST_ACTIVATIONS: Final = {"gelu": "gelu_new", "relu": "relu", "silu": "silu", "swish": "silu"}


def _first_gpt(config: Config, parts: Parts) -> Parts:
    """Read the first GPT's activation, whose names mean others than those of later classes."""
    word = config.text("afn", "gelu")
    if word not in _FIRST_ACTIVATIONS:
        raise config.wrong("afn", f"is not one of {', '.join(_FIRST_ACTIVATIONS)}")
    return {"activation": _FIRST_ACTIVATIONS[word], "ffn": 4 * parts["hidden"]}


def _persimmon(config: Config, parts: Parts) -> Parts:
    """Read Persimmon, whose norms of heads have biases."""
    if config.raw("qk_layernorm") is False:
        return {}
    width = parts["hidden"] // parts["heads"]
    return {"qk_norm": "head", "beside": [SideWeights(vectors=2 * width)] * parts["layers"]}


def _one_bias(config: Config, parts: Parts) -> Parts:
    """Read the width of the feed-forward, and the one bias, which the last layer's attention has."""
    hidden, layers = parts["hidden"], parts["layers"]
    width = hidden * config.count("intermediate_multiple_size", "few")
    return {"ffn": width, "beside": [None] * (layers - 1) + [SideWeights(vectors=hidden)]}


def _written_modern(config: Config, parts: Parts) -> Parts:
    """Read ModernBERT as a decoder: every n-th layer from the first on sees everything behind it; a product and a norm
    stand before the head. The norm that the first layer lacks stands for that of the embedding."""
    hidden = parts["hidden"]
    size = config.optional_count("sliding_window", "tokens") or config.count("local_attention", "tokens") // 2
    vectors = hidden * (2 if config.flag("norm_bias") else 1)
    if config.flag("classifier_bias"):
        vectors += hidden
    return {
        **modern_windows(config, parts, size),
        "norm_bias": config.flag("norm_bias"),
        "head_bias": config.raw("decoder_bias") is not False,
        "side": SideWeights(matrices=((hidden, hidden),), vectors=vectors),
    }


def _dbrx(config: Config, parts: Parts) -> Parts:
    """Read DBRX, which says of attention and experts in mappings of their own."""
    defaults: dict[str, Any] = {"ffn_hidden_size": 3584, "moe_num_experts": 4, "moe_top_k": 1}
    fed = config.nested("ffn_config", defaults) or Config(config.file, {}, defaults, "ffn_config.")
    attends = config.nested("attn_config") or Config(config.file, {}, {}, "attn_config.")
    routed = read.experts(count=("moe_num_experts",), top_k="moe_top_k", width="ffn_hidden_size")(fed, parts)
    return {
        **routed,
        "kv_heads": attends.optional_count("kv_n_heads", "heads") or 1,
        "dropout": Dropout(
            embedding=config.rate("emb_pdrop"),
            attention=attends.rate("attn_pdrop"),
            residual=config.rate("resid_pdrop"),
        ),
    }


def _first_qwen(config: Config, parts: Parts) -> Parts:
    """Read the first Qwen's feed-forward, whose two halves are said as one width, and the biases of its products."""
    biased = config.raw("no_bias") is False
    return {"ffn": config.count("intermediate_size") // 2, "out_bias": biased, "mlp_bias": biased}


def _ant(config: Config, parts: Parts) -> Parts:
    """Read CPM-Ant: a table of distances between the segments of a text, rows for prompts that stand before each."""
    kinds = config.count("segment_types", "few")
    buckets = kinds * kinds + config.count("position_bias_num_buckets", "rows")
    prompts = config.count("prompt_types", "few") * config.count("prompt_length", "tokens")
    rate = config.rate("dropout_p")
    return {
        "kv_heads": parts["heads"],
        "side": SideWeights(vectors=buckets * parts["heads"] + (kinds + prompts) * parts["hidden"]),
        "dropout": Dropout(embedding=rate, attention=rate, residual=rate),
    }


OLDER: Final[Mapping[str, Family]] = {
    "openai-gpt": Family(
        implementation="hf-first-gpt",
        names=_GPT_NAMES,
        defaults={
            "n_layer": 12,
            "n_embd": 768,
            "n_head": 12,
            "vocab_size": 40478,
            "n_positions": 512,
            "embd_pdrop": 0.1,
            "attn_pdrop": 0.1,
            "resid_pdrop": 0.1,
            "tie_word_embeddings": True,
        },
        fixed={
            **BIASED_LAYERS,
            "positions": "learned",
            "norm_position": "post",
            "final_norm": False,
            "fused_qkv": True,
        },
        parts=(
            _first_gpt,
            read.dropout(embedding="embd_pdrop", attention="attn_pdrop", residual="resid_pdrop"),
        ),
    ),
    "ctrl": Family(
        implementation="hf-ctrl",
        names={**_GPT_NAMES, "ffn": "dff"},
        defaults={
            "n_layer": 48,
            "n_embd": 1280,
            "n_head": 16,
            "dff": 8192,
            "vocab_size": 246534,
            "n_positions": 256,
            "embd_pdrop": 0.1,
            "resid_pdrop": 0.1,
            "tie_word_embeddings": True,
        },
        fixed={**BIASED_LAYERS, "activation": "relu", "rope_fraction": 0.0, "head_bias": True},
        parts=(read.dropout(embedding="embd_pdrop", residual="resid_pdrop"),),
    ),
    "persimmon": Family(
        implementation="hf-persimmon",
        defaults={
            **sizes(36, 4096, 64, None, 16384, 262144, 16384, partial_rotary_factor=0.5),
            "hidden_act": "relu2",
        },
        fixed={**BIASED_LAYERS, "fused_qkv": True},
        parts=(_persimmon, read.rope_fraction, read.dropout(attention="attention_dropout", residual="hidden_dropout")),
    ),
    "gpt_neox_japanese": Family(
        implementation="hf-neox-japanese",
        defaults={
            **sizes(32, 2560, 32, None, 0, 32000, 2048, tie_word_embeddings=True),
            "hidden_act": "gelu",
            "intermediate_multiple_size": 4,
            "rotary_pct": 1.0,
            "attention_dropout": 0.1,
        },
        fixed={"gated": False, "norm": "layer", "norm_bias": True, "fused_qkv": True, "kv_heads": 0},
        parts=(
            _one_bias,
            read.rope_fraction,
            read.dropout(attention="attention_dropout", residual="hidden_dropout"),
        ),
    ),
    "modernbert-decoder": Family(
        implementation="hf-modernbert-decoder",
        names={"activation": "hidden_activation"},
        defaults={
            **sizes(22, 768, 12, None, 1152, 50368, 8192, local_attention=128, tie_word_embeddings=True),
            "hidden_activation": "gelu",
        },
        fixed={"norm": "layer", "fused_gate_up": True},
        parts=(BIASED, MLP_BIASED, _written_modern, ATTENTION_DROPOUT),
    ),
    "qwen": Family(
        implementation="hf-qwen",
        defaults={**sizes(32, 4096, 32, None, 22016, 151936, 8192), "hidden_act": "silu", "emb_dropout_prob": 0.0},
        fixed={"kv_heads": 0, "fused_qkv": True, "qkv_bias": True},
        parts=(_first_qwen, read.dropout(embedding="emb_dropout_prob")),
    ),
    "cpmant": Family(
        implementation="hf-cpm-ant",
        names={"head_dim": "dim_head", "ffn": "dim_ff", "context": "position_bias_max_distance"},
        defaults={
            **sizes(48, 4096, 32, None, 0, 30720, 2048),
            "dim_head": 128,
            "dim_ff": 10240,
            "position_bias_num_buckets": 512,
            "position_bias_max_distance": 2048,
            "prompt_types": 32,
            "prompt_length": 32,
            "segment_types": 32,
        },
        fixed={"positions": "distances", "activation": "gelu", "tied": False},
        parts=(_ant,),
    ),
    "dbrx": Family(
        implementation="hf-dbrx",
        names={"layers": "n_layers", "hidden": "d_model", "heads": "n_heads", "context": "max_seq_len"},
        defaults={"n_layers": 24, "d_model": 2048, "n_heads": 16, "max_seq_len": 2048, "vocab_size": 32000},
        fixed={"norm": "layer", "fused_qkv": True},
        parts=(_dbrx,),
    ),
}

"""Rows of dense model types in the manner of Llama: rotated positions, gated feed-forward, grouped heads.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from . import hf_parts as read
from .config_file import Config
from .hf_parts import ATTENTION_DROPOUT, BIASED, MLP_BIASED, QKV_BIASED, Family, Parts, sizes

_GEMMA: Final = {"hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": True}
_FUSED: Final = {"fused_qkv": True, "fused_gate_up": True}


def _stablelm_block(config: Config, _: Parts) -> Parts:
    parallel = config.flag("use_parallel_residual")
    return {
        "qkv_bias": config.flag("use_qkv_bias"),
        "parallel_block": parallel,
        "norms_per_layer": 1 if parallel else 2,
        "qk_norm": "full" if config.flag("qk_layernorm") else "none",
    }


def _olmo_clip(config: Config, _: Parts) -> Parts:
    return {} if config.raw("clip_qkv") is None else {"implementation": "hf-olmo-clipped"}


def _cohere_norm(config: Config, _: Parts) -> Parts:
    return {"qk_norm": "full" if config.flag("use_qk_norm") else "none"}


def _no_rope(config: Config, parts: Parts) -> Parts:
    """Read which layers do not rotate: unless they are listed, every n-th."""
    layers: int = parts["layers"]
    interval = config.optional_count("no_rope_layer_interval", "layers") or 4
    marks = config.numbers("no_rope_layers", 10_000)
    if not marks:
        return {"no_rope_every": interval}
    if len(marks) < layers:
        raise config.wrong("no_rope_layers", f"names {len(marks)} of {layers} layers")
    still = [index for index, mark in enumerate(marks[:layers]) if not mark]
    if not still:
        return {}
    return {"no_rope_every": still[0] + 1, "rotates": [index not in still for index in range(layers)]}


def _compass_layers(config: Config, parts: Parts) -> Parts:
    """Read Cohere Compass: layers see everything unless listed; kinds of layers without angles do not rotate."""
    kinds = config.words("layer_types", 10_000)
    size = config.optional_count("sliding_window", "tokens", zero=True)
    if kinds is None or not size:
        return {}
    found = read.pattern(config, "layer_types", kinds, parts["layers"], size)
    angles = config.nested("rope_parameters")
    listed = {} if angles is None else {kind: angles.fields[kind] for kind in set(kinds) if kind in angles.fields}
    if listed:
        found["rotates"] = [bool(listed.get(kind)) for kind in kinds[: parts["layers"]]]
    return found


_QWEN2_VL: Final = Family(
    implementation="hf-qwen2",
    defaults=sizes(80, 8192, 64, 8, 29568, 152064, 32768, max_window_layers=80),
    fixed={"qkv_bias": True},
    parts=(read.optional_window, ATTENTION_DROPOUT),
)

LLAMA: Final[Mapping[str, Family]] = {
    "llama": Family(
        implementation="hf-llama",
        defaults=sizes(32, 4096, 32, None, 11008, 32000, 2048),
        parts=(BIASED, MLP_BIASED, ATTENTION_DROPOUT),
    ),
    "emu3_text_model": Family(
        implementation="hf-llama",
        defaults=sizes(32, 4096, 32, 8, 14336, 184622, 9216, attention_dropout=0.1),
        parts=(BIASED, MLP_BIASED, ATTENTION_DROPOUT),
    ),
    "mistral": Family(
        implementation="hf-llama",
        defaults=sizes(32, 4096, 32, 8, 14336, 32000, 131072, sliding_window=4096),
        parts=(read.every_layer_windowed, ATTENTION_DROPOUT),
    ),
    "ministral": Family(
        implementation="hf-llama",
        defaults=sizes(32, 4096, 32, 8, 14336, 32000, 131072, sliding_window=4096),
        parts=(read.windows(1, full=0), ATTENTION_DROPOUT),
    ),
    "granite": Family(
        implementation="hf-granite",
        defaults=sizes(32, 4096, 32, None, 11008, 32000, 2048),
        parts=(BIASED, MLP_BIASED, ATTENTION_DROPOUT),
    ),
    "helium": Family(
        implementation="hf-helium",
        defaults=sizes(24, 2560, 20, 20, 7040, 48000, 4096, head_dim=128),
        parts=(QKV_BIASED, MLP_BIASED, ATTENTION_DROPOUT),
    ),
    "seed_oss": Family(
        implementation="hf-seed-oss",
        defaults=sizes(
            *(64, 4096, 80, 8, 27648, 155136, 524288),
            head_dim=128,
            attention_bias=True,
            attention_dropout=0.1,
            residual_dropout=0.1,
        ),
        parts=(
            read.flags(qkv_bias="attention_bias", out_bias="attention_out_bias", mlp_bias="mlp_bias"),
            read.dropout(attention="attention_dropout", residual="residual_dropout"),
        ),
    ),
    "ernie4_5": Family(
        implementation="hf-ernie",
        defaults=sizes(18, 1024, 16, 2, 3072, 103424, 131072, head_dim=128, tie_word_embeddings=True),
        parts=(read.flags(qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias"),),
    ),
    "smollm3": Family(
        implementation="hf-smollm3",
        defaults=sizes(36, 2048, 16, 4, 11008, 128256, 32768, tie_word_embeddings=True),
        parts=(BIASED, MLP_BIASED, _no_rope, ATTENTION_DROPOUT),
        only={"use_sliding_window": (False,)},
    ),
    "qwen2": Family(
        implementation="hf-qwen2",
        defaults=sizes(32, 4096, 32, 32, 22016, 151936, 32768, max_window_layers=28),
        fixed={"qkv_bias": True},
        parts=(read.optional_window, ATTENTION_DROPOUT),
    ),
    "qwen3": Family(
        implementation="hf-qwen3",
        defaults=sizes(32, 4096, 32, 32, 22016, 151936, 32768, head_dim=128, max_window_layers=28),
        fixed={"qk_norm": "head"},
        parts=(BIASED, read.optional_window, ATTENTION_DROPOUT),
    ),
    "mimo": Family(
        implementation="hf-qwen2",
        defaults=sizes(32, 4096, 32, 32, 22016, 151936, 32768, max_window_layers=28),
        fixed={"qkv_bias": True},
        parts=(read.optional_window, ATTENTION_DROPOUT),
    ),
    "qwen2_vl_text": _QWEN2_VL,
    "qwen2_5_vl_text": _QWEN2_VL,
    "qwen3_vl_text": Family(
        implementation="hf-qwen3",
        defaults=sizes(32, 4096, 32, 32, 22016, 151936, 128000, head_dim=128),
        fixed={"qk_norm": "head"},
        parts=(BIASED, ATTENTION_DROPOUT),
    ),
    "phi3": Family(
        implementation="hf-phi3",
        defaults=sizes(32, 3072, 32, None, 8192, 32064, 4096),
        fixed=_FUSED,
        parts=(
            read.every_layer_windowed,
            read.rope_fraction,
            read.dropout(embedding="embd_pdrop", attention="attention_dropout", residual="resid_pdrop"),
        ),
    ),
    "gemma": Family(
        implementation="hf-gemma",
        defaults={**sizes(28, 3072, 16, 16, 24576, 256000, 8192, head_dim=256), **_GEMMA},
        parts=(BIASED, ATTENTION_DROPOUT),
    ),
    "gemma2": Family(
        implementation="hf-gemma2",
        names={"activation": "hidden_activation"},
        defaults={
            **sizes(26, 2304, 8, 4, 9216, 256000, 8192, head_dim=256, sliding_window=4096),
            **_GEMMA,
            "hidden_activation": "gelu_pytorch_tanh",
            "attn_logit_softcapping": 50.0,
        },
        fixed={"norms_per_layer": 4, "softcap": True},
        parts=(BIASED, read.windows(2), ATTENTION_DROPOUT),
    ),
    "gemma3_text": Family(
        implementation="hf-gemma3",
        names={"activation": "hidden_activation"},
        defaults={
            **sizes(26, 2304, 8, 4, 9216, 262208, 131072, head_dim=256, sliding_window=4096),
            **_GEMMA,
            "hidden_activation": "gelu_pytorch_tanh",
        },
        fixed={"norms_per_layer": 4, "qk_norm": "head"},
        parts=(BIASED, read.windows(6, period_key="sliding_window_pattern"), ATTENTION_DROPOUT),
        only={"attn_logit_softcapping": (None,), "final_logit_softcapping": (None,)},
    ),
    "olmo": Family(
        implementation="hf-olmo",
        defaults=sizes(32, 4096, 32, None, 11008, 50304, 2048),
        fixed={"norm": "layer-plain"},
        parts=(BIASED, _olmo_clip, ATTENTION_DROPOUT),
    ),
    "olmo2": Family(
        implementation="hf-olmo2",
        defaults=sizes(32, 4096, 32, None, 11008, 50304, 2048),
        fixed={"norm_position": "post", "qk_norm": "full"},
        parts=(BIASED, ATTENTION_DROPOUT),
    ),
    "olmo3": Family(
        implementation="hf-olmo3",
        defaults=sizes(32, 4096, 32, None, 11008, 50304, 2048, sliding_window=4096),
        fixed={"norm_position": "post", "qk_norm": "full"},
        parts=(BIASED, read.windows(4), ATTENTION_DROPOUT),
    ),
    "exaone4": Family(
        implementation="hf-llama",
        defaults=sizes(32, 4096, 32, 32, 16384, 102400, 2048, sliding_window=4096),
        fixed={"norm_position": "post", "qk_norm": "head"},
        parts=(read.windows(4, period_key="sliding_window_pattern"), ATTENTION_DROPOUT),
    ),
    "stablelm": Family(
        implementation="hf-stablelm",
        defaults=sizes(32, 2560, 32, 32, 6912, 50304, 4096, partial_rotary_factor=0.25),
        fixed={"norm": "layer", "norm_bias": True},
        parts=(
            _stablelm_block,
            read.rope_fraction,
            read.dropout(attention="attention_dropout", residual="hidden_dropout"),
        ),
    ),
    "starcoder2": Family(
        implementation="hf-starcoder2",
        defaults={
            **sizes(30, 3072, 24, 2, 12288, 49152, 4096, use_bias=True, tie_word_embeddings=True),
            "hidden_act": "gelu_pytorch_tanh",
        },
        fixed={"gated": False, "norm": "layer", "norm_bias": True},
        parts=(
            read.flags(qkv_bias="use_bias", out_bias="use_bias", mlp_bias="use_bias"),
            read.every_layer_windowed,
            read.dropout(embedding="embedding_dropout", attention="attention_dropout", residual="residual_dropout"),
        ),
    ),
    "cohere": Family(
        implementation="hf-cohere",
        defaults=sizes(40, 8192, 64, None, 22528, 256000, 8192, tie_word_embeddings=True),
        fixed={"norm": "layer", "norms_per_layer": 1, "parallel_block": True},
        parts=(BIASED, _cohere_norm, ATTENTION_DROPOUT),
    ),
    "cohere2": Family(
        implementation="hf-cohere",
        defaults=sizes(40, 8192, 64, None, 22528, 256000, 8192, tie_word_embeddings=True, sliding_window=4096),
        fixed={"norm": "layer", "norms_per_layer": 1, "parallel_block": True},
        parts=(BIASED, read.windows(4, period_key="sliding_window_pattern"), ATTENTION_DROPOUT),
    ),
    "cohere_compass_text": Family(
        implementation="hf-cohere",
        defaults=sizes(40, 8192, 64, None, 22528, 256000, 8192, tie_word_embeddings=True, sliding_window=4096),
        fixed={"norm": "layer", "norms_per_layer": 1, "parallel_block": True},
        parts=(BIASED, _compass_layers, ATTENTION_DROPOUT),
    ),
    "glm": Family(
        implementation="hf-glm",
        defaults=sizes(
            40, 4096, 32, 2, 13696, 151552, 131072, head_dim=128, attention_bias=True, partial_rotary_factor=0.5
        ),
        fixed={"fused_gate_up": True},
        parts=(QKV_BIASED, read.rope_fraction, ATTENTION_DROPOUT),
    ),
    "glm4": Family(
        implementation="hf-glm",
        defaults=sizes(
            40, 4096, 32, 2, 13696, 151552, 131072, head_dim=128, attention_bias=True, partial_rotary_factor=0.5
        ),
        fixed={"fused_gate_up": True, "norms_per_layer": 4},
        parts=(QKV_BIASED, read.rope_fraction, ATTENTION_DROPOUT),
    ),
}

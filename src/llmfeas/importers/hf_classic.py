"""Rows of the model types before Llama: GPT-2 and its kin, OPT, BLOOM, MPT, Falcon, Phi.

`defaults` are those of the configuration classes of transformers 5.23: a config.json may leave out what equals them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..catalog.parts import Dropout
from . import hf_parts as read
from .config_file import Config
from .hf_parts import BIASED, BIASED_LAYERS, Family, Parts, sizes

_GPT2_NAMES: Final = {
    "layers": "n_layer",
    "hidden": "n_embd",
    "heads": "n_head",
    "ffn": "n_inner",
    "context": "n_positions",
    "activation": "activation_function",
}
_GPT2_FIXED: Final = {**BIASED_LAYERS, "positions": "learned"}
_GPT2: Final = {
    "n_layer": 12,
    "n_embd": 768,
    "n_head": 12,
    "vocab_size": 50257,
    "n_positions": 1024,
    "activation_function": "gelu_new",
    "embd_pdrop": 0.1,
    "attn_pdrop": 0.1,
    "resid_pdrop": 0.1,
    "tie_word_embeddings": True,
}
_GPTJ: Final = {
    "n_layer": 28,
    "n_embd": 4096,
    "n_head": 16,
    "vocab_size": 50400,
    "n_positions": 2048,
    "rotary_dim": 64,
    "activation_function": "gelu_new",
}
_GPT2_DROPOUT: Final = read.dropout(embedding="embd_pdrop", attention="attn_pdrop", residual="resid_pdrop")
_HIDDEN_DROPOUT: Final = read.dropout(attention="attention_dropout", residual="hidden_dropout")
_NO_ENCODER: Final = {"is_encoder_decoder": (False,), "add_cross_attention": (False,)}


def _bigcode(config: Config, parts: Parts) -> Parts:
    heads: int = parts["heads"]
    return {"kv_heads": 1 if config.flag("multi_query") else heads}


def _gptj_rotation(config: Config, parts: Parts) -> Parts:
    rotated = config.optional_count("rotary_dim", zero=True)
    return {} if rotated is None else {"rope_fraction": min(1.0, rotated * parts["heads"] / parts["hidden"])}


def _neox_block(config: Config, _: Parts) -> Parts:
    return {"parallel_block": config.flag("use_parallel_residual")}


_ONE_NORM: Final = {
    "gated": False,
    "norm": "layer",
    "norm_bias": True,
    "norms_per_layer": 1,
    "parallel_block": True,
}


def _two_rows_more(config: Config, parts: Parts) -> Parts:
    """BioGPT's table of positions begins two rows late."""
    return {"learned_positions": parts["context"] + 2}


def _opt_block(config: Config, parts: Parts) -> Parts:
    """Biases, norms before or behind, a narrower embedding; two rows of the position table are never used."""
    biased, before = config.flag("enable_bias"), config.flag("do_layer_norm_before")
    width = config.optional_count("word_embed_proj_dim") or parts["hidden"]
    return {
        **dict.fromkeys(("qkv_bias", "out_bias", "mlp_bias"), biased),
        "norm_position": "pre" if before else "post",
        "final_norm": before and not config.flag("_remove_final_layer_norm"),
        "embedding_dim": None if width == parts["hidden"] else width,
        "learned_positions": parts["context"] + 2,
    }


def _bloom_width(config: Config, parts: Parts) -> Parts:
    return {"ffn": 4 * parts["hidden"]}


def _mpt_block(config: Config, parts: Parts) -> Parts:
    """MPT's class has a feed-forward of four times the width, whatever `expansion_ratio` says."""
    attention = config.nested("attn_config")
    rate = attention.rate("attn_pdrop") if attention is not None else 0.0
    return {"ffn": 4 * parts["hidden"], "dropout": Dropout(attention=rate, residual=rate)}


def _falcon_block(config: Config, parts: Parts) -> Parts:
    """Falcon's two generations: one key head or groups; one norm, or one for each of the parallel branches."""
    new = config.flag("new_decoder_architecture")
    groups = config.optional_count("num_kv_heads", "heads") or parts["heads"]
    heads = groups if new or not config.flag("multi_query") else 1
    norms = config.optional_count("num_ln_in_parallel_attn", "layers") or (2 if new else 1)
    parallel = new or config.flag("parallel_attn")
    return {
        **dict.fromkeys(("qkv_bias", "out_bias", "mlp_bias"), config.flag("bias")),
        "kv_heads": heads,
        "ffn": config.optional_count("ffn_hidden_size") or 4 * parts["hidden"],
        "parallel_block": parallel,
        "norms_per_layer": (2 if new and norms == 2 else 1) if parallel else 2,
        "positions": "alibi" if config.flag("alibi") else "rope",
    }


CLASSIC: Final[Mapping[str, Family]] = {
    "gpt2": Family(
        implementation="hf-gpt2",
        names=_GPT2_NAMES,
        defaults=_GPT2,
        fixed={**_GPT2_FIXED, "fused_qkv": True},
        parts=(_GPT2_DROPOUT,),
        only=_NO_ENCODER,
    ),
    "gpt_bigcode": Family(
        implementation="hf-gpt-bigcode",
        names=_GPT2_NAMES,
        defaults={**_GPT2, "activation_function": "gelu_pytorch_tanh", "multi_query": True},
        fixed={**_GPT2_FIXED, "fused_qkv": True},
        parts=(_GPT2_DROPOUT, _bigcode),
        only=_NO_ENCODER,
    ),
    "gpt_neo": Family(
        implementation="hf-gpt-neo",
        names={"layers": "num_layers", "heads": "num_heads", "activation": "activation_function"},
        defaults={
            "num_layers": 24,
            "hidden_size": 2048,
            "num_heads": 16,
            "vocab_size": 50257,
            "max_position_embeddings": 2048,
            "activation_function": "gelu_new",
            "window_size": 256,
            "attention_types": [[["global", "local"], 12]],
            "tie_word_embeddings": True,
        },
        fixed={**_GPT2_FIXED, "qkv_bias": False},
        parts=(
            read.gpt_neo_window,
            read.dropout(embedding="embed_dropout", attention="attention_dropout", residual="resid_dropout"),
        ),
    ),
    "gptj": Family(
        implementation="hf-gptj",
        names=_GPT2_NAMES,
        defaults=_GPTJ,
        fixed={**_ONE_NORM, "mlp_bias": True, "head_bias": True},
        parts=(_GPT2_DROPOUT, _gptj_rotation),
    ),
    "codegen": Family(
        implementation="hf-codegen",
        names=_GPT2_NAMES,
        defaults=_GPTJ,
        fixed={**_ONE_NORM, "mlp_bias": True, "head_bias": True, "fused_qkv": True},
        parts=(_GPT2_DROPOUT, _gptj_rotation),
    ),
    "gpt_neox": Family(
        implementation="hf-gpt-neox",
        defaults={
            **sizes(44, 6144, 64, None, 24576, 50432, 2048),
            "hidden_act": "gelu",
            "attention_bias": True,
            "use_parallel_residual": True,
            "rotary_pct": 0.25,
        },
        fixed={"gated": False, "norm": "layer", "norm_bias": True, "mlp_bias": True, "fused_qkv": True, "kv_heads": 0},
        parts=(
            BIASED,
            _neox_block,
            read.rope_fraction,
            _HIDDEN_DROPOUT,
        ),
    ),
    "opt": Family(
        implementation="hf-opt",
        names={"ffn": "ffn_dim", "activation": "activation_function"},
        defaults={
            "num_hidden_layers": 12,
            "hidden_size": 768,
            "num_attention_heads": 12,
            "ffn_dim": 3072,
            "vocab_size": 50272,
            "max_position_embeddings": 2048,
            "activation_function": "relu",
            "dropout": 0.1,
            "do_layer_norm_before": True,
            "enable_bias": True,
            "tie_word_embeddings": True,
        },
        fixed={"gated": False, "norm": "layer", "norm_bias": True, "positions": "learned", "kv_heads": 0},
        parts=(_opt_block, read.dropout(attention="attention_dropout", residual="dropout")),
        only={"layer_norm_elementwise_affine": (True,)},
    ),
    "xglm": Family(
        implementation="hf-opt",
        names={
            "layers": "num_layers",
            "hidden": "d_model",
            "heads": "attention_heads",
            "ffn": "ffn_dim",
            "activation": "activation_function",
        },
        defaults={
            "num_layers": 24,
            "d_model": 1024,
            "attention_heads": 16,
            "ffn_dim": 4096,
            "vocab_size": 256008,
            "max_position_embeddings": 2048,
            "activation_function": "gelu",
            "dropout": 0.1,
            "attention_dropout": 0.1,
            "tie_word_embeddings": True,
        },
        fixed={**BIASED_LAYERS, "rope_fraction": 0.0},
        parts=(read.dropout(attention="attention_dropout", residual="dropout"),),
    ),
    "biogpt": Family(
        implementation="hf-opt",
        defaults=sizes(24, 1024, 16, None, 4096, 42384, 1024, tie_word_embeddings=True) | {"hidden_act": "gelu"},
        fixed={**BIASED_LAYERS, "positions": "learned"},
        parts=(_two_rows_more,),
    ),
    "bloom": Family(
        implementation="hf-bloom",
        names={"layers": "n_layer", "heads": "n_head", "context": "seq_length"},
        defaults={
            "n_layer": 2,
            "hidden_size": 64,
            "n_head": 8,
            "vocab_size": 250880,
            "seq_length": 2048,
            "hidden_act": "gelu_tanh",
            "tie_word_embeddings": True,
        },
        fixed={
            "gated": False,
            "norm": "layer",
            "norm_bias": True,
            "qkv_bias": True,
            "out_bias": True,
            "mlp_bias": True,
            "positions": "alibi",
            "embedding_norm": True,
            "fused_qkv": True,
            "kv_heads": 0,
        },
        parts=(_bloom_width, _HIDDEN_DROPOUT),
    ),
    "mpt": Family(
        implementation="hf-mpt",
        names={"layers": "n_layers", "hidden": "d_model", "heads": "n_heads", "context": "max_seq_len"},
        defaults={
            "n_layers": 24,
            "d_model": 2048,
            "n_heads": 16,
            "expansion_ratio": 4,
            "max_seq_len": 2048,
            "vocab_size": 50368,
            "hidden_act": "gelu",
            "tie_word_embeddings": True,
        },
        fixed={"gated": False, "norm": "layer", "positions": "alibi", "fused_qkv": True, "kv_heads": 0},
        parts=(_mpt_block,),
    ),
    "falcon": Family(
        implementation="hf-falcon",
        names={"ffn": "ffn_hidden_size", "activation": "activation"},
        defaults={
            **sizes(32, 4544, 71, None, 0, 65024, 2048),
            "activation": "gelu",
            "multi_query": True,
            "parallel_attn": True,
            "tie_word_embeddings": True,
        },
        fixed={"gated": False, "norm": "layer", "norm_bias": True, "fused_qkv": True},
        parts=(_falcon_block, _HIDDEN_DROPOUT),
    ),
    "phi": Family(
        implementation="hf-phi",
        defaults={
            **sizes(24, 2048, 32, None, 8192, 51200, 2048),
            "hidden_act": "gelu_new",
            "partial_rotary_factor": 0.5,
        },
        fixed={
            "gated": False,
            "norm": "layer",
            "norm_bias": True,
            "norms_per_layer": 1,
            "parallel_block": True,
            "qkv_bias": True,
            "out_bias": True,
            "mlp_bias": True,
            "head_bias": True,
        },
        parts=(
            read.rope_fraction,
            read.dropout(embedding="embd_pdrop", attention="attention_dropout", residual="resid_pdrop"),
        ),
        only={"qk_layernorm": (False,)},
    ),
}

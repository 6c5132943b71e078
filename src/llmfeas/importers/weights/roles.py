"""What a tensor is for, read from its name: one vocabulary of roles for GGUF and for Hugging Face checkpoints.

Roles carry GGUF's names (ggml-org/llama.cpp, gguf-py/gguf/constants.py and tensor_mapping.py), since they are one
vocabulary for all architectures. A name that says nothing known has the role None.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple


class Place(NamedTuple):
    """Where a tensor belongs: its layer (None: outside of the layers), its role, `weight` or `bias`."""

    layer: int | None
    role: str | None
    part: str


LAYER = re.compile(r"^(?P<before>.*?)(?:^|\.)(?:layers|h|blocks|block|blk)\.(?P<index>\d{1,6})\.(?P<rest>.+)$")
OTHER_TOWER = re.compile(
    r"(?:^|\.)(?:v|mm|vision_tower|vision_model|visual|vision_encoder|audio_tower|audio_model|multi_modal_projector"
    r"|mm_projector|vision_language_adapter|patch_merger|aligner|vision_embed_tokens|embed_vision|embed_audio|connector)\."
)
"""Encoders of images and sound and their projectors, in checkpoints that hold more than a language model."""
EXPERT_INDEX = re.compile(r"(?<=experts)\.\d+(?=\.)")

GGUF_TOP = frozenset({"token_embd", "position_embd", "token_embd_norm", "output_norm", "output"})
_GGUF_LAYER_WORDS = """
    attn_norm attn_norm_2 attn_output_norm attn_q attn_k attn_v attn_qkv attn_output attn_q_norm attn_k_norm
    attn_sinks attn_gate post_attention_norm ffn_norm post_ffw_norm ffn_gate ffn_up ffn_down ffn_gate_inp
    ffn_gate_inp_shexp exp_probs_b ffn_gate_exps ffn_up_exps ffn_down_exps ffn_gate_up_exps ffn_gate_shexp
    ffn_up_shexp ffn_down_shexp attn_q_a attn_q_b attn_kv_a_mqa attn_kv_b attn_k_b attn_v_b attn_q_a_norm
    attn_kv_a_norm ssm_in ssm_conv1d ssm_dt ssm_a ssm_norm ssm_out ssm_beta_alpha ssm_ba ssm_alpha ssm_beta"""
GGUF_LAYER = frozenset(_GGUF_LAYER_WORDS.split())
NO_WEIGHT = frozenset({"buffer", "exp_probs_b"})
"""Roles whose tensors are state or tables that follow from the configuration; the classes do not count them."""

FROM_STREAM = frozenset({"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_q_a", "ffn_gate", "ffn_up", "ffn_up_shexp"})
TO_STREAM = frozenset({"attn_output", "ffn_down", "ffn_down_shexp", "ssm_out"})
"""Matrices whose inputs, and whose outputs, are as wide as the model."""

EXPERT_ROLES = frozenset({"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_gate_up_exps"})

GGUF_BUFFERS = frozenset({"attn_rot_embd", "rope_freqs", "rope_factors_long", "rope_factors_short"})
GGUF_NUMBERED_EXPERT = re.compile(r"^(ffn_(?:gate|up|down))\.\d+$")

_TOP = (
    (r"(?:^|\.)(?:embed_tokens|wte|word_embeddings|embed_in|tok_embeddings)$", "token_embd"),
    (r"(?:^|\.)(?:wpe|embed_positions)$", "position_embd"),
    (r"(?:^|\.)(?:word_embeddings_layernorm)$", "token_embd_norm"),
    (r"(?:^|\.)(?:norm|ln_f|final_layer_norm|final_layernorm|norm_f)$", "output_norm"),
    (r"(?:^|\.)(?:lm_head|embed_out|output|output_layer)$", "output"),
    (r"(?:^|\.)project_in$", "project_in"),
    (r"(?:^|\.)project_out$", "project_out"),
    (r"(?:^|\.)rotary_(?:emb|pos_emb)\.inv_freq$", "buffer"),
)
_ATTENTION = r"(?:self_attn|self_attention|attention|attn|mixer|attn\.attention)"
_MLP = r"(?:mlp|feed_forward|ffn|block_sparse_moe|moe)"
_LAYER = (
    (rf"^{_ATTENTION}\.(?:q_proj|wq|query)$", "attn_q"),
    (rf"^{_ATTENTION}\.(?:k_proj|wk|key)$", "attn_k"),
    (rf"^{_ATTENTION}\.(?:v_proj|wv|value)$", "attn_v"),
    (rf"^{_ATTENTION}\.(?:qkv_proj|query_key_value|W_pack|c_attn|Wqkv|qkv)$", "attn_qkv"),
    (rf"^{_ATTENTION}\.(?:o_proj|out_proj|dense|c_proj|wo)$", "attn_output"),
    (rf"^{_ATTENTION}\.(?:q_norm|q_layernorm|query_layernorm|q_ln)(?:\.norms\.\d+)?$", "attn_q_norm"),
    (rf"^{_ATTENTION}\.(?:k_norm|k_layernorm|key_layernorm|k_ln)(?:\.norms\.\d+)?$", "attn_k_norm"),
    (rf"^{_ATTENTION}\.sinks$", "attn_sinks"),
    (rf"^{_ATTENTION}\.q_a_proj$", "attn_q_a"),
    (rf"^{_ATTENTION}\.q_b_proj$", "attn_q_b"),
    (rf"^{_ATTENTION}\.kv_a_proj_with_mqa$", "attn_kv_a_mqa"),
    (rf"^{_ATTENTION}\.kv_b_proj$", "attn_kv_b"),
    (rf"^{_ATTENTION}\.q_a_layernorm$", "attn_q_a_norm"),
    (rf"^{_ATTENTION}\.kv_a_layernorm$", "attn_kv_a_norm"),
    (rf"^{_ATTENTION}\.(?:.*\.)?(?:rotary_emb\.inv_freq|bias|masked_bias|[qkv]_scale)$", "buffer"),
    (rf"^{_MLP}\.experts\.(?:mlp\.)?(?:gate_proj|w1)$", "ffn_gate_exps"),
    (rf"^{_MLP}\.experts\.(?:mlp\.)?(?:up_proj|w3)$", "ffn_up_exps"),
    (rf"^{_MLP}\.experts\.(?:mlp\.)?(?:down_proj|w2)$|^{_MLP}\.output_linear$", "ffn_down_exps"),
    (rf"^{_MLP}\.experts\.gate_up_proj$|^{_MLP}\.input_linear$", "ffn_gate_up_exps"),
    (rf"^{_MLP}\.(?:gate|router|router\.layer)$", "ffn_gate_inp"),
    (rf"^{_MLP}\.gate\.e_score_correction_bias$|^{_MLP}\.expert_bias$", "exp_probs_b"),
    (rf"^{_MLP}\.shared_experts?\.gate_proj$", "ffn_gate_shexp"),
    (rf"^{_MLP}\.shared_experts?\.up_proj$", "ffn_up_shexp"),
    (rf"^{_MLP}\.shared_experts?\.down_proj$", "ffn_down_shexp"),
    (rf"^{_MLP}\.shared_expert_gate$", "ffn_gate_inp_shexp"),
    (rf"^{_MLP}\.(?:gate_proj|w1)$", "ffn_gate"),
    (rf"^{_MLP}\.(?:gate_up_proj|up_proj|w3|c_fc|dense_h_to_4h|fc_in|fc1)$|^fc1$", "ffn_up"),
    (rf"^{_MLP}\.(?:down_proj|w2|c_proj|dense_4h_to_h|fc_out|fc2)$|^fc2$", "ffn_down"),
    (r"^(?:input_layernorm|ln_1|self_attn_layer_norm|attention_norm|norm_1|ln_attn)$", "attn_norm"),
    (r"^(?:post_attention_layernorm|ln_2|final_layer_norm|ffn_norm|norm_2|ln_mlp)$", "ffn_norm"),
    (r"^(?:pre_feedforward_layernorm)$", "pre_ffw_norm"),
    (r"^(?:post_feedforward_layernorm|post_mlp_layernorm)$", "post_ffw_norm"),
    (r"^(?:post_self_attn_layernorm)$", "post_attention_norm"),
    (r"^linear_attn\.in_proj_qkvz$", "ssm_in"),
    (r"^linear_attn\.in_proj_ba$", "ssm_ba"),
    (r"^linear_attn\.conv1d$", "ssm_conv1d"),
    (r"^linear_attn\.A_log$", "ssm_a"),
    (r"^linear_attn\.dt_bias$", "ssm_dt"),
    (r"^linear_attn\.norm$", "ssm_norm"),
    (r"^linear_attn\.out_proj$", "ssm_out"),
    (r"^(?:eh_proj|enorm|hnorm|embed_tokens|shared_head\..*)$", "nextn"),
)


def _alternatives(rules: tuple[tuple[str, str], ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), role) for pattern, role in rules)


_TOP_RULES, _LAYER_RULES = _alternatives(_TOP), _alternatives(_LAYER)


def place_of(name: str) -> Place:
    """Where a tensor belongs, from its name alone."""
    if OTHER_TOWER.search(name):
        return Place(None, "other", "weight")
    match = LAYER.match(name)
    if match is None:
        return Place(None, *_top_role(name))
    layer, rest = int(match["index"]), EXPERT_INDEX.sub("", match["rest"])
    role, part = _gguf_role(rest) if name.startswith("blk.") else _layer_role(rest)
    return Place(layer, role, part)


def _module(text: str) -> tuple[str, str]:
    """Divide a name into its module and its part: weight, bias, or the whole name where it ends otherwise."""
    module, _, last = text.rpartition(".")
    return (module, last) if module and last in ("weight", "bias") else (text, "weight")


@lru_cache(maxsize=4096)
def _gguf_role(rest: str) -> tuple[str | None, str]:
    module, part = _module(rest)
    if module.startswith("nextn."):
        return "nextn", part
    numbered = GGUF_NUMBERED_EXPERT.match(module)
    if numbered:
        return f"{numbered[1]}_exps", part
    if module in GGUF_BUFFERS:
        return "buffer", part
    return (module if module in GGUF_LAYER else None), part


@lru_cache(maxsize=4096)
def _top_role(name: str) -> tuple[str | None, str]:
    module, part = _module(name)
    if module in GGUF_TOP:
        return module, part
    if module in GGUF_BUFFERS:
        return "buffer", part
    return next((role for rule, role in _TOP_RULES if rule.search(module)), None), part


@lru_cache(maxsize=4096)
def _layer_role(rest: str) -> tuple[str | None, str]:
    module, part = _module(rest)
    if module.endswith("_bias") and module.removesuffix("_bias").endswith("_proj"):
        module, part = module.removesuffix("_bias"), "bias"
    if part == "bias" and module in ("attn", "attn.attention", "attention", "self_attn"):
        return "buffer", "weight"
    return next((role for rule, role in _LAYER_RULES if rule.search(module)), None), part

"""What one tensor-parallel rank holds of an architecture: narrower heads, feed-forwards and tables."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from ..catalog.architecture import Architecture, Experts

VOCAB_GRAIN = 128
"""Tables are padded so that each rank's part is a multiple of this (Megatron)."""


@lru_cache(maxsize=1024)
def rank_architecture(architecture: Architecture, tp: int, expert_tp: int) -> Architecture:
    """Divide heads, feed-forward widths and the vocabulary over `tp` ranks; norms and the stream stay whole.

    Formula: heads / tp, key-value heads / tp but at least one, widths / tp (routed experts: / expert_tp), vocab rounded
    up to 128 tp; uneven parts count as the largest. Source: Shoeybi 2019, Korthikanti 2022.
    """
    if tp == 1:
        return architecture
    a = architecture
    heads = -(-a.heads // tp)
    kv_heads = max(1, a.kv_heads // tp)
    linear = a.linear_attention
    return replace(
        a,
        heads=heads,
        kv_heads=kv_heads if heads % kv_heads == 0 else heads,
        head_dim=a.head_dim,
        ffn=None if a.ffn is None else -(-a.ffn // tp),
        vocab=-(-a.vocab // (VOCAB_GRAIN * tp)) * VOCAB_GRAIN,
        experts=None if a.experts is None else _rank_experts(a.experts, tp, expert_tp),
        linear_attention=None
        if linear is None
        else replace(linear, key_heads=max(1, linear.key_heads // tp), value_heads=max(1, linear.value_heads // tp)),
    )


def _rank_experts(experts: Experts, tp: int, expert_tp: int) -> Experts:
    shared = None if experts.shared_width is None else -(-experts.shared_width // tp)
    return replace(experts, width=-(-experts.width // expert_tp), shared_width=shared)

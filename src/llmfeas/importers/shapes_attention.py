"""Attention of a model from the shapes of its tensors: grouped, latent (DeepSeek) and linear (Qwen3-Next)."""

from __future__ import annotations

from ..catalog.architecture import LinearAttention, Mla, QkNorm
from ..record import dataclass
from .facts import CannotExpressError, Facts
from .layout import Layout, Part


@dataclass(frozen=True, slots=True)
class HeadShapes:
    """Heads and their widths, as an architecture names them."""

    heads: int
    kv_heads: int
    head_dim: int
    qk_norm: QkNorm = "none"
    gate: bool = False
    mla: Mla | None = None


def attention_of(layout: Layout, facts: Facts, assumed: list[str]) -> HeadShapes:
    """Infer the attention blocks that are not linear.

    Raises:
        CannotExpressError: where widths do not fit together.
    """
    if layout.anywhere("attn_kv_a_mqa") is not None:
        return _latent_attention(layout, facts)
    merged = layout.width("attn_output", 1)
    if merged is None:
        raise CannotExpressError("no layer has an attention output projection")
    q_rows, k_rows, fused = layout.width("attn_q", 0), layout.width("attn_k", 0), layout.width("attn_qkv", 0)
    if q_rows is None and fused is not None:
        k_rows, odd = divmod(fused - merged, 2)
        if odd or k_rows <= 0:
            raise CannotExpressError(f"attn_qkv gives {fused} values, which do not divide into q ({merged}), k and v")
    if k_rows is None:
        raise CannotExpressError("no layer has a key projection")
    head_dim = _head_dim(layout, facts, merged, k_rows, assumed)
    for name, width in (("query", merged), ("key", k_rows)):
        if width % head_dim:
            raise CannotExpressError(f"{name} width {width} is no multiple of the head's width {head_dim}")
    return HeadShapes(
        heads=merged // head_dim,
        kv_heads=k_rows // head_dim,
        head_dim=head_dim,
        qk_norm=_qk_norm(layout.anywhere("attn_q_norm"), head_dim, merged),
        gate=q_rows is not None and q_rows == 2 * merged,
    )


def _qk_norm(scale: Part | None, head_dim: int, merged: int) -> QkNorm:
    if scale is None:
        return "none"
    if scale.elements == head_dim:
        return "head"
    if scale.elements == merged:
        return "full"
    raise CannotExpressError(f"a norm of queries with {scale.elements} weights is neither one head nor all of them")


def _head_dim(layout: Layout, facts: Facts, merged: int, k_rows: int, assumed: list[str]) -> int:
    if facts.head_dim:
        return facts.head_dim
    if facts.heads:
        if merged % facts.heads:
            raise CannotExpressError(f"{facts.heads} heads do not divide the query width {merged}")
        return merged // facts.heads
    scale = layout.anywhere("attn_q_norm")
    if scale is not None and scale.elements < merged:
        return scale.elements
    sinks = layout.anywhere("attn_sinks")
    if sinks is not None and merged % sinks.elements == 0:
        return merged // sinks.elements
    rotary = layout.top.get("buffer") or layout.anywhere("buffer")
    if rotary is not None and rotary.shape and rotary.name.endswith("inv_freq"):
        return 2 * rotary.shape[-1]
    sizes = [size for size in (128, 64, 256, 96, 80, 32) if merged % size == 0 and k_rows % size == 0]
    chosen = next((size for size in sizes if merged // size >= 8), sizes[-1] if sizes else k_rows)
    assumed.append(f"head_dim {chosen}")
    return chosen


def _latent_attention(layout: Layout, facts: Facts) -> HeadShapes:
    """Solve the widths of latent attention: q = H (nope + rope), kv_b = H (nope + v), o = H v, kv_a = rank + rope."""
    down = layout.width("attn_kv_a_mqa", 0)
    merged = layout.width("attn_output", 1)
    queries = layout.width("attn_q_b", 0) or layout.width("attn_q", 0)
    latent = layout.anywhere("attn_kv_a_norm")
    if down is None or merged is None or queries is None or latent is None:
        raise CannotExpressError("a tensor of latent attention is missing")
    rank = latent.elements
    rope = down - rank
    expanded = _expanded_width(layout, rank)
    heads = (queries - (expanded - merged)) // rope if rope > 0 else 0
    if heads <= 0 or any(width % heads for width in (queries, expanded, merged)):
        raise CannotExpressError(f"the widths of latent attention do not fit together (q {queries}, kv_b {expanded})")
    v = merged // heads
    mla = Mla(
        q_lora_rank=layout.width("attn_q_b", 1),
        kv_lora_rank=rank,
        nope_head_dim=expanded // heads - v,
        rope_head_dim=rope,
        v_head_dim=v,
    )
    if facts.heads and facts.heads != heads:
        raise CannotExpressError(f"head_count is {facts.heads}, but the tensors hold {heads} heads")
    return HeadShapes(heads=heads, kv_heads=heads, head_dim=queries // heads, mla=mla)


def _expanded_width(layout: Layout, rank: int) -> int:
    """Width of keys and values expanded from the latent, stored as one matrix or as two stacks."""
    joined = layout.width("attn_kv_b", 0)
    if joined is not None:
        return joined
    keys, values = layout.anywhere("attn_k_b"), layout.anywhere("attn_v_b")
    if keys is None or values is None:
        raise CannotExpressError("attn_kv_b is missing")
    return (keys.elements + values.elements) // rank


def linear_attention_of(layout: Layout, facts: Facts, assumed: list[str]) -> LinearAttention | None:
    """Infer gated delta-rule layers, None where no layer keeps a state.

    Raises:
        CannotExpressError: where the state is another kind (Mamba).
    """
    conv, state, scale = (layout.anywhere(role) for role in ("ssm_conv1d", "ssm_a", "ssm_norm"))
    if conv is None and state is None:
        return None
    if conv is None or state is None or scale is None:
        raise CannotExpressError("state-space layers (Mamba and its kin) cannot be expressed")
    value_dim, value_heads = scale.elements, state.elements
    out = layout.width("ssm_out", 1)
    if out != value_dim * value_heads:
        raise CannotExpressError("state-space layers (Mamba and its kin) cannot be expressed")
    channels = conv.shape[0]
    key_width = (channels - out) // 2
    key_heads = facts.key_heads
    if key_heads is None:
        key_heads = max(1, key_width // value_dim)
        assumed.append(f"linear_attention.key_heads {key_heads}")
    full = next((index for index, parts in sorted(layout.layers.items()) if "ssm_conv1d" not in parts), None)
    return LinearAttention(
        key_heads=key_heads,
        value_heads=value_heads,
        key_head_dim=key_width // key_heads,
        value_head_dim=value_dim,
        conv_kernel=conv.elements // channels,
        interval=len(layout.layers) + 1 if full is None else full + 1,
    )

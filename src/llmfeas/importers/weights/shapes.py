"""From the shapes of a model's tensors to its architecture; what shapes cannot say comes in as `Facts`."""

from __future__ import annotations

from typing import Any, Literal

from ...catalog.architecture import Activation, Architecture, QkNorm
from ...catalog.parts import Experts, Indexer, LinearAttention, Mla, Window
from ...record import dataclass, field, replace
from ..layers import with_layers as with_layer_kinds
from .layout import LayoutPart, TensorLayout


class CannotExpressError(ValueError):
    """The tensors make a model that no field of an architecture can say; the message names tensor or field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What no shape tells. None: unknown; then it is inferred or assumed, and the assumption is written down."""

    heads: int | None = None
    head_dim: int | None = None
    context: int | None = None
    activation: Activation | None = None
    norm: Literal["rms", "layer", "layer-plain"] | None = None
    positions: Literal["rope", "alibi"] = "rope"
    parallel_block: bool = False
    softcap: bool = False
    l2_norm: bool = False
    rope_fraction: float = 1.0
    no_rope_every: int | None = None
    window: Window | None = None
    windowed: tuple[bool, ...] = ()
    """Which layers have the window, where that is listed."""
    indexer: Indexer | None = None
    top_k: int | None = None
    shared_experts: int | None = None
    rope_head_dim: int | None = None
    key_heads: int | None = None
    implementation: str | None = None


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Heads and their widths, as an architecture names them."""

    heads: int
    kv_heads: int
    head_dim: int
    qk_norm: QkNorm = "none"
    gate: bool = False
    mla: Mla | None = None


def attention_of(layout: TensorLayout, facts: Facts, assumed: list[str]) -> AttentionShape:
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
    return AttentionShape(
        heads=merged // head_dim,
        kv_heads=k_rows // head_dim,
        head_dim=head_dim,
        qk_norm=_qk_norm(layout.anywhere("attn_q_norm"), head_dim, merged),
        gate=q_rows is not None and q_rows == 2 * merged,
    )


def _qk_norm(scale: LayoutPart | None, head_dim: int, merged: int) -> QkNorm:
    if scale is None:
        return "none"
    if scale.elements == head_dim:
        return "head"
    if scale.elements == merged:
        return "full"
    raise CannotExpressError(f"a norm of queries with {scale.elements} weights is neither one head nor all of them")


def _head_dim(layout: TensorLayout, facts: Facts, merged: int, k_rows: int, assumed: list[str]) -> int:
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


def _latent_attention(layout: TensorLayout, facts: Facts) -> AttentionShape:
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
    return AttentionShape(heads=heads, kv_heads=heads, head_dim=queries // heads, mla=mla)


def _expanded_width(layout: TensorLayout, rank: int) -> int:
    """Width of keys and values expanded from the latent, stored as one matrix or as two stacks."""
    joined = layout.width("attn_kv_b", 0)
    if joined is not None:
        return joined
    keys, values = layout.anywhere("attn_k_b"), layout.anywhere("attn_v_b")
    if keys is None or values is None:
        raise CannotExpressError("attn_kv_b is missing")
    return (keys.elements + values.elements) // rank


def linear_attention_of(layout: TensorLayout, facts: Facts, assumed: list[str]) -> LinearAttention | None:
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


NORMS = (
    "attn_norm",
    "attn_norm_2",
    "attn_output_norm",
    "ffn_norm",
    "pre_ffw_norm",
    "post_attention_norm",
    "post_ffw_norm",
)
MATRICES = frozenset({"project_in", "position_embd", "output", "ffn_gate_inp", "ssm_conv1d"})
FIRST_NORMS = ("attn_norm", "attn_norm_2", "pre_ffw_norm")


@dataclass(slots=True)
class Inferred:
    """An architecture with the fields that had to be assumed."""

    architecture: Architecture
    assumed: list[str] = field(default_factory=list)


def architecture_from_layout(layout: TensorLayout, facts: Facts) -> Inferred:
    """Build an architecture from tensors' shapes and from facts.

    Raises:
        CannotExpressError: where tensors are missing, contradict one another or do what the fields cannot say.
    """
    assumed: list[str] = []
    embedding = layout.top.get("token_embd")
    if embedding is None or len(embedding.shape) != 2 or not layout.layers:
        raise CannotExpressError("there is no token embedding with layers: this is no complete language model")
    _refuse_unknown(layout)
    _refuse_uneven(layout)
    projected = layout.top.get("project_in")
    attention = attention_of(layout, facts, assumed)
    gated, ffn = _feed_forward(layout)
    sizes = Architecture(
        layers=len(layout.layers),
        hidden=embedding.shape[1] if projected is None else projected.shape[0],
        heads=attention.heads,
        kv_heads=attention.kv_heads,
        head_dim=attention.head_dim,
        vocab=embedding.shape[0],
        ffn=ffn,
        gated=gated,
        embedding_dim=None if projected is None else embedding.shape[1],
        fused_qkv=layout.anywhere("attn_q") is None and layout.anywhere("attn_qkv") is not None,
        fused_gate_up=gated and ffn is not None and layout.anywhere("ffn_gate") is None,
        qk_norm="l2" if facts.l2_norm else attention.qk_norm,
        output_gate=attention.gate,
        mla=attention.mla,
        linear_attention=linear_attention_of(layout, facts, assumed),
        experts=_experts(layout, facts, assumed),
    )
    architecture = _with_traits(sizes, layout, facts, assumed)
    return Inferred(with_layer_kinds(architecture, **_columns(architecture, layout, facts)), assumed)


def _columns(architecture: Architecture, layout: TensorLayout, facts: Facts) -> dict[str, list[Any]]:
    """What each layer is, by its tensors and by what is listed."""
    layers = [layout.layers[index] for index in range(architecture.layers)]
    mixers = ["linear_attention" if "ssm_conv1d" in parts else "attention" for parts in layers]
    fed = ["experts" if "ffn_gate_inp" in parts else "dense" for parts in layers]
    listed = architecture.window is not None and len(facts.windowed) >= len(layers)
    return {"mixer": mixers, "feed_forward": fed} | ({"windowed": list(facts.windowed)} if listed else {})


def _with_traits(sizes: Architecture, layout: TensorLayout, facts: Facts, assumed: list[str]) -> Architecture:
    """Add what the presence of tensors tells (biases, norms, tied matrices) and what only facts tell."""
    norm, norm_bias = _norm(layout, facts, assumed)
    norms = max(sum(role in parts for role in NORMS) for parts in layout.layers.values())
    first = any(role in parts for parts in layout.layers.values() for role in FIRST_NORMS)
    positions, head = layout.top.get("position_embd"), layout.top.get("output")
    if facts.activation is None and not sizes.gated:
        assumed.append("activation gelu")
    return replace(
        sizes,
        activation=facts.activation or ("silu" if sizes.gated else "gelu"),
        norm=norm,
        norm_bias=norm_bias,
        norms_per_layer=_norms_per_layer(norms, norm),
        norm_position="pre" if first or norm == "layer-plain" else "post",
        final_norm="output_norm" in layout.top or norm == "layer-plain",
        parallel_block=facts.parallel_block,
        qkv_bias=_has_bias(layout, "attn_q", "attn_qkv", "attn_q_b"),
        out_bias=_has_bias(layout, "attn_output"),
        mlp_bias=_has_bias(layout, "ffn_up"),
        head_bias=head is not None and head.has_bias,
        tied=head is None or not head.count,
        positions="learned" if positions is not None else facts.positions,
        learned_positions=positions.shape[0] if positions is not None else None,
        rope_fraction=facts.rope_fraction,
        no_rope_every=facts.no_rope_every,
        embedding_norm="token_embd_norm" in layout.top,
        sinks=layout.anywhere("attn_sinks") is not None,
        softcap=facts.softcap,
        window=facts.window,
        indexer=facts.indexer,
        implementation=facts.implementation or "hf-llama",
    )


def _refuse_unknown(layout: TensorLayout) -> None:
    for part in (*layout.top.values(), *(part for parts in layout.layers.values() for part in parts.values())):
        if 0 in part.shape:
            raise CannotExpressError(f"tensor {part.name!r} has no elements")
    for parts in (layout.top, *layout.layers.values()):
        for role in MATRICES & parts.keys():
            if parts[role].count and len(parts[role].shape) < 2:
                raise CannotExpressError(f"tensor {parts[role].name!r} is no matrix")
    if layout.unknown:
        more = f" and {len(layout.unknown) - 1} more" if len(layout.unknown) > 1 else ""
        raise CannotExpressError(f"tensor {layout.unknown[0]!r}{more} belongs to no operator that is known")


def _refuse_uneven(layout: TensorLayout) -> None:
    """Refuse layers of one kind whose widths differ, and numbers of layers that leave gaps."""
    if sorted(layout.layers) != list(range(len(layout.layers))):
        raise CannotExpressError(f"the layers are not numbered from 0 to {len(layout.layers) - 1}: some are missing")
    for role in ("attn_q", "attn_k", "attn_qkv", "attn_output", "ffn_up", "ffn_down", "ffn_up_exps"):
        shapes = {parts[role].shape: index for index, parts in layout.layers.items() if role in parts}
        if len(shapes) > 1:
            ways = ", ".join(f"{list(shape)} in layer {index}" for shape, index in list(shapes.items())[:2])
            raise CannotExpressError(f"{role} differs between layers ({ways})")


def _has_bias(layout: TensorLayout, *roles: str) -> bool:
    return any(part is not None and part.has_bias for part in map(layout.anywhere, roles))


def _norm(
    layout: TensorLayout, facts: Facts, assumed: list[str]
) -> tuple[Literal["rms", "layer", "layer-plain"], bool]:
    parts = [part for role in NORMS if (part := layout.anywhere(role)) is not None]
    if not parts:
        return "layer-plain", False
    bias = any(part.has_bias for part in parts)
    if facts.norm is None and not bias:
        assumed.append("norm rms")
    return facts.norm or ("layer" if bias else "rms"), bias


def _norms_per_layer(count: int, norm: str) -> Literal[1, 2, 4]:
    if norm == "layer-plain":
        return 2
    if count not in (1, 2, 4):
        raise CannotExpressError(f"a layer with {count} norms cannot be expressed (1, 2 or 4 can)")
    return 1 if count == 1 else 2 if count == 2 else 4


def _feed_forward(layout: TensorLayout) -> tuple[bool, int | None]:
    """Whether the feed-forward is gated, and the width of the dense one (None: experts only)."""
    up, down = layout.width("ffn_up", 0), layout.width("ffn_down", 1)
    if up is None or down is None:
        return True, None
    if layout.anywhere("ffn_gate") is not None or up == 2 * down:
        return True, down
    if up != down:
        raise CannotExpressError(f"ffn_up gives {up} values, ffn_down takes {down}")
    return False, down


def _experts(layout: TensorLayout, facts: Facts, assumed: list[str]) -> Experts | None:
    routers = {index: parts["ffn_gate_inp"] for index, parts in layout.layers.items() if "ffn_gate_inp" in parts}
    if not routers:
        return None
    down = layout.anywhere("ffn_down_exps")
    router = next(iter(routers.values()))
    if down is None:
        raise CannotExpressError("there is a router, but no experts")
    count, width = router.shape[0], _expert_width(layout, router.shape[0], router.shape[-1])
    top_k = facts.top_k
    if top_k is None:
        top_k = min(8, count)
        assumed.append(f"experts.top_k {top_k}")
    holders = sorted(routers)
    step = holders[1] - holders[0] if len(holders) > 1 else 1
    by_step = [index for index in range(len(layout.layers)) if (index + 1) % step == 0]
    shared_width = layout.width("ffn_down_shexp", 1)
    shared = 0 if shared_width is None else facts.shared_experts or 1
    dense_beside = any("ffn_down" in layout.layers[index] for index in routers)
    return Experts(
        count=count,
        top_k=top_k,
        width=width,
        shared=shared,
        shared_width=None if shared_width is None else shared_width // shared,
        shared_gate=layout.anywhere("ffn_gate_inp_shexp") is not None,
        first_dense_layers=0 if by_step == holders else holders[0],
        layer_step=step,
        router_bias=router.has_bias,
        bias=down.has_bias,
        parallel_dense=dense_beside,
    )


def _expert_width(layout: TensorLayout, count: int, hidden: int) -> int:
    """Width of one expert from the elements of its down projection, however the experts are stored."""
    down = layout.anywhere("ffn_down_exps")
    width, rest = divmod(down.elements if down else 0, count * hidden)
    if rest or not width:
        raise CannotExpressError(f"{count} experts do not divide the {down.elements if down else 0} weights they share")
    return width

"""Tensors of the widest pass that a server may run: what it measures, or sets aside, before it makes its cache."""

from __future__ import annotations

from ..catalog.architecture import Architecture
from ..catalog.published import ImageEncoder
from ..catalog.serving_pool import ServingPool
from ..record import dataclass

WORKSPACE_FREE = ("mxfp4",)
"""Formats whose kernels for routed experts keep no buffer: they allocate what they need in the pass."""


ENCODER_STREAMS, ENCODER_INNER = 4, 8
"""Tensors as wide as an encoder's stream, and those of its feed-forward (two, each four times as wide), that live at
once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WidestPass:
    """What the size of a server's passes depends on, on one rank."""

    pool: ServingPool
    architecture: Architecture
    tokens: int
    """Of one pass."""
    sequences: int
    """That sample at once."""
    value: float
    """Bytes of an activation."""
    quant: str
    tp: int
    expert_tp: int
    """Ranks that share the width of one routed expert; the others share the experts."""
    samples: bool
    """Makes logits: the last stage of a pipeline."""


@dataclass(frozen=True, slots=True)
class WidestBytes:
    """Bytes at the peak of such a pass; both sum to the peak."""

    activations: float
    logits: float


def widest_bytes(p: WidestPass) -> WidestBytes:
    """The bytes beside weights and cache at the peak of a pass through layers, head and sampler.

    Formula: the larger of (streams x T h + the widest operator) w and S V (w + sampler) + T h w, T tokens and S
    sequences of w bytes a value; routed experts' buffers beside either where they stay. Such a pass skips attention.
    Logits of all ranks are gathered, so that tensor parallelism does not divide what samples. Sources: vLLM's
    gpu_model_runner.py (profile_run, _dummy_sampler_run) and sampler of 0.11 to 0.33; the factors are measured, see
    data/engines.yaml.
    """
    stream = p.tokens * p.architecture.hidden * p.value
    kept, inner = _experts(p)
    forward = kept + p.pool.streams * stream + max(inner, _dense(p))
    if not p.samples:
        return WidestBytes(forward, 0.0)
    logits = p.sequences * p.architecture.vocab * (p.value + p.pool.sampler_bytes) + p.pool.sampler_fixed_bytes
    sampling = kept + stream
    return WidestBytes(forward, 0.0) if forward > sampling + logits else WidestBytes(sampling, logits)


def encoder_bytes(encoder: ImageEncoder, image_tokens: int, tokens: int, value: float, tp: int) -> float:
    """The bytes at the peak of a pass that reads as many images as make the tokens of a pass.

    Formula: (tokens / tokens of an image) x patches x (streams + inner / tp) x width x w. Source: vLLM's
    gpu_model_runner.py (profile_run), which encodes so many images of the largest size at once.
    """
    images = max(1, tokens // image_tokens)
    return images * encoder.positions * (ENCODER_STREAMS + ENCODER_INNER / tp) * encoder.width * value


def _dense(p: WidestPass) -> float:
    """The widest operator outside of routed experts."""
    a = p.architecture
    attention = 2 * a.q_width + 2 * a.kv_width if a.mla is None else 2 * a.heads * a.mla.nope_head_dim
    shared = a.experts.shared * (a.experts.shared_width or a.experts.width) if a.experts is not None else 0
    inner = max(a.ffn or 0, shared)
    return p.tokens * max(attention, (3 if a.gated else 2) * inner) * p.value / p.tp


def _experts(p: WidestPass) -> tuple[float, float]:
    """Buffers of routed experts that stay after a pass, and those that do not.

    Formula: k T rows of the larger of gate and up (2 f) and output (h), and of their product (f).
    """
    experts = p.architecture.experts
    if experts is None:
        return 0.0, 0.0
    rows = p.tokens * (experts.expected_real or experts.top_k)
    width = experts.width / p.expert_tp
    held = rows * (max(2 * width, p.architecture.hidden) + width) * p.value
    return (held, 0.0) if p.pool.keeps_workspace and p.quant not in WORKSPACE_FREE else (0.0, held)

"""Tensors that are alive while a prompt passes through the layers, in closed form."""

from __future__ import annotations

from functools import lru_cache

from ..catalog.architecture import Architecture
from ..model.build import build
from ..model.feedforward import feed_forward
from ..record import dataclass


@dataclass(frozen=True, slots=True)
class PassBytes:
    """Bytes of one pass beside weights and cache; the two moments are not alive together."""

    layers: float
    """Streams and the widest operator of one layer."""
    scores: float
    """Of `layers`, attention scores and the mask (eager attention only)."""


@lru_cache(maxsize=8192)
def pass_bytes(
    architecture: Architecture,
    tokens: int,
    seen: int,
    sequences: int,
    *,
    value_bytes: float,
    fused_attention: bool,
    score_bytes: float = 0.0,
    in_place: bool = False,
) -> PassBytes:
    """The bytes alive in the widest layer when `sequences` x `tokens` pass and see `seen` tokens each.

    Formula (public eager code): gated feed-forward w T (3 f + 4 h), written-out gelu w T (4 f + 6 h), fused gelu
    w T (2 f + 4 h), plus cos and sin 2 s d w; eager attention 10 bytes a score, the mask, 5 q + 3 h (and repeated keys
    and values). `score_bytes` replaces the 10 bytes where an engine keeps less of a score; `in_place`:
    activation and product overwrite their input. Experts: rows of k T tokens,
    gathered and as fp32 result. Source: measured tensors of Hugging Face models, see the tests.
    """
    a, t = architecture, tokens * sequences
    w = value_bytes
    streams = _stream_count(a) * t * a.hidden * w
    rotary = 2 * tokens * a.head_dim * w if a.positions == "rope" and a.mla is None else 0.0
    branches = [branch for layer, _ in build(a).kinds for branch in layer.branches]
    parts = [(operator, branch.mixes) for branch in branches for operator in branch.operators]
    if a.ffn is not None:
        # Also where experts stand in its place in every layer.
        parts.append((feed_forward(a, a.ffn), False))
    widest = max(
        operator.pass_bytes(tokens, seen, sequences, w) * (2 / 3 if in_place and not mixes else 1)
        for operator, mixes in parts
    )
    fused = streams + widest + rotary
    if fused_attention:
        return PassBytes(fused, 0.0)
    pairs = sequences * a.heads * tokens * min(seen, _widest_window(a) or seen)
    scores = (score_bytes or 5 * w) * pairs + w * sequences * tokens * seen
    repeated = 2 * w * t * a.q_width if a.kv_heads < a.heads else 0.0
    eager = scores + (3 * t * a.hidden + t * a.q_width) * w + repeated + rotary
    return PassBytes(eager, scores) if eager > fused else PassBytes(fused, 0.0)


def _widest_window(a: Architecture) -> int | None:
    window = a.window
    return window.size if window is not None and not window.full else None


def _stream_count(a: Architecture) -> int:
    """Tensors as wide as the stream that are named in the last layer's feed-forward."""
    return 6 if a.positions == "learned" else 4

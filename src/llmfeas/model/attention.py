"""Softmax attention with multi-, grouped- or single-query heads, windows included."""

from __future__ import annotations

from dataclasses import replace

from ..catalog.architecture import Architecture, LayerKind, QkNorm
from ..record import dataclass
from .operator import AttentionKernel, Operator, SpanShape
from .weight import Weight, column_linear, row_linear, vector

_COUNTER_BYTES = 8
"""A windowed cache layer holds its window as one 64-bit number."""


def softmax_flop(pairs: float, heads: int, qk_width: int, v_width: int) -> float:
    """FLOPs of scores and of the weighted sum of values, `2 pairs heads (qk + v)`."""
    return 2 * pairs * heads * (qk_width + v_width)


def softmax_backward_flop(pairs: float, heads: int, qk_width: int, v_width: int, kernel: AttentionKernel) -> float:
    """FLOPs of its backward pass: four products; a fused kernel forms the scores again, a fifth."""
    products = (3 if kernel == "flash" else 2) * qk_width + 2 * v_width
    return 2 * pairs * heads * products


@dataclass(frozen=True, slots=True)
class Attention(Operator):
    """Queries, keys and values, `softmax(q k) v`, and the output projection.

    FLOPs count the full square: kernels that skip what the causal mask or a window hides do less.
    """

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: QkNorm = "none"
    gate: bool = False
    sinks: bool = False
    fused_qkv: bool = False
    relative: bool = False
    rotates: bool = True
    window: int | None = None
    window_in_cache: bool = True

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Projections (heads divide over tensor-parallel ranks) and the small vectors beside them."""
        output = row_linear("o", self.heads * self.head_dim, self.hidden, bias=self.out_bias, adapter="attention")
        return self._projections() + self._small() + output

    def _projections(self) -> tuple[Weight, ...]:
        q_width, kv_width = self.heads * self.head_dim, self.kv_heads * self.head_dim
        q_out = 2 * q_width if self.gate else q_width
        parts = (("qkv", q_out + 2 * kv_width),) if self.fused_qkv else (("q", q_out), ("k", kv_width), ("v", kv_width))
        return tuple(
            weight
            for name, outputs in parts
            for weight in column_linear(name, self.hidden, outputs, bias=self.qkv_bias, adapter="attention")
        )

    def _small(self) -> tuple[Weight, ...]:
        q_width, kv_width = self.heads * self.head_dim, self.kv_heads * self.head_dim
        found: list[Weight] = []
        if self.qk_norm in ("head", "full"):
            widths = (self.head_dim, self.head_dim) if self.qk_norm == "head" else (q_width, kv_width)
            found += [vector("q_norm", widths[0]), vector("k_norm", widths[1])]
        if self.sinks:
            found.append(vector("sinks", self.heads, split="tensor"))
        if self.relative:
            # Applied to the positions of one sequence, not to every token: its products are in score_flop.
            found.append(Weight("positions", (q_width, self.hidden), uses=0.0))
            found.append(vector("relative.bias", 2 * q_width, split="tensor"))
        return tuple(found)

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence: `4 heads head_dim s^2`; relative positions add a third product and a projection."""
        pairs = float(tokens) * tokens
        flop = softmax_flop(pairs, self.heads, self.head_dim, self.head_dim)
        if self.relative:
            q_width = self.heads * self.head_dim
            flop += 2 * pairs * q_width + 2.0 * tokens * self.hidden * q_width
        return flop

    def score_backward_flop(self, tokens: int, kernel: AttentionKernel) -> float:
        """FLOPs of one sequence's backward pass through the scores."""
        pairs = float(tokens) * tokens
        plain = softmax_flop(pairs, self.heads, self.head_dim, self.head_dim)
        positions = self.score_flop(tokens) - plain
        return softmax_backward_flop(pairs, self.heads, self.head_dim, self.head_dim, kernel) + 2 * positions

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token against the tokens that this layer still holds."""
        seen = cached + 1 if self.window is None else min(cached + 1, self.window)
        return softmax_flop(seen, self.heads, self.head_dim, self.head_dim)

    def cached_values(self, tokens: int) -> int:
        """Keys and values; a windowed layer keeps `window - 1` tokens, the newest one brings its own."""
        held = min(tokens, self.window - 1) if self.window is not None and self.window_in_cache else tokens
        return 2 * self.kv_heads * self.head_dim * held

    @property
    def span(self) -> SpanShape:
        """All heads over keys and values of the window."""
        return float(self.heads * self.head_dim), 2 * self.kv_heads * self.head_dim, self.window

    @property
    def stream_width(self) -> float:
        """2 of all heads."""
        return 2 * self.head_dim * (self.heads + 2 * self.kv_heads)

    def without_window(self) -> Attention:
        """The same without its window."""
        return self if self.window is None else replace(self, window=None)

    @property
    def counter_bytes(self) -> int:
        """The window's size as PyTorch keeps it beside the keys and values of a windowed layer."""
        return _COUNTER_BYTES if self.window is not None and self.window_in_cache else 0


def attention(architecture: Architecture, kind: LayerKind) -> Attention:
    """The softmax attention of a layer."""
    window = architecture.window
    return Attention(
        architecture.hidden,
        architecture.heads,
        architecture.kv_heads,
        architecture.head_dim,
        qkv_bias=architecture.qkv_bias,
        out_bias=architecture.out_bias,
        qk_norm=architecture.qk_norm,
        gate=architecture.output_gate,
        sinks=architecture.sinks,
        fused_qkv=architecture.fused_qkv,
        relative=architecture.positions == "relative-xl",
        rotates=architecture.positions == "rope" and kind.rotates,
        window=window.size if window is not None and kind.windowed else None,
        window_in_cache=window is None or window.in_cache,
    )

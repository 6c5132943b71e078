"""Gated delta-rule attention: a state of fixed size in place of a cache."""

from __future__ import annotations

from ..catalog.architecture import Architecture, LayerKind
from ..record import dataclass
from .operator import AttentionKernel, Operator
from .weight import Weight, column_linear, row_linear, vector

_CHUNK = 64
_LONG = 1 << 16
_FP32_BYTES = 4


@dataclass(frozen=True, slots=True)
class DeltaRule(Operator):
    """Qwen3-Next's linear attention, computed in chunks of 64 tokens when training, token by token when decoding."""

    hidden: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int
    apart: bool = False

    @property
    def _mixed(self) -> int:
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Projections, a short convolution a channel, decay, and the gated norm of the output."""
        values = self.value_heads * self.value_dim
        return (
            *self._projections(values),
            Weight("conv", (self._mixed, 1, self.kernel)),
            vector("dt_bias", self.value_heads, split="tensor"),
            vector("decay", self.value_heads, split="tensor"),
            vector("out_norm", self.value_dim),
            *row_linear("o", values, self.hidden, adapter="attention"),
        )

    def _projections(self, values: int) -> tuple[Weight, ...]:
        if not self.apart:
            joint = column_linear("qkvz", self.hidden, self._mixed + values, adapter="attention")
            return joint + column_linear("ba", self.hidden, 2 * self.value_heads, adapter="attention")
        widths = {"qkv": self._mixed, "z": values, "b": self.value_heads, "a": self.value_heads}
        return tuple(
            weight for name, n in widths.items() for weight in column_linear(name, self.hidden, n, adapter="attention")
        )

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence: products within a chunk, and with the state between chunks.

        A chunk of c tokens multiplies keys and queries with keys (2 c^2 k), the scores with the values (c^2 v), and
        three times with the state of k x v (3 c k v); a triangular solve is no product. The convolution is computed
        over `kernel - 1` tokens of padding more.
        """
        inside = _CHUNK * _CHUNK * (2 * self.key_dim + self.value_dim)
        chunked = 2.0 * self._chunks(tokens) * self.value_heads * (inside + 3 * self._state_product)
        return chunked + 2.0 * self._mixed * self.kernel * (self.kernel - 1)

    @property
    def _state_product(self) -> int:
        return _CHUNK * self.key_dim * self.value_dim

    def _chunks(self, tokens: int) -> int:
        return -(-tokens // _CHUNK)

    def score_backward_flop(self, tokens: int, kernel: AttentionKernel) -> float:
        """FLOPs of its backward pass, whatever the kernel of the full layers.

        Twice the forward pass; the triangular solves add a product each (c^2 k, c^2 v a chunk). Nothing flows into the
        state before the first chunk (two products) nor out of the one behind the last (two).
        """
        solves = self._chunks(tokens) * _CHUNK * _CHUNK * (self.key_dim + self.value_dim)
        return 2 * self.score_flop(tokens) + 2.0 * self.value_heads * (solves - 4 * self._state_product)

    def decode_flop(self, cached: float) -> float:
        """FLOPs of one token: read, correct and query the state."""
        return 2.0 * 3 * self.value_heads * self.key_dim * self.value_dim

    def cached_values(self, tokens: int) -> int:
        """The convolution's last inputs, in the type of the stream."""
        return self._mixed * self.kernel if tokens else 0

    @property
    def state_flop(self) -> float:
        """Of a long sequence, whose last chunk and padding no longer show."""
        return self.score_flop(_LONG) / _LONG

    @property
    def stream_width(self) -> float:
        """2 of queries, keys and values."""
        return 2 * self._mixed

    @property
    def state_bytes(self) -> int:
        """The recurrent state, kept in 32 bits."""
        return _FP32_BYTES * self.value_heads * self.key_dim * self.value_dim


def delta_rule(architecture: Architecture, kind: LayerKind) -> DeltaRule:
    """The linear attention of an architecture."""
    linear_attention = architecture.linear_attention
    assert linear_attention is not None
    return DeltaRule(
        architecture.hidden,
        linear_attention.key_heads,
        linear_attention.value_heads,
        linear_attention.key_head_dim,
        linear_attention.value_head_dim,
        linear_attention.conv_kernel,
        linear_attention.apart,
    )

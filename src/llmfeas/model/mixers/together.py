"""Two mixers side by side on one input, whose results are added (Falcon-H1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

from ...autograd.basic import add, scaled
from ...autograd.graph import Tensor
from ...catalog.implementation import Implementation
from ...record import dataclass, replace
from ..context import Context
from ..operator import AttentionKernel, Operator, SpanShape
from ..weight import Weight
from .rotation import Around


@dataclass(frozen=True, slots=True)
class Together(Operator):
    """Attention and a mixer with a fixed state; what either states is added up, but what only attention has."""

    title: ClassVar[str] = "attention and state space side by side"
    is_common: ClassVar[bool] = False
    packages: ClassVar[str] = "mamba-ssm and causal-conv1d"
    attention: Operator
    other: Operator

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Of both."""
        return (*self.attention.weights, *self.other.weights)

    def _changed(self, change: Callable[[Operator], Operator]) -> Self:
        return replace(self, attention=change(self.attention), other=change(self.other))

    def on_rank(self, tp: int, expert_tp: int) -> Self:
        """Of both."""
        return self._changed(lambda part: part.on_rank(tp, expert_tp))

    def laid_out(self, traits: Implementation) -> Self:
        """Of both."""
        return self._changed(lambda part: part.laid_out(traits))

    def without_window(self) -> Self:
        """Of both."""
        return self._changed(lambda part: part.without_window())

    def score_flop(self, tokens: int) -> float:
        """Of both."""
        return self.attention.score_flop(tokens) + self.other.score_flop(tokens)

    def score_backward_flop(self, tokens: int, kernel: AttentionKernel) -> float:
        """Of both."""
        return self.attention.score_backward_flop(tokens, kernel) + self.other.score_backward_flop(tokens, kernel)

    def decode_flop(self, cached: float) -> float:
        """Of both."""
        return self.attention.decode_flop(cached) + self.other.decode_flop(cached)

    def cached_values(self, tokens: int) -> int:
        """Of both."""
        return self.attention.cached_values(tokens) + self.other.cached_values(tokens)

    @property
    def cache_parts(self) -> int:
        """Key-value heads."""
        return self.attention.cache_parts

    def pass_bytes(self, tokens: int, seen: int, sequences: int, width: float) -> float:
        """Of the larger."""
        one, two = (part.pass_bytes(tokens, seen, sequences, width) for part in (self.attention, self.other))
        return max(one, two)

    @property
    def span(self) -> SpanShape | None:
        """Of the attention."""
        return self.attention.span

    @property
    def stream_width(self) -> float:
        """Of both."""
        return self.attention.stream_width + self.other.stream_width

    @property
    def state_flop(self) -> float:
        """Of the state."""
        return self.other.state_flop

    @property
    def chunk_tokens(self) -> int:
        """Of the state."""
        return self.other.chunk_tokens

    @property
    def rotary_width(self) -> int:
        """Of the attention."""
        return self.attention.rotary_width

    @property
    def window(self) -> int | None:
        """Of the attention."""
        return self.attention.window

    @property
    def state_bytes(self) -> int:
        """Of the state."""
        return self.other.state_bytes

    @property
    def counter_bytes(self) -> int:
        """Of the attention."""
        return self.attention.counter_bytes

    def program(self, context: Context) -> TogetherProgram:
        """Both, and their sum."""
        return TogetherProgram(context, self)


class TogetherProgram:
    """Both mixers on one input."""

    __slots__ = ("attention", "context", "other")

    def __init__(self, context: Context, operator: Together) -> None:
        self.context = context
        self.other, self.attention = operator.other.program(context), operator.attention.program(context)

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, Tensor | None]:
        """Their sum, and the scores that eager code returns."""
        other, _ = self.other(x, around)
        other = self._scaled(other)
        attended, weights = self.attention(self._scaled(x), around)
        attended = self._scaled(attended)
        return add(self.context.recorder, other, attended), weights

    def _scaled(self, x: Tensor) -> Tensor:
        return scaled(self.context.recorder, x) if self.context.traits.scales_parts else x

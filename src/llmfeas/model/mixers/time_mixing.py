"""Mixing by receptance (RWKV): each token is mixed with the one before it, and a state of fixed size holds the rest."""

from __future__ import annotations

from typing import ClassVar

from ...autograd.basic import mul, unary_of_output
from ...autograd.graph import Tensor
from ...autograd.recurrent import delta_kernel
from ...catalog.architecture import Architecture, LayerKind
from ...record import dataclass
from ..context import Context
from ..operator import Operator
from ..weight import Weight, column_linear, row_linear
from .rotation import Around

_CHUNK = 64
_FP32_BYTES = 4
_MIXED = 2
"""Last tokens that are kept: one for the mixing of tokens, one for that of channels."""


@dataclass(frozen=True, slots=True)
class Receptance(Operator):
    """`out(receptance * state)`: the state is a matrix a head (RWKV 7), or three numbers a channel (RWKV 4)."""

    title: ClassVar[str] = "recurrent layers"
    is_common: ClassVar[bool] = False
    divided: ClassVar[tuple[str, ...]] = ("width",)
    hidden: int
    width: int
    head_dim: int

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Receptance, key, value and output; what is small stands beside them."""
        widths = {"r": self.width, "k": self.width, "v": self.width}
        found = [w for name, n in widths.items() for w in column_linear(name, self.hidden, n, adapter="attention")]
        return (*found, *row_linear("o", self.width, self.hidden, adapter="attention"))

    @property
    def _per_channel(self) -> int:
        """Numbers of state."""
        return self.head_dim or 3

    def score_flop(self, tokens: int) -> float:
        """FLOPs of one sequence token by token: correct, write and read the state; a number a channel is no product."""
        return tokens * self.state_flop

    def decode_flop(self, cached: float) -> float:
        """The same of one token."""
        return self.state_flop

    @property
    def state_flop(self) -> float:
        """Three products of a vector and a matrix a head."""
        return 6.0 * self.width * self.head_dim

    def cached_values(self, tokens: int) -> int:
        """The last token, in the type of the stream."""
        return _MIXED * self.hidden if tokens else 0

    @property
    def state_bytes(self) -> int:
        """The states, kept in 32 bits."""
        return _FP32_BYTES * self.width * self._per_channel

    @property
    def stream_width(self) -> float:
        """3 of receptance, key and value."""
        return 9 * self.width

    def program(self, context: Context) -> ReceptanceProgram:
        """The recurrence as one kernel."""
        return ReceptanceProgram(context, self)


class ReceptanceProgram:
    """Mixed inputs, one for each projection, and a kernel that keeps what they gave."""

    __slots__ = ("context", "operator", "projections")

    def __init__(self, context: Context, operator: Receptance) -> None:
        self.context, self.operator = context, operator
        self.projections = context.made(operator.weights, streams=True).projections

    def __call__(self, x: Tensor, around: Around) -> tuple[Tensor, None]:
        """Run it on x; there are no scores to return."""
        context, recorder, operator = self.context, self.context.recorder, self.operator
        # Each projection reads a mixture of its own, made of the same stream.
        mixed = [mul(recorder, x, recorder.new(operator.hidden, x.width)) for _ in "rkv"]
        reads, keys, values = (
            context.apply(self.projections[name], part) for name, part in zip("rkv", mixed, strict=True)
        )
        states = context.sizes.b * max(1, context.sizes.s // _CHUNK) * operator.width * operator._per_channel
        out = delta_kernel(recorder, [reads, keys, values], context.sizes.bs, states, values.n)
        return context.apply(self.projections["o"], mul(recorder, out, unary_of_output(recorder, reads))), None


def time_mixing(architecture: Architecture, kind: LayerKind) -> Receptance:
    """The mixing of tokens of an architecture."""
    mixing = architecture.time_mixing
    assert mixing is not None
    return Receptance(architecture.hidden, mixing.width, mixing.head_dim)

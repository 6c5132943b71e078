"""Attention whose queries pass a low rank with a norm between, over few plain keys and values (Step 3)."""

from __future__ import annotations

from typing import ClassVar

from ..autograd.graph import Tensor
from ..record import dataclass
from .attention import Attention, AttentionProgram
from .context import Context, Made
from .norm import NormProgram, norm_program
from .weight import Weight, column_linear, row_linear, vector


@dataclass(frozen=True, slots=True)
class FactoredAttention(Attention):
    """Multi-matrix factorization attention: the product to the low rank is whole on every rank."""

    title: ClassVar[str] = "attention with factored queries"
    is_common: ClassVar[bool] = False
    q_rank: int = 0

    @property
    def weights(self) -> tuple[Weight, ...]:
        """As attention, queries in two products."""
        output = row_linear("o", self.out_width, self.hidden, adapter="attention")
        return (
            *column_linear("q_a", self.hidden, self.q_rank, adapter="attention", split="none"),
            vector("q_low_norm", self.q_rank),
            *column_linear("q", self.q_rank, self.q_width, adapter="attention", inner=True),
            *column_linear("k", self.hidden, self.kv_width, adapter="attention", split="none"),
            *column_linear("v", self.hidden, self.kv_width, adapter="attention", split="none"),
            *output,
        )

    def program(self, context: Context) -> FactoredProgram:
        """Attention, its queries in two products."""
        return FactoredProgram(context, self)


class FactoredProgram(AttentionProgram):
    """As attention, with what makes the queries out of the stream."""

    __slots__ = ("low_norm",)

    def _norm(self, made: Made, name: str, heads: int) -> NormProgram | None:
        if name == "q_norm":
            weight = made.parameters["q_low_norm"]
            self.low_norm = NormProgram(weight.n, weight, None, norm_program(self.context, "rms"))
        return None

    def _queries(self, x: Tensor) -> Tensor:
        low = self.low_norm(self.context.recorder, self.context.apply(self.projections["q_a"], x))
        return self.context.apply(self.projections["q"], low)

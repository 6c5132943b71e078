"""The projection from the stream to the vocabulary."""

from __future__ import annotations

from ..catalog.architecture import Architecture
from ..record import dataclass
from .operator import Operator
from .weight import Weight, column_linear, vector


@dataclass(frozen=True, slots=True)
class Head(Operator):
    """Logits of every token. A tied head multiplies by the embedding table and holds no matrix of its own."""

    hidden: int
    width: int
    vocab: int
    tied: bool = False
    bias: bool = False

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Rows of the vocabulary divide over tensor-parallel ranks; LoRA leaves the head alone."""
        found: tuple[Weight, ...] = ()
        if self.width != self.hidden:
            found += column_linear("project_out", self.hidden, self.width)
        copies = 0 if self.tied else 1
        found += (Weight("head", (self.vocab, self.width), copies),)
        return (*found, vector("head.bias", self.vocab, split="tensor")) if self.bias else found


def head(architecture: Architecture) -> Head:
    """Give the head of an architecture."""
    width = architecture.embedding_dim or architecture.hidden
    return Head(architecture.hidden, width, architecture.vocab, architecture.tied, architecture.head_bias)

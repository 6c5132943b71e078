"""Normalisation of the residual stream."""

from __future__ import annotations

from ..catalog.architecture import Architecture
from ..record import dataclass
from .operator import Operator
from .weight import Weight, vector


@dataclass(frozen=True, slots=True)
class Norm(Operator):
    """A norm over the width of the stream; `scaled` and `biased` say which vectors it has. Whole on every rank."""

    width: int
    scaled: bool = True
    biased: bool = False

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Scale and shift."""
        scale = (vector("norm", self.width),) if self.scaled else ()
        return (*scale, vector("norm.bias", self.width)) if self.biased else scale


def norm(architecture: Architecture) -> Norm:
    """Give the norm that an architecture uses."""
    return Norm(architecture.hidden, architecture.norm != "layer-plain", architecture.norm_bias)

"""A layer of a decoder: branches of the residual stream, each a mixer or a feed-forward with its norms."""

from __future__ import annotations

from dataclasses import replace

from ..record import dataclass
from .norm import Norm
from .operator import Operator
from .weight import Weight


@dataclass(frozen=True, slots=True)
class Branch:
    """An operator on the residual stream, which what it makes is added to."""

    operator: Operator
    mixes: bool
    """It mixes tokens; otherwise it works on each of them alone."""
    before: Norm | None = None
    behind: Norm | None = None
    beside: tuple[Operator, ...] = ()
    """Held with it; what they make is too small to be in its program."""
    shortcut: Operator | None = None
    """Reads what `operator` reads, and is added to the stream at the end of the layer."""

    @property
    def operators(self) -> tuple[Operator, ...]:
        """All of it, in the order of the forward pass."""
        parts = (self.before, *self.beside, self.shortcut, self.operator, self.behind)
        return tuple(part for part in parts if part is not None)


@dataclass(frozen=True, slots=True)
class Layer:
    """Branches one after the other, or in `parallel` on one stream: then the first one's norm is that of all."""

    branches: tuple[Branch, ...]
    parallel: bool = False

    @property
    def operators(self) -> tuple[Operator, ...]:
        """All of it, in the order of the forward pass."""
        return tuple(operator for branch in self.branches for operator in branch.operators)

    @property
    def weights(self) -> tuple[Weight, ...]:
        """All of them, in the order of the forward pass."""
        return tuple(weight for operator in self.operators for weight in operator.weights)

    @property
    def window(self) -> int | None:
        """Tokens that its attention sees at most; None: all."""
        return next((op.window for op in self.operators if op.window is not None), None)

    def without_window(self) -> Layer:
        """The layer as sequences shorter than its window meet it."""
        return replace(self, branches=tuple(replace(b, operator=b.operator.without_window()) for b in self.branches))

"""What the catalog says of a published model beside its shape: contexts, routers, images, how it scores."""

from __future__ import annotations

from typing import Literal

from ..record import dataclass
from .types import Count, CountOrZero, Positive, Strict


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageEncoder(Strict):
    """How much of an encoder one image of the size that is named passes."""

    positions: Count
    """Patches."""
    layers: CountOrZero = 0
    width: CountOrZero = 0
    """Of its attention."""
    span: CountOrZero = 0
    """Positions that one attends to, on average over the layers; 0: all of the image."""
    parameters: CountOrZero = 0
    """That a position passes, what joins positions to tokens by its share; 0: all beside the language model."""

    def flop(self, towers: int) -> float:
        """FLOPs of one image, of a model with so many parameters in encoders."""
        mixing = 4.0 * self.layers * self.width * (self.span or self.positions)
        return self.positions * (2.0 * (self.parameters or towers) + mixing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranker(Strict):
    """How a model that reads a query and a text together says how well they go together."""

    by: Literal["label", "tokens", "vectors"] = "label"
    """A number behind the last layer; the logits of tokens at the end of the pair, by the projection to the vocabulary;
    or vectors of a query and of all its texts, which stand in one sequence."""
    tokens: tuple[str, ...] = ()
    """Those whose logits count: the one for no, if there is one, and the one for yes."""
    served_as: str = ""
    """Class with labels by which servers know it, where its own name for its class is another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Router(Strict):
    """How a router turns its scores into weights of experts; it changes no size and no work that is counted."""

    scores: Literal["softmax", "sigmoid"] = "sigmoid"
    groups: CountOrZero = 0
    """Groups of experts, of which the best `top_groups` are chosen from; 0: there are none."""
    top_groups: CountOrZero = 0
    scale: Positive = 1.0
    """What the weights are multiplied by."""
    balanced: bool = False
    """An offset for each expert, which keeps the load even, takes part in choosing and not in weighing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedContext(Strict):
    """The context of a model's weights that were trained further, where words of a name say which they are."""

    words: tuple[str, ...]
    """All of them stand in the name: `2507`, `base`."""
    context: Count

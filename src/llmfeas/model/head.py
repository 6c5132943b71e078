"""The projection from the stream to the vocabulary."""

from __future__ import annotations

from typing import Final, Self

from ..autograd.basic import cast, scaled, shifted, unary_of_input
from ..autograd.graph import Parameter, Tensor
from ..autograd.loss import LOSSES, LOSSES_WITH_HEAD, WIDENED
from ..autograd.products import layer_norm, linear
from ..autograd.storage import LOGITS
from ..catalog.architecture import Architecture
from ..record import dataclass, replace
from .context import Context
from .mixers.scores import softcapped
from .operator import Operator
from .weight import Weight, column_linear, rank_vocab, vector

_LABELS: Final = 2


@dataclass(frozen=True, slots=True)
class Head(Operator):
    """Logits of every token. A tied head multiplies by the embedding table and holds no matrix of its own."""

    hidden: int
    width: int
    vocab: int
    tied: bool = False
    bias: bool = False
    softcap: bool = False
    """Logits pass through a scaled tanh."""
    transforms: bool = False
    """A product, an activation and a norm stand before the table (BERT)."""
    transform_bias: bool = True
    """These have biases."""
    labels: bool = False
    """There is no vocabulary to write: training puts a few labels there, which are no part of the model."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Rows of the vocabulary divide over tensor-parallel ranks; LoRA leaves the head alone."""
        found: tuple[Weight, ...] = ()
        if self.labels:
            return found
        if self.transforms:
            found += column_linear("transform", self.hidden, self.width, bias=self.transform_bias)
            found += (vector("transform.norm", self.width),)
            found += (vector("transform.norm.bias", self.width),) if self.transform_bias else ()
        elif self.width != self.hidden:
            found += column_linear("project_out", self.hidden, self.width)
        copies = 0 if self.tied else 1
        found += (Weight("head", (self.vocab, self.width), copies),)
        return (*found, vector("head.bias", self.vocab, split="tensor")) if self.bias else found

    def on_rank(self, tp: int, expert_tp: int) -> Self:
        """Its rows of the vocabulary."""
        return self if self.labels else replace(self, vocab=rank_vocab(self.vocab, tp))

    def program(self, context: Context, table: Parameter | None = None) -> HeadProgram:
        """Logits and loss; `table` is the embedding's, which a tied head multiplies by."""
        return HeadProgram(context, self, table)


class HeadProgram:
    """From the last layer's stream to the loss."""

    __slots__ = ("bias", "context", "leave", "norm", "softcap", "transform", "weight")

    def __init__(self, context: Context, head: Head, table: Parameter | None) -> None:
        made = context.made(head.weights)
        weight = made.parameters.get("head", table)
        if head.labels:
            recipe = context.recipe
            shape = (head.vocab, head.width)
            weight = context.recorder.parameter(shape, width=recipe.weight_bytes, trains=not recipe.adapters)
        assert weight is not None
        weight.ranks = context.ranks if head.width == head.hidden else 1
        self.context = context
        self.softcap = head.softcap
        self.weight = weight
        self.bias = made.parameters.get("head.bias")
        self.leave = made.projections.get("project_out")
        self.transform = made.projections.get("transform")
        self.norm = made.parameters.get("transform.norm"), made.parameters.get("transform.norm.bias")

    def __call__(self, hidden: Tensor) -> Tensor:
        """The loss; logits are named until it exists."""
        recorder = self.context.recorder
        if self.transform is not None:
            hidden = unary_of_input(recorder, self.context.apply(self.transform, hidden))
            hidden = layer_norm(recorder, hidden, *self.norm, self.context.sizes.bs)
        loss = self.context.recipe.loss or self.context.traits.loss
        if loss in LOSSES_WITH_HEAD:
            return LOSSES_WITH_HEAD[loss](recorder, hidden, self.weight, self.bias)
        logits = linear(recorder, hidden, self.weight, self.bias, logits=True)
        logits = self._shaped(logits)
        return LOSSES[loss](recorder, logits)

    def _shaped(self, logits: Tensor) -> Tensor:
        """Logits through a cap or times a number, each step replacing the one before."""
        context, recorder = self.context, self.context.recorder
        if context.traits.compiled:
            # Part of the loss's kernels.
            return logits
        before, recorder.component = recorder.component, LOGITS
        if context.traits.biases_logits:
            logits = cast(recorder, logits, 4) if recorder.amp else shifted(recorder, logits)
        if self.softcap or context.traits.caps_logits:
            logits = softcapped(recorder, logits)
        if context.traits.scales_logits:
            logits = scaled(recorder, logits)
        if context.recipe.loss in WIDENED and recorder.amp:
            logits = cast(recorder, logits, 4)
        recorder.component = before
        return logits


def masked_head(architecture: Architecture) -> Head:
    """What predicts the masked tokens of an encoder, by its token table."""
    a = architecture
    width = a.embedding_dim or a.hidden
    return Head(a.hidden, width, a.vocab, tied=True, bias=True, transforms=True, transform_bias=a.norm_bias)


def head(architecture: Architecture) -> Head:
    """The head of an architecture."""
    a = architecture
    if a.predicts:
        return masked_head(a)
    if a.encoder or a.scores:
        return Head(a.hidden, a.hidden, _LABELS, labels=True)
    return Head(a.hidden, a.embedding_dim or a.hidden, a.vocab, a.tied, a.head_bias, a.softcap)

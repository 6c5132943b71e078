"""What a model holds beside its decoder: embeddings of each layer (Gemma 3n, 4), towers for images and sounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Self

from ..autograd.basic import copied_weight, passing
from ..autograd.graph import Parameter, Tensor
from ..catalog.architecture import Architecture, LayerKind
from ..catalog.parts import SideWeights
from ..record import dataclass, replace
from .context import Context
from .operator import Operator
from .weight import Weight, column_linear, row_linear, table, vector


@dataclass(frozen=True, slots=True)
class LayerTables(Operator):
    """A table with a row for each layer and token, and a projection of the embedding beside it."""

    title: ClassVar[str] = "per-layer embeddings"
    rows: int
    width: int
    layers: int
    hidden: int

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Table, projection, norm."""
        whole = self.layers * self.width
        return (
            *((table("layer_embedding", self.rows, whole, split="none"),) if self.rows else ()),
            *column_linear("layer_projection", self.hidden, whole, split="none"),
            vector("layer_norm", self.width),
        )

    @property
    def idle_elements(self) -> int:
        """The table: a token reads one row."""
        return self.rows * self.layers * self.width


@dataclass(frozen=True, slots=True)
class LayerInput(Operator):
    """A layer's part of those embeddings, gated by the stream and added to it."""

    hidden: int
    width: int

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Gate, projection, norm."""
        return (
            *column_linear("layer_gate", self.hidden, self.width, split="none"),
            *row_linear("layer_out", self.width, self.hidden),
            vector("layer_out_norm", self.hidden),
        )


@dataclass(frozen=True, slots=True)
class Towers(Operator):
    """Encoders of images and sounds with their projectors: held in the model's type, idle for text, not trained."""

    title: ClassVar[str] = "encoders of images or sounds"
    elements: int

    @property
    def weights(self) -> tuple[Weight, ...]:
        """All of them as one."""
        return (Weight("towers", (self.elements,), uses=0.0, split="none", frozen=True),)

    @property
    def idle_elements(self) -> int:
        """All of them."""
        return self.elements


@dataclass(frozen=True, slots=True)
class StreamMixing(Operator):
    """A layer's part of parallel residual streams: predictions, corrections, their router, and a low-rank branch."""

    hidden: int
    streams: int
    rank: int

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Small matrices and vectors, whole on every rank."""
        n = self.streams
        return (
            *column_linear("stream_router", self.hidden, n, split="none"),
            *column_linear("stream_predictions", n, n * n, split="none"),
            *column_linear("stream_corrections", n, n, split="none"),
            vector("stream_norm", self.hidden),
            vector("stream_scale", self.hidden),
            *column_linear("branch_in", self.hidden, self.rank, split="none"),
            *row_linear("branch_out", self.rank, self.hidden),
            vector("branch_norm", self.hidden),
        )


@dataclass(frozen=True, slots=True)
class StreamProjections(Operator):
    """Projections of the embedding into the further streams, and of these into what the head reads."""

    title: ClassVar[str] = "parallel residual streams"
    hidden: int
    streams: int

    @property
    def weights(self) -> tuple[Weight, ...]:
        """A square matrix a further stream, in and out."""
        return tuple(
            weight
            for place in range(self.streams - 1)
            for name in ("stream_in", "stream_out")
            for weight in column_linear(f"{name}_{place}", self.hidden, self.hidden, split="none")
        )


@dataclass(frozen=True, slots=True)
class Side(Operator):
    """Small matrices and vectors, whole on every rank, and a look-up table, which divides by its width."""

    matrices: tuple[tuple[int, int], ...]
    vectors: int
    rows: int = 0
    width: int = 0

    @property
    def weights(self) -> tuple[Weight, ...]:
        """The matrices, the table, and the vectors as one."""
        found = [table("ngram", self.rows, self.width)] if self.rows else []
        for place, (inputs, outputs) in enumerate(self.matrices):
            found += column_linear(f"beside_{place}", inputs, outputs, split="none")
        return (*found, vector("beside", self.vectors)) if self.vectors else tuple(found)

    @property
    def idle_elements(self) -> int:
        """The table: a token reads a few rows."""
        return self.rows * self.width

    def on_rank(self, tp: int, expert_tp: int) -> Self:
        """Its part of the table."""
        return replace(self, width=-(-self.width // tp)) if self.rows else self


def passing_by(context: Context, operators: Sequence[Operator]) -> Callable[[Tensor], Tensor]:
    """Make the weights of operators whose work is in no program: what the stream passes for them to get gradients.

    Under autocast products read copies in 16 bits, which stay until it ends.
    """
    learning: list[Parameter] = []
    multiplied: list[Parameter] = []
    for operator in operators:
        first, made = len(context.weights), context.made(operator.weights)
        if operator.learns:
            multiplied += (linear.weight for linear in made.projections.values())
            learning += context.weights[first:]
    alone = [weight for weight in learning if all(weight is not each for each in multiplied)]

    def by(x: Tensor) -> Tensor:
        recorder = context.recorder
        copies = (copied_weight(recorder, each) if recorder.autocast else each for each in multiplied)
        return passing(recorder, x, [*alone, *copies])

    return by


def _side(beside: SideWeights | None) -> tuple[Side, ...]:
    return () if beside is None else (Side(beside.matrices, beside.vectors, *(beside.table or (0, 0))),)


def _layer_tables(architecture: Architecture) -> Iterator[Side]:
    """The tables of layers: held where the embedding is, and looked up like it, so that no token reads them whole."""
    for kind in architecture.layer_runs:
        if kind.beside is not None and kind.beside.table is not None:
            yield from (Side((), 0, *kind.beside.table) for _ in range(kind.times))


def held_beside(architecture: Architecture) -> tuple[Operator, ...]:
    """What an architecture holds beside its embedding, layers and head."""
    a, found = architecture, list[Operator]()
    if a.per_layer_embedding is not None:
        each = a.per_layer_embedding
        found.append(LayerTables(each.rows, each.width, a.layers, a.hidden))
    if a.altup is not None:
        found.append(StreamProjections(a.hidden, a.altup.streams))
    if a.tower_parameters:
        found.append(Towers(a.tower_parameters))
    return (*found, *_side(a.beside), *_layer_tables(a))


def held_in_layers(kind: LayerKind) -> tuple[Operator, ...]:
    """What a layer of an architecture holds beside its mixer and feed-forward, but for its table."""
    return _side(kind.beside and replace(kind.beside, table=None))

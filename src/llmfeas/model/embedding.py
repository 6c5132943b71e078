"""Look-ups at the start of the model: token and position tables, hashed n-grams, the projection to the stream."""

from __future__ import annotations

from typing import ClassVar, Self

from ..catalog.architecture import Architecture
from ..record import dataclass, replace
from .operator import Operator
from .weight import Weight, rank_vocab, row_linear, table


@dataclass(frozen=True, slots=True)
class Embedding(Operator):
    """Token table, and a projection where it is narrower than the stream (OPT-350M)."""

    vocab: int
    width: int
    hidden: int
    shared: bool = False
    """The table is another's (that of the decoder)."""

    @property
    def table(self) -> Weight:
        """A look-up without FLOPs; vocabulary rows divide over tensor-parallel ranks."""
        found = table("embedding", self.vocab, self.width)
        return replace(found, copies=0) if self.shared else found

    @property
    def weights(self) -> tuple[Weight, ...]:
        """The table, and the projection."""
        projection = () if self.width == self.hidden else row_linear("project_in", self.width, self.hidden)
        return (self.table, *projection)

    def on_rank(self, tp: int, expert_tp: int) -> Self:
        """Its rows of the vocabulary."""
        return replace(self, vocab=rank_vocab(self.vocab, tp))


@dataclass(frozen=True, slots=True)
class Positions(Operator):
    """Learned position table, whole on every rank."""

    rows: int
    hidden: int
    frozen: bool = False

    @property
    def weights(self) -> tuple[Weight, ...]:
        """One row a position."""
        return (replace(table("positions", self.rows, self.hidden, split="none"), frozen=self.frozen),)


@dataclass(frozen=True, slots=True)
class Ngrams(Operator):
    """Hashed n-gram tables, each with a projection to the stream (LongCat-Flash-Lite).

    What their look-ups make is as small as the embedding, and in no program.
    """

    title: ClassVar[str] = "n-gram embeddings"
    vocab: int
    hidden: int
    ratio: float
    max_order: int
    splits: int

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Table i has `int(ratio vocab) + 2 i + 1` rows, which keeps the sizes of the hash tables apart."""
        tables = self.splits * (self.max_order - 1)
        width = self.hidden // tables
        rows = int(self.ratio * self.vocab)
        found: list[Weight] = []
        for index in range(tables):
            found.append(table("ngram", rows + 2 * index + 1, width))
            found.extend(row_linear("ngram_projection", width, self.hidden))
        return tuple(found)

    @property
    def idle_elements(self) -> int:
        """All of them: a token reads one row of each table."""
        return sum(weight.elements for weight in self.weights)

    def on_rank(self, tp: int, expert_tp: int) -> Self:
        """As many rows a table as follow from the rank's vocabulary."""
        return replace(self, vocab=rank_vocab(self.vocab, tp))


def token_embedding(architecture: Architecture) -> Embedding:
    """The token table of an architecture."""
    a = architecture
    return Embedding(a.vocab, a.embedding_dim or a.hidden, a.hidden, shared=a.encoder and a.tied)


def positions(architecture: Architecture) -> Positions | None:
    """The learned positions of an architecture, if it has any."""
    rows, source = architecture.learned_positions, architecture.source
    frozen = source is not None and (source.still or (architecture.encoder and source.bands > 0))
    return None if rows is None else Positions(rows, embedded_width(architecture), frozen)


def embedded_width(architecture: Architecture) -> int:
    """Width of what positions are added to."""
    a = architecture
    return a.embedding_dim or a.hidden if a.projects_late else a.hidden


def ngrams(architecture: Architecture) -> tuple[Ngrams, ...]:
    """The n-gram tables of an architecture, if it has any."""
    a, ngram = architecture, architecture.ngram
    return () if ngram is None else (Ngrams(a.vocab, a.hidden, ngram.ratio, ngram.max_order, ngram.splits),)

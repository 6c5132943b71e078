"""How far off answers were when a source was first asked, before anything was fitted to it or changed for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ..catalog.document import Document, read_yaml
from ..catalog.types import Count, Fraction, PositiveOrZero, Strict
from ..catalog.validation import validated
from ..contract import Published
from ..record import dataclass
from .measurements import KINDS, Kind

BlindKind = Kind | Literal["output"]
"""A kind of figure; `output`: tokens of a server under load, which a backtest counts with decoding."""
BLIND_KINDS: tuple[str, ...] = (*KINDS, "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindLine(Strict):
    """One kind of figure of a file, as it was scored then. Errors are shares of the measured value."""

    kind: BlindKind
    rows: Count
    of: str = ""
    """Which of the file's sources, where it is not all of them."""
    median_error: PositiveOrZero | None = None
    p90_error: PositiveOrZero | None = None
    inside: Fraction | None = None
    """Share of measurements inside our ranges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind(Strict):
    """What a file of measurements says under `blind`."""

    asked: str
    of: str
    scores: Sequence[BlindLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindScore(Published):
    """One kind of figure of a file of measurements when it was first asked. Errors are shares of the measured value."""

    asked: str
    """The day."""
    file: str
    of: str
    """What ran."""
    kind: str
    rows: int
    median_error: float | None
    """null: it was not written down."""
    p90_error: float | None
    inside: float | None


def blind_scores(paths: Iterable[Path]) -> tuple[BlindScore, ...]:
    """Read the scores of measurement files, the newest first.

    Raises:
        DataError: a file is missing, no YAML, or says something else under `blind`.
    """
    found = [score for path in paths for score in _scores(path.stem, read_yaml(path))]
    return tuple(sorted(found, key=lambda score: score.asked, reverse=True))


def _scores(file: str, document: Document) -> Iterable[BlindScore]:
    data: Any = document.data
    if not isinstance(data, Mapping) or "blind" not in data:
        return
    said = validated(Blind, data["blind"], document, ("blind",))
    for line in said.scores:
        yield BlindScore(
            asked=said.asked,
            file=file,
            of=line.of or said.of,
            kind=line.kind,
            rows=line.rows,
            median_error=line.median_error,
            p90_error=line.p90_error,
            inside=line.inside,
        )

"""The neutral report: what is said to a person, before any format has laid it out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..record import dataclass

Role = Literal["plain", "strong", "dim", "good", "warn", "bad", "bar"]
"""How a piece of text is meant; a format may colour it, but never says anything by colour alone."""

GLUE = "\u00a0"
"""Stands for a space at which no line is broken, as inside `29.1 GiB (28.3 – 30.9)`."""


def glued(text: str) -> str:
    """Keep a figure and its unit on one line."""
    return text.replace(" ", GLUE)


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text with a role."""

    text: str
    role: Role = "plain"


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of a bar chart: `share` of the full width, 0 to 1."""

    label: str
    value: str
    share: float


@dataclass(frozen=True, slots=True)
class Pair:
    """What one does and what then holds."""

    left: str
    right: Sequence[Span]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A label with what belongs to it: paragraphs, then bars, pairs and items that flow over lines."""

    label: str
    paragraphs: tuple[tuple[Span, ...], ...] = ()
    bars: tuple[Bar, ...] = ()
    pairs: tuple[Pair, ...] = ()
    items: tuple[tuple[Span, ...], ...] = ()
    apart: bool = True
    """Set off from what stands before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; figures are set flush right, `flexible` text may be wrapped, `spare` ones left out."""

    title: str
    figures: bool = False
    flexible: bool = False
    spare: bool = False
    """Left out where there is no room for all columns, the last spare one first."""
    hanging: int = 0
    """By how much the lines of a wrapped cell are set in, below the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text under titled columns."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Span, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbatim:
    """Text to be copied, such as a file: no line of it is broken or changed."""

    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A title with its verdict, a line of context, then sections and tables in the order in which they are read."""

    title: str
    verdict: Span | None = None
    context: tuple[str, ...] = ()
    blocks: tuple[Section | Table | Verbatim, ...] = ()

"""The neutral report: what is said to a person, before any format has laid it out.

Text from outside becomes safe to show as a piece of it is made: no format needs to think of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from ..record import dataclass, fields
from ..text import GLUE as GLUE
from ..text import shown

Json = Mapping[str, Any]
"""An answer, or a part of one, as it is read."""
Meaning = Literal["plain", "label", "figure", "dim", "feasible", "tight", "infeasible"]
"""How a piece of text is meant; a format may colour it, but never says anything by colour alone."""

SIGNS: Mapping[Meaning, str] = {"feasible": "✓", "tight": "!", "infeasible": "✗"}


FILE = "\n\t\u00a0"
"""What a text to be copied keeps of characters that are no signs."""


class _Shown:
    """A record whose texts are made safe to show."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name in (each.name for each in fields(self)):
            value = getattr(self, name)
            if isinstance(value, str):
                if not value.isprintable():
                    object.__setattr__(
                        self, name, shown(value, FILE if isinstance(self, Verbatim) and name == "text" else GLUE)
                    )
            elif isinstance(value, tuple) and value and isinstance(value[0], str):
                object.__setattr__(self, name, tuple(shown(text) for text in value))


def glued(text: str) -> str:
    """`text` with every space as GLUE: a figure and its unit stay on one line."""
    return text.replace(" ", GLUE)


@dataclass(frozen=True, slots=True)
class Phrase(_Shown):
    """A piece of text with a meaning."""

    text: str
    meaning: Meaning = "plain"
    signed: bool = False
    """With the sign of its meaning before the text."""

    @property
    def sign(self) -> str:
        """The sign that says the same as the meaning, empty where none is wanted."""
        return SIGNS.get(self.meaning, "?") if self.signed else ""

    @property
    def whole(self) -> str:
        """The sign and the text, of which either may be missing."""
        return GLUE.join(part for part in (self.sign, self.text) if part)


@dataclass(frozen=True, slots=True)
class Bar(_Shown):
    """A bar of `share` of the full length, 0 to 1, with what it stands for."""

    share: float
    label: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Pair(_Shown):
    """What one does and what then holds."""

    left: str
    right: Sequence[Phrase]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic(_Shown):
    """A label with what belongs to it: paragraphs, then bars, pairs and items that stand side by side."""

    label: str
    paragraphs: tuple[tuple[Phrase, ...], ...] = ()
    bars: tuple[Bar, ...] = ()
    pairs: tuple[Pair, ...] = ()
    items: tuple[tuple[Phrase, ...], ...] = ()
    apart: bool = True
    """Set off from what stands before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(_Shown):
    """A column of a table: of words or `figures`; of `prose`, which may be wrapped."""

    title: str
    figures: bool = False
    prose: bool = False
    spare: bool = False
    """May be left out where there is no room for all columns, the last spare one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of phrases or bars under titled columns."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Phrase | Bar, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbatim(_Shown):
    """Text to be copied, such as a file: no line of it is broken or changed."""

    label: str
    text: str


def lines_of(texts: Iterable[str], meaning: Meaning = "plain") -> tuple[tuple[Phrase, ...], ...]:
    """Texts as paragraphs of a topic, a line each."""
    return tuple((Phrase(text, meaning),) for text in texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading(_Shown):
    """A title with its verdict, and a line of context."""

    title: str
    verdict: Phrase | None = None
    context: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(_Shown):
    """A heading of its own, then topics and tables in the order in which they are read, and what begins anew."""

    title: str
    verdict: Phrase | None = None
    context: tuple[str, ...] = ()
    blocks: tuple[Topic | Table | Verbatim | Heading, ...] = ()

"""The records of data/claims.yaml: what is said where, what to compute, and what must come out for it to be true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from ...catalog.records import built
from ...catalog.store import Catalog
from ...catalog.types import Identifier, Limits, Strict
from ...contract import Published
from ...errors import UsageError, did_you_mean
from ...record import dataclass

Verdict = Literal["holds", "holds under conditions", "does not hold"]
Kind = Literal[
    "parameters",
    "estimate",
    "ratio",
    "devices",
    "prices",
    "offers",
    "flop",
    "device-flop",
    "quotient",
    "optimum",
    "solve",
]
Template = Annotated[str, Limits(min_length=1, max_length=1200)]
"""Text with figures to fill in: `{part.figure}`, see `text`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition(Published, Strict):
    """A document in one language."""

    language: Identifier
    title: Identifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication(Published, Strict):
    """A text that makes claims."""

    id: Identifier
    title: Identifier
    """In English."""
    about: str = ""
    editions: tuple[Edition, ...] = ()
    links: tuple[str, ...] = ()
    """What it cites."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPart(Strict):
    """One thing to compute, or several alike where lists are crossed, and what must come out."""

    name: Identifier
    """By which the texts refer to it."""
    kind: Kind
    label: str = ""
    """What it stands for, in words: a condition under which the claim holds or fails."""
    ask: Mapping[str, Any]
    """What the kind is asked; see `kinds`."""
    like: str = ""
    """An earlier part, whose `ask` this one changes."""
    expect: Mapping[str, Any] | None = None
    """What must come out, in the words of `llmfeas check`; None: only told, not judged."""
    essential: bool = False
    """Without it the claim does not hold at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Strict):
    """A statement with the computations that decide it."""

    id: Identifier
    documents: tuple[Identifier, ...]
    says: Identifier | Template
    parts: tuple[ClaimPart, ...]
    found: Template
    because: Template
    right: str = ""
    """What is right where it does not hold, or only under conditions."""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims(Strict):
    """The whole file."""

    documents: tuple[Publication, ...]
    claims: tuple[Claim, ...]

    def named(self, ids: tuple[str, ...]) -> tuple[Claim, ...]:
        """The claims of these ids in the order of the file, all of them without ids.

        Raises:
            UsageError: there is no claim of an id; near ones are candidates.
        """
        known = {claim.id: claim for claim in self.claims}
        for name in ids:
            if name not in known:
                raise _unknown(name, known)
        return tuple(claim for claim in self.claims if not ids or claim.id in ids)


def _unknown(name: str, known: Mapping[str, Claim]) -> UsageError:
    from difflib import get_close_matches

    from ...text import printable

    near = get_close_matches(name[:60], known, 3, 0.4)
    hint = did_you_mean(near, "'llmfeas claims' lists them.")
    return UsageError("unknown-claim", f"there is no claim {printable(name, 40)!r}.", hint, near)


def all_claims(catalog: Catalog) -> Claims:
    """The claims of the catalog's data."""
    return built(Claims, catalog.raw("claims"))

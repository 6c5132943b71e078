"""Claims answered: each part computed and judged, the verdict drawn, the texts filled with what came out.

A text names figures as `{part.figure}`, `{part.figure.max}`, `{part.figure.low|gib}`.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence

from ...catalog.store import Catalog
from ...check.figures import WORDS
from ...check.requirement import Requirement, WrittenRequirement, end_of, figure_requirement, word_requirement
from ...contract import Published
from ...errors import DataError
from ...ranges import Range
from ...record import dataclass
from ...units import (
    GIB,
    GIGA,
    digits,
    format_bytes,
    format_count,
    format_duration,
    format_flop,
    format_percent,
    format_usd,
)
from .kinds import KINDS, KNOWN, Case, Value
from .records import Claim, ClaimPart, Publication, Verdict

_FIELD = re.compile(r"\{([a-z0-9_-]+)\.([a-z0-9_]+)(?:\.([a-z_]+))?(?:\|([a-z]+))?\}")
MOST_IN_TEXT = 6

FORMATS: Mapping[str, Callable[[float], str]] = {
    "gib": lambda value: format_bytes(value * GIB),
    "count": format_count,
    "flop": format_flop,
    "number": digits,
    "percent": format_percent,
    "usd": format_usd,
    "time": format_duration,
    "whole": lambda value: f"{value:,.0f}",
    "exact": lambda value: digits(value, 5),
    "billion": lambda value: f"{digits(value / GIGA, 4)} billion",
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A case with our judgement of it; None where it is only told."""

    case: Case
    passes: bool | None


Parts = Mapping[str, Sequence[Judged]]


def filled(template: str, parts: Parts) -> str:
    """Fill the figures into a text.

    Raises:
        DataError: the text names a part or figure that there is not.
    """
    return _FIELD.sub(lambda match: _field(parts, *match.groups()), template)


def _field(parts: Parts, part: str, name: str, which: str | None, form: str | None) -> str:
    if part not in parts:
        raise DataError("bad-claim", f"claims.yaml: a text names the part '{part}', which there is not")
    judged = parts[part]
    if name in _COUNTS:
        return _COUNTS[name](judged)
    values = [(one.case.figures.get(name), one.case.label) for one in judged]
    words = [value for value, _ in values if isinstance(value, str)]
    if words:
        return ", ".join(dict.fromkeys(words))
    ends: dict[str, Choice] = {"low": min, "high": max}
    if which in ends:
        numbers = [(getattr(value, which), label) for value, label in values if isinstance(value, Range)]
    else:
        numbers = [(_expected(value), label) for value, label in values if value is not None]
    if not numbers:
        raise DataError("bad-claim", f"claims.yaml: a text names {part}.{name}, which is not known")
    if which in ("least", "most"):
        return (min if which == "least" else max)(numbers)[1]
    written = _writer(name, form)
    figures = [number for number, _ in numbers]
    if which == "span":
        return " to ".join(dict.fromkeys((written(min(figures)), written(max(figures)))))
    choice = (_CHOICES | ends).get(which or "", _first)
    return written(choice(figures))


def _first(figures: list[float]) -> float:
    return figures[0]


Choice = Callable[[list[float]], float]
_CHOICES: dict[str, Choice] = {"min": min, "max": max, "median": statistics.median}


def _expected(value: Value) -> float:
    assert isinstance(value, Range | float | int)
    return value.expected if isinstance(value, Range) else float(value)


def _writer(name: str, form: str | None) -> Callable[[float], str]:
    if form is not None:
        return FORMATS[form]
    known = KNOWN.get(name)
    return digits if known is None else lambda value: known.unit.written(value * known.unit.size)


def _named(judged: Sequence[Judged], passes: bool) -> str:
    labels = [one.case.label for one in judged if one.passes is passes and one.case.label]
    more = f" and {len(labels) - MOST_IN_TEXT} more" if len(labels) > MOST_IN_TEXT else ""
    return ", ".join(labels[:MOST_IN_TEXT]) + more or "none"


_COUNTS: Mapping[str, Callable[[Sequence[Judged]], str]] = {
    "cases": lambda judged: str(len(judged)),
    "passed": lambda judged: str(sum(one.passes is True for one in judged)),
    "failed": lambda judged: str(sum(one.passes is False for one in judged)),
    "holds_for": lambda judged: _named(judged, True),
    "fails_for": lambda judged: _named(judged, False),
}


MOST_NAMED = 12
"""Cases of one part that are named; more are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredClaim(Published):
    """What we say to a claim."""

    id: str
    verdict: Verdict
    says: str
    found: str
    because: str
    holds_for: tuple[str, ...]
    """The cases in which it holds, or the conditions."""
    fails_for: tuple[str, ...]
    right: str | None
    """What is right where it does not hold, or only under conditions."""
    sources: tuple[str, ...]
    documents: tuple[str, ...]
    """Which of them say it, by id."""


@dataclass(frozen=True, slots=True)
class ClaimsResult(Published):
    """The result of replayed claims."""

    claims: tuple[AnsweredClaim, ...]
    documents: tuple[Publication, ...]


def answered(claim: Claim, catalog: Catalog) -> AnsweredClaim:
    """Compute every part of a claim and draw the verdict.

    It holds where every case does; it does not where none does, or where an essential one does not; else it holds
    under conditions, which are the cases that hold.

    Raises:
        DataError: the claim asks or names what there is not.
    """
    judged: dict[str, list[Judged]] = {}
    asks: dict[str, Mapping[str, object]] = {"": {}}
    for part in claim.parts:
        before = {name: [one.case for one in cases_of_part] for name, cases_of_part in judged.items()}
        asks[part.name] = {**asks[part.like], **part.ask}
        cases = list(KINDS[part.kind](asks[part.name], catalog, before))
        if not cases:
            raise DataError("bad-claim", f"claims.yaml: {claim.id}: part {part.name} has no case")
        judged[part.name] = [_judged(part, case) for case in cases]
    verdict = _verdict(claim, judged)
    right = filled(claim.right, judged) if claim.right and verdict != "holds" else None
    return AnsweredClaim(
        id=claim.id,
        verdict=verdict,
        says=claim.says,
        found=filled(claim.found, judged),
        because=filled(claim.because, judged),
        holds_for=_labels(claim, judged, True),
        fails_for=_labels(claim, judged, False),
        right=right,
        sources=claim.sources,
        documents=claim.documents,
    )


def _judged(part: ClaimPart, case: Case) -> Judged:
    if part.expect is None:
        return Judged(case, None)
    for name, raw in part.expect.items():
        requirement = _requirement(name, raw)
        if not requirement.holds(_value(name, case.figures.get(name), requirement)):
            return Judged(case, False)
    return Judged(case, True)


def _requirement(name: str, raw: object) -> Requirement:
    condition = WrittenRequirement(**raw) if isinstance(raw, Mapping) else WrittenRequirement(value=raw)  # type: ignore[arg-type]
    end = condition.at or "expected"
    if name in WORDS:
        return word_requirement(WORDS[name], condition, end)
    return figure_requirement(KNOWN[name], condition, end)


def _value(name: str, value: Value, requirement: Requirement) -> float | str | None:
    if isinstance(value, Range):
        return end_of(value, KNOWN[name], requirement.at)
    return value


def _verdict(claim: Claim, judged: Mapping[str, list[Judged]]) -> Verdict:
    passes = [one.passes for cases in judged.values() for one in cases if one.passes is not None]
    essential = [one.passes for part in claim.parts if part.essential for one in judged[part.name]]
    if all(passes):
        return "holds"
    return "holds under conditions" if any(passes) and all(essential) else "does not hold"


def _labels(claim: Claim, judged: Mapping[str, list[Judged]], passes: bool) -> tuple[str, ...]:
    """Name the cases that hold, or those that do not: a whole part by its label, else what varies in it."""
    named = []
    for part in claim.parts:
        own = [one.case.label for one in judged[part.name] if one.passes is passes]
        if own and len(own) < len(judged[part.name]):
            more = f" and {len(own) - MOST_NAMED} more" if len(own) > MOST_NAMED else ""
            cases = ", ".join(own[:MOST_NAMED]) + more
            named.append(f"{part.label}: {cases}" if part.label else cases)
        elif own:
            named.append(part.label)
    return tuple(label for label in named if label)

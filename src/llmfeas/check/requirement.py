"""What a figure must be, in plain words: `true`, `{max: 22}`, `<= 22`, `{min: 3d, at: worst}`, `560.66e9 +- 0.1 %`; and
what of this no estimate can meet together.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

from ..catalog.types import Strict
from ..errors import UsageError, did_you_mean
from ..ranges import Range
from ..record import dataclass, replace
from ..text import printable
from ..units import parse_fraction
from .figures import FIGURES, WORDS, End, Figure, Word

Scalar = str | int | float | bool
_BOUND = re.compile(r"(?P<sign><=|>=|[<>≤≥])\s*(?P<bound>.+)", re.DOTALL)
_TOLERANCE = re.compile(r"(.+?)\s*(?:\+-|\+/-|±)\s*(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRequirement(Strict):
    """A requirement as it is written as a mapping."""

    min: Scalar | None = None
    max: Scalar | None = None
    value: Scalar | list[Scalar] | None = None
    """What it must be: a word, several, or a number with a tolerance."""
    at: End | None = None
    """Which figure: the expected one, or the pessimistic end of its range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A requirement as read: bounds in the figure's unit, or words."""

    low: float = -math.inf
    high: float = math.inf
    words: tuple[str, ...] = ()
    at: End = "expected"
    text: str
    """As a person says it: `at most 22 GiB`."""

    def holds(self, value: float | str | None) -> bool:
        """Whether a figure or word meets it; what is unknown does not."""
        if value is None:
            return False
        return value in self.words if isinstance(value, str) else self.low <= value <= self.high

    def margin(self, value: float | str | None) -> float | None:
        """The distance to the nearest bound as a share of it, negative where it is broken; None for words."""
        if value is None or isinstance(value, str):
            return None
        distances = [
            *([(self.high - value) / abs(self.high)] if math.isfinite(self.high) and self.high else []),
            *([(value - self.low) / abs(self.low)] if math.isfinite(self.low) and self.low else []),
        ]
        nearest = min(distances, default=None)
        # JSON has no infinity: so far from a bound near zero is far enough
        return None if nearest is None else max(-sys.float_info.max, min(nearest, sys.float_info.max))


def end_of(value: Range | None, figure: Figure, at: End) -> float | None:
    """The expected value of a range, or its pessimistic end."""
    if value is None:
        return None
    if at == "expected":
        return value.expected
    return value.high if figure.worst == "high" else value.low


def word_requirement(word: Word, condition: WrittenRequirement, at: End) -> Requirement:
    """Read what a word must be.

    Raises:
        UsageError: a word that it can never be, or bounds.
    """
    if condition.min is not None or condition.max is not None:
        words = ", ".join(word.words)
        raise UsageError("bad-expectation", f"{word.name} is a word, not a number", f"It is one of {words}.")
    if condition.value is None or condition.value == []:
        raise UsageError("bad-expectation", f"{word.name}: nothing is expected", f"Write one of {_listed(word)}.")
    if condition.at == "worst" and word.name != "fits":
        raise UsageError("bad-expectation", f"{word.name} is a word and has no worst end", "Leave out 'at'.")
    values = condition.value if isinstance(condition.value, list) else [condition.value]
    wanted = tuple(_spelled(value) for value in values)
    for name in wanted:
        if name not in word.words:
            from difflib import get_close_matches

            near = get_close_matches(name[:40], word.words, 2)
            hint = did_you_mean(near, f"Write one of {_listed(word)}.")
            raise UsageError("bad-expectation", f"{word.name} is never '{printable(name, 40)}'", hint, near)
    return Requirement(words=wanted, at=at if word.name == "fits" else "expected", text=" or ".join(wanted))


def _spelled(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _listed(word: Word) -> str:
    return ", ".join(word.words)


def figure_requirement(figure: Figure, condition: WrittenRequirement, at: End) -> Requirement:
    """Read the bounds of a number.

    Raises:
        UsageError: no number, a unit that does not fit, an exact value that no estimate meets, bounds that exclude
            each other.
    """
    condition = _with_bound(condition)
    if isinstance(condition.value, list):
        raise UsageError("bad-expectation", f"{figure.name} is a number, not a list", "Write {min: ..., max: ...}.")
    written = figure.unit.written
    size = figure.unit.size
    texts = []
    low, high = -math.inf, math.inf
    if condition.value is not None:
        low, high, text = _near(figure, condition.value)
        texts.append(text)
    if condition.min is not None:
        least = figure.unit.read(condition.min, figure.name)
        low = max(low, least)
        texts.append(f"at least {written(least * size)}")
    if condition.max is not None:
        most = figure.unit.read(condition.max, figure.name)
        high = min(high, most)
        texts.append(f"at most {written(most * size)}")
    if not texts:
        raise UsageError("bad-expectation", f"{figure.name}: nothing is expected", "Write {max: ...} or {min: ...}.")
    if low > high:
        text = f"{figure.name}: {' and '.join(texts)} exclude each other"
        raise UsageError("contradiction", text, "No figure meets both.")
    return Requirement(low=low, high=high, at=at, text=" and ".join(texts))


def _with_bound(condition: WrittenRequirement) -> WrittenRequirement:
    """A bound that is written as a sign, `<= 4h`, as the mapping says it, `{max: 4h}`."""
    match = _BOUND.fullmatch(condition.value.strip()) if isinstance(condition.value, str) else None
    if match is None:
        return condition
    if match["sign"] in ("<", "<=", "≤"):
        return replace(condition, value=None, max=match["bound"])
    return replace(condition, value=None, min=match["bound"])


def _near(figure: Figure, value: Scalar) -> tuple[float, float, str]:
    match = _TOLERANCE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        number = figure.unit.read(value, figure.name)
        if figure.unit.name or not number.is_integer():
            hint = f"Write '{printable(value, 30)} +- 1 %', or {{max: {printable(value, 30)}}}."
            raise UsageError("bad-expectation", f"{figure.name} is never exactly {printable(value, 40)}", hint)
        return number, number, f"{number:,.0f}"
    number = figure.unit.read(match[1], figure.name)
    spread = match[2].strip()
    if spread.endswith("%"):
        off = abs(number) * parse_fraction(spread, f"the tolerance of {figure.name}", 0, 10)
    else:
        off = figure.unit.read(spread, f"the tolerance of {figure.name}")
    # as typed: a tolerance of a thousandth says nothing beside a figure that is rounded to a hundredth
    typed = match[1].strip()
    shown = figure.unit.written(number * figure.unit.size) if figure.unit.name else printable(typed, 30)
    return number - off, number + off, f"{shown} ± {spread}"


Named = Sequence[tuple[str, Requirement]]

SETTLED: Mapping[str, tuple[str, ...]] = {
    "memory": ("fits", "tight"),
    "deadline": ("ok", "not_asked"),
    "budget": ("ok", "not_asked"),
    "software": ("supported", "limited"),
}
"""What the parts of a verdict can be where it is feasible or tight."""


def contradiction(expected: Named) -> tuple[str, str] | None:
    """Find an expectation that contradicts another: its name, and a sentence; None where all can hold."""
    return next((clash for clash in (*_figures(expected), *_words(expected))), None)


def _figures(expected: Named) -> Iterator[tuple[str, str]]:
    """Compare the bounds of each quantity; its pessimistic end is at least as bad as its expected value."""
    groups: dict[str, list[tuple[str, Requirement]]] = {}
    for name, requirement in expected:
        if name in FIGURES:
            groups.setdefault(FIGURES[name].quantity or name, []).append((name, requirement))
    for group in groups.values():
        for index, (name, requirement) in enumerate(group):
            for other, earlier in group[:index]:
                if not _compatible(name, requirement, other, earlier):
                    yield name, f"{name} {requirement.text} contradicts {other} {earlier.text}"


def _compatible(name: str, one: Requirement, other_name: str, other: Requirement) -> bool:
    low, high = _bounds(name, one)
    other_low, other_high = _bounds(other_name, other)
    if one.at == other.at:
        return max(low, other_low) <= min(high, other_high)
    if one.at == "expected":
        low, high, other_low, other_high = other_low, other_high, low, high
    grows = FIGURES[name].worst == "high"
    return high >= other_low if grows else low <= other_high


def _bounds(name: str, requirement: Requirement) -> tuple[float, float]:
    size = FIGURES[name].unit.size
    return (
        requirement.low * size if math.isfinite(requirement.low) else requirement.low,
        requirement.high * size if math.isfinite(requirement.high) else requirement.high,
    )


def _words(expected: Named) -> Iterator[tuple[str, str]]:
    possible = {name: set(word.words) for name, word in WORDS.items()}
    by: dict[str, str] = {}
    for name, requirement in expected:
        if name not in WORDS:
            continue
        for about, words in _implied(name, requirement):
            if not possible[about] & words:
                yield name, f"{name} {requirement.text} contradicts {by[about]}"
            possible[about] &= words
            by.setdefault(about, f"{name} {requirement.text}")


def _implied(name: str, requirement: Requirement) -> Iterator[tuple[str, set[str]]]:
    """Say what an expectation leaves possible, of itself and of the words that follow from it."""
    words = set(requirement.words)
    if name != "fits":
        yield name, words
    elif words == {"true"}:
        yield "memory", {"fits"} if requirement.at == "worst" else {"fits", "tight"}
    elif words == {"false"}:
        yield "memory", {"exceeds", "tight"} if requirement.at == "worst" else {"exceeds"}
    if name == "status" and words <= {"feasible", "tight"}:
        for about, left in SETTLED.items():
            yield about, {"fits"} if about == "memory" and words == {"feasible"} else set(left)

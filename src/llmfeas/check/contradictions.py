"""Expectations of one scenario that no estimate can meet together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from .figures import FIGURES, WORDS
from .requirement import Requirement

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

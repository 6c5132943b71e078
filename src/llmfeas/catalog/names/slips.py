"""Slips of the keyboard in a name: a letter too few, too many or another, two changed about, two words without a space.

A word that some name has is none (`llava` is no `llama`), nor is another letter in a short word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

FEWEST_LETTERS: Final = 4
"""Shorter words are too near to others; of those that are just so long only letters changed about are a slip."""

SURE_LETTERS: Final = 6
"""A word of as many may have another letter in a place."""


def mended(words: tuple[str, ...], known: Collection[str]) -> tuple[str, ...]:
    """The words, each that is unknown as the only known one, or two, that it is a slip of; empty: nothing to mend."""
    result: list[str] = []
    numbered = any(word[0].isdigit() for word in words)  # a version or a size beside a word says that it is meant
    for word in words:
        if word in known or not word.isalpha():
            result.append(word)
            continue
        meant = _meant(word, known) or (_with_another_letter(word, known) if numbered else set())
        if len(meant) != 1:
            return ()
        result.extend(meant.pop())
    return () if tuple(result) == words else tuple(result)


def _meant(word: str, known: Collection[str]) -> set[tuple[str, ...]]:
    if len(word) < FEWEST_LETTERS:
        return set()
    one: set[tuple[str, ...]] = {(other,) for other in known if other.isalpha() and _slip(word, other)}
    return one or {pair for pair in _parts(word) if pair[0] in known and pair[1] in known}


def _slip(word: str, other: str) -> bool:
    """Whether one is the other with a letter left out, put in, or changed about with the next."""
    longer = len(word) != len(other)
    if len(other) < FEWEST_LETTERS + longer or abs(len(word) - len(other)) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))
    if not longer:
        return word[at : at + 2] == other[at : at + 2][::-1] and word[at + 2 :] == other[at + 2 :]
    short, long = sorted((word, other), key=len)
    return short[at:] == long[at + 1 :]


def _with_another_letter(word: str, known: Collection[str]) -> set[tuple[str, ...]]:
    """The words that have another letter in one place behind the first."""
    if len(word) < SURE_LETTERS:
        return set()
    alike = (other for other in known if len(other) == len(word) and other[0] == word[0] and other.isalpha())
    return {(other,) for other in alike if sum(a != b for a, b in zip(word, other, strict=True)) == 1}


def _parts(word: str) -> Iterator[tuple[str, str]]:
    """Two words of which each has letters enough, or one that is the last letter alone (`deepseekr`)."""
    for at in range(FEWEST_LETTERS - 1, len(word)):
        yield word[:at], word[at:]

"""The levels of a walk that no other one at the same place exceeds everywhere: few of those that it marks."""

from __future__ import annotations

from collections.abc import Iterable

from ..autograd.storage import FIELD_BITS, FIELDS, MONOMIALS
from .candidates import total_of

_SIGNS = sum(1 << FIELD_BITS * i + FIELD_BITS - 1 for i in range(FIELDS + MONOMIALS + 1))
"""The highest bit of each field of a total, which no coefficient reaches: of the ten fields of the sum, and of those of
the gradients up to the one that counts experts.
"""

MOST_TRIES = 32
"""With how many others a level is compared: one too many does less harm than the search for what hides it."""

Levels = dict[int, int]
"""Packed levels by what decides of each of them (`total_of`)."""

Places = dict[tuple[str, int], Levels]
"""Levels by the moment and the place at which they stood."""


def undominated(marks: Iterable[tuple[int, str, int]]) -> Places:
    """The levels that can be the highest, place by place."""
    places: Places = {}
    for level, moment, place in marks:
        places.setdefault((moment, place), {})[total_of(level)] = level
    return {place: _undominated(levels) for place, levels in places.items()}


def _undominated(levels: Levels) -> Levels:
    """The levels that none of a few others reaches or exceeds in every coefficient, the largest first.

    All fields are compared at once: with the highest bit of each field set in advance, a difference keeps it where the
    field of `other` is at least as large, and loses it by a borrow, which never goes beyond that bit, where it is less.
    """
    front: Levels = {}
    above: list[int] = []
    for total in sorted(levels, reverse=True):
        for place, other in enumerate(above):
            if (other - total) & _SIGNS == _SIGNS:
                # What hides one level tends to hide the next.
                above[0], above[place] = other, above[0]
                break
        else:
            front[total] = levels[total]
            if len(above) < MOST_TRIES:
                above.append(total | _SIGNS)
    return front

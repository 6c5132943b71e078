"""From one symbolic walk of a few layers to every level of any depth, batch and length.

Levels are linear in the number of repeated layers, and a walk of three periods shows what one more adds to each; sizes
are symbolic, so each level is a polynomial; levels that another one exceeds everywhere are dropped.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import groupby

from ..record import dataclass
from .inventory import Inventory, extrapolated_inventory, inventory_of
from .moments import Candidate, Moments
from .pattern import layer_kinds, repeated_pattern, telling_places
from .setup import Setup
from .shared import first_layers
from .step import Mark, Walked
from .storage import (
    ACTIVATIONS,
    ARRIVING,
    COMPONENT_BITS,
    FIELD_BITS,
    FIELD_MASK,
    GRADIENTS,
    HOST,
    LOGITS,
    MONOMIALS,
    WORKSPACE,
    packed_fields,
)

_COMPONENT_MASK = (1 << COMPONENT_BITS) - 1
_SIGNS = sum(1 << FIELD_BITS * i + FIELD_BITS - 1 for i in range(MONOMIALS + 1))


@lru_cache(maxsize=1024)
def training_moments(setup: Setup) -> Moments:
    """Every moment that can be the peak of a training step, as polynomials in micro-batch and length."""
    kinds = layer_kinds(setup)
    prefix, period = repeated_pattern(kinds)
    periods, rest = divmod(setup.depth - prefix, period)
    for walked_periods in (3, 4):
        if periods <= walked_periods:
            break
        depth = prefix + walked_periods * period + rest
        walk = first_layers(setup, depth)
        head = prefix + period
        added = _added(walk, head, period)
        if added is not None:
            times = periods - walked_periods
            places = telling_places(kinds[:depth]) - set(range(head + 1, head + 1 + period))
            marks = _extrapolated(walk, places, head, added, times)
            grown = extrapolated_inventory(inventory_of(walk.weights), added.inventory, times)
            start, kept, end = (
                level + more * times
                for level, more in ((walk.start, added.built), (walk.kept, added.held), (walk.end, added.done))
            )
            return _moments(marks, start, kept, end, grown)
    walk = first_layers(setup, setup.depth)
    places = telling_places(kinds)
    marks = [mark for mark in walk.marks if _index(mark) in places]
    return _moments(marks, walk.start, walk.kept, walk.end, inventory_of(walk.weights))


@dataclass(frozen=True, slots=True)
class _Added:
    """What one more period of layers in the midst adds to packed levels."""

    built: int
    """Before the step: its weights."""
    passed: int
    """Later in forward: also what it keeps."""
    held: int
    """In backward before it is reached: also what is kept after autocast's region."""
    done: int
    """After its backward: its weights and their gradients."""
    inventory: Inventory


def _added(walk: Walked, head: int, period: int) -> _Added | None:
    """Compare the second and the third period, whose first layer is `head` + 1; None where they do not run alike."""
    places = _by_place(walk.marks)
    middle = range(head + 1, head + 1 + period)
    forward = _difference(places, [(place, place + period) for place in middle])
    backward = _difference(places, [(~place, ~(place + period)) for place in middle])
    if forward is None or backward is None:
        return None
    third = range(head + 1 + period, head + 1 + 2 * period)
    weights = [weight for weight in walk.weights if weight.place in third]
    built = walk.built[third.stop - 1] - walk.built[third.start - 1]
    done = built + sum(weight.gradient for weight in weights)
    return _Added(built, built + forward, done + backward, done, inventory_of(weights))


def _difference(places: dict[int, list[Mark]], twins: list[tuple[int, int]]) -> int | None:
    """Give by how much the levels at each second place exceed those at the first; None where that is not clear.

    A few may differ: what is made or dies on the way to a first or last layer that is unlike the others.
    """
    found: Counter[int] = Counter()
    for one, other in twins:
        first, second = places.get(one, []), places.get(other, [])
        if len(first) != len(second):
            return None
        found.update(b[0] - a[0] for a, b in zip(first, second, strict=True))
    difference, times = found.most_common(1)[0] if found else (0, 0)
    return difference if 2 * times > found.total() else None


def _index(mark: Mark) -> int:
    return ~mark[2] if mark[2] < 0 else mark[2]


def _by_place(marks: list[Mark]) -> dict[int, list[Mark]]:
    return {place: list(group) for place, group in groupby(sorted(marks, key=_place), key=_place)}


def _place(mark: Mark) -> int:
    return mark[2]


def _extrapolated(walk: Walked, places: frozenset[int], head: int, added: _Added, times: int) -> list[Mark]:
    """Levels of the full depth: places up to `head` counted from the start, the others from the end."""
    marks: list[Mark] = []
    for level, moment, place in walk.marks:
        index = ~place if place < 0 else place
        if index not in places:
            continue
        if index <= head:
            more = added.done if place < 0 else added.built
        else:
            more = added.held if place < 0 else added.passed
        marks.append((level + more * times, moment, place))
    return marks


def _total(level: int) -> int:
    """Packed sum of all components but weights and gradients, with the gradients as a seventh field."""
    packed = 0
    for component in (ARRIVING, ACTIVATIONS, LOGITS, WORKSPACE):
        packed += level >> component & _COMPONENT_MASK
    return packed | (level >> GRADIENTS & FIELD_MASK) << COMPONENT_BITS


def _undominated(levels: list[tuple[int, int]]) -> list[int]:
    """Drop the levels that another one reaches or exceeds in every coefficient."""
    front: list[tuple[int, int]] = []
    for entry in sorted(levels, reverse=True):
        total = entry[0]
        for place, (other, _) in enumerate(front):
            if ((other | _SIGNS) - total) & _SIGNS == _SIGNS:
                # What hides one level tends to hide the next.
                front[0], front[place] = front[place], front[0]
                break
        else:
            front.append(entry)
    return [level for _, level in front]


def _moments(marks: list[Mark], start: int, kept: int, end: int, inventory: Inventory) -> Moments:
    by_moment: dict[str, list[tuple[int, int]]] = {}
    for level, moment, _ in marks:
        by_moment.setdefault(moment, []).append((_total(level), level))
    return Moments(
        candidates=tuple(
            _candidate(level, moment) for moment, levels in by_moment.items() for level in _undominated(levels)
        ),
        start=_candidate(start, "forward"),
        kept=_candidate(kept, "forward"),
        end=_candidate(end, "optimizer"),
        gradient_bytes=end >> GRADIENTS & FIELD_MASK,
        weight_bytes=start & FIELD_MASK,
        inventory=inventory,
        streamed=packed_fields(kept, HOST),
    )


def _candidate(level: int, moment: str) -> Candidate:
    parts = tuple(packed_fields(level, component) for component in (ARRIVING, ACTIVATIONS, LOGITS, WORKSPACE))
    total = tuple(sum(column) for column in zip(*parts, strict=True))
    return Candidate(moment, level >> GRADIENTS & FIELD_MASK, total, parts)

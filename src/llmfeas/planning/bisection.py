"""Exact inversion of a monotone yes-or-no question over integers."""

from __future__ import annotations

from collections.abc import Callable


def largest(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """The largest n in [low, high] for which `holds`; None where it fails at `low`.

    Assumes that `holds` is true up to some n and false beyond. Doubles first, so that small answers cost little.
    """
    if not holds(low):
        return None
    good, step = low, 1
    while good < high:
        tried = min(good + step, high)
        if not holds(tried):
            return _between(holds, good, tried)
        good, step = tried, step * 2
    return good


def smallest(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest n in [low, high] for which `holds`; None where it fails at `high`. Assumes false, then true."""
    if holds(low):
        return low
    bad, step = low, 1
    while bad < high:
        tried = min(bad + step, high)
        if holds(tried):
            return _between(lambda n: not holds(n), bad, tried) + 1
        bad, step = tried, step * 2
    return None


def _between(holds: Callable[[int], bool], good: int, bad: int) -> int:
    while bad - good > 1:
        middle = (good + bad) // 2
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good

"""Seconds of a mixed step from what is known apart: a step that decodes, and one that reads prompts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from .server import StepSeconds

Two = Callable[[float, float], float]
"""Seconds of (decoding sequences, mean cached tokens), or of (prompt tokens, mean tokens that each attends to)."""

GROWTH: Final = 1.4
"""Ratio of neighbouring sizes at which a function is asked."""


@lru_cache(maxsize=64)
def _sizes(largest: float) -> list[float]:
    sizes = [1.0, 2.0]
    while sizes[-1] < largest:
        sizes.append(min(largest, max(sizes[-1] + 1, sizes[-1] * GROWTH)))
    return sizes


def sampled(function: Two, largest: float, second: float) -> Two:
    """A function that is asked few times and interpolated: linear between sizes, linear in the second argument.

    `largest` first argument, `second` a typical second one; beyond both it goes on straight, or level where it falls:
    a scan writes its state seldomer in longer prompts, and no prompt is read in less than no time.
    """
    sizes = _sizes(largest)
    last = len(sizes) - 1
    lines: list[tuple[float, float] | None] = [None] * len(sizes)
    pieces: list[tuple[float, ...] | None] = [None] * len(sizes)

    def line(place: int) -> tuple[float, float]:
        """Base and slope at a size."""
        found = lines[place]
        if found is None:
            typical = function(sizes[place], second)
            base = min(typical, function(sizes[place], 0.0))
            found = lines[place] = base, (typical - base) / second
        return found

    def piece(place: int) -> tuple[float, ...]:
        """Where a piece begins, its width, and base and slope there with what they gain; asked for when needed."""
        (low, slope), (high, steeper) = line(place - 1), line(place)
        found = pieces[place] = (
            sizes[place - 1],
            sizes[place] - sizes[place - 1],
            low,
            high - low,
            slope,
            steeper - slope,
        )
        return found

    def found(size: float, with_: float) -> float:
        place = bisect_right(sizes, size, 1, last)
        begin, width, low, rise, slope, steepening = pieces[place] or piece(place)
        share = (size - begin) / width
        return low + share * rise + with_ * (slope + share * steepening)

    return found


def mixed(decode: Two, prefill: Two) -> StepSeconds:
    """A step that decodes and reads prompts at once: weights are read once, all tokens multiply together.

    The tokens of both pass through the layers as prompt tokens do, no faster than decoding alone; caches are read on
    top (Sarathi-Serve: what decoding adds to a step that is bound by compute is small).
    """

    def seconds(sequences: float, cached: float, tokens: float, attended: float) -> float:
        if tokens <= 0.0:
            return decode(sequences, cached)
        if sequences <= 0.0:
            return prefill(tokens, attended)
        alone, together = decode(sequences, 0.0), tokens + sequences
        return max(alone, prefill(together, attended * tokens / together)) + decode(sequences, cached) - alone

    return seconds

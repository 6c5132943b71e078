"""Seconds of a mixed step from what is known apart: a step that decodes, and one that reads prompts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from .server import Speculation, StepSeconds

Two = Callable[[float, float], float]
"""Seconds of (decoding sequences, mean cached tokens), or of (prompt tokens, mean tokens that each attends to)."""

GROWTH: Final = 1.4
"""Ratio of neighbouring sizes at which a function is asked."""


def sampled(function: Two, largest: float, second: float) -> Two:
    """A function that is asked few times and interpolated: linear between sizes, linear in the second argument.

    `largest` first argument, `second` a typical second one; beyond both it goes on straight.
    """
    sizes = [1.0, 2.0]
    while sizes[-1] < largest:
        sizes.append(min(largest, max(sizes[-1] + 1, sizes[-1] * GROWTH)))
    known: list[tuple[float, float] | None] = [None] * len(sizes)

    def line(place: int) -> tuple[float, float]:
        """Base and slope at a size, asked for when a step comes near it."""
        found = known[place]
        if found is None:
            base = function(sizes[place], 0.0)
            found = known[place] = base, (function(sizes[place], second) - base) / second
        return found

    def found(size: float, with_: float) -> float:
        place = min(max(bisect_right(sizes, size), 1), len(sizes) - 1)
        low, slope = line(place - 1)
        high, steeper = line(place)
        share = (size - sizes[place - 1]) / (sizes[place] - sizes[place - 1])
        return low + share * (high - low) + with_ * (slope + share * (steeper - slope))

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


def speculated(step: StepSeconds, speculation: Speculation, draft_seconds: Callable[[float], float]) -> StepSeconds:
    """A step that drafts tokens one after the other and verifies them and one more at once.

    `draft_seconds`: of one drafted token of some sequences. Verifying multiplies with tokens + 1 positions a sequence
    and reads its cache once (Leviathan et al. 2023).
    """
    positions = speculation.tokens + 1

    def seconds(sequences: float, cached: float, tokens: float, attended: float) -> float:
        if sequences <= 0.0:
            return step(sequences, cached, tokens, attended)
        caches = step(sequences, cached, 0.0, 0.0) - step(sequences, 0.0, 0.0, 0.0)
        verified = step(sequences * positions, 0.0, tokens, attended) + caches
        return verified + speculation.tokens * draft_seconds(sequences)

    return seconds

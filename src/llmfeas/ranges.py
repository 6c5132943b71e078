"""Figures with a low and a high end; the interval is meant to hold 80 % of real measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

from .contract import Published
from .record import dataclass

TENTH: Final = 0.1
"""Share of cases beyond each end."""
NINETIETH: Final = 1.2815515655446004
"""The percentile of the normal distribution that bounds it."""
SLOPE: Final = NINETIETH / math.sqrt(2)
HEIGHT: Final = 1 / math.sqrt(math.pi)
"""The slope of half an error function at 0."""
CELLS: Final = 1 << 24
"""Parts of a range's width to which the ends of a mixed one are told."""
NEAR, MOST_STEPS = 1e-11, 100
"""Share of that width below which a step is the last one, and steps that are taken at most."""
FAR: Final = 100.0
"""Where a wait that grows without end is drawn, as a multiple of the expected one or, if that is less, of one."""


@dataclass(frozen=True, slots=True)
class Range(Published):
    """`low <= expected <= high`, all in the same unit."""

    low: float
    expected: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Range:
        """The range of a figure that is known without error."""
        return cls(value, value, value)

    @classmethod
    def around(cls, expected: float, factor: float) -> Range:
        """Spread a positive figure by a factor to both sides (`factor >= 1`)."""
        return cls(expected / factor, expected, expected * factor)

    def scaled(self, factor: float) -> Range:
        """Multiply by a non-negative number."""
        return Range(self.low * factor, self.expected * factor, self.high * factor)

    def shifted(self, offset: float) -> Range:
        """Add a number that is known without error."""
        return Range(self.low + offset, self.expected + offset, self.high + offset)

    def at_least(self, floor: float) -> Range:
        """Raise to a floor what is below it."""
        return Range(max(self.low, floor), max(self.expected, floor), max(self.high, floor))

    def at_most(self, ceiling: float) -> Range:
        """Lower to a ceiling what is above it."""
        return Range(min(self.low, ceiling), min(self.expected, ceiling), min(self.high, ceiling))

    def inverted(self, numerator: float = 1.0) -> Range:
        """Divide a number by this range: what is low becomes high."""
        return Range(numerator / self.high, numerator / self.expected, numerator / self.low)

    def mixed(self, other: Range, share: float) -> Range:
        """The range of a figure that is `other` in a share of all cases: each end passes a tenth of them all."""
        if self == other or not 0.0 < self.low <= self.high:
            return self

        both = (1 - share, self._logs()), (share, other._logs())
        width = math.log(min(self.low, other.low)), math.log(max(self.high, other.high))
        least = _passed_at(both, TENTH, math.log(self.low), *width)
        most = _passed_at(both, 1 - TENTH, math.log(self.high), *width)
        return Range(min(self.expected, math.exp(least)), self.expected, max(self.expected, math.exp(most)))

    def share_above(self, limit: float) -> float:
        """The share of all cases that lie above a limit."""
        return 1.0 - _passed(self._logs(), math.log(limit))

    def _logs(self) -> Logs:
        low, expected, high = math.log(self.low), math.log(self.expected), math.log(self.high)
        return expected, expected - low, high - expected

    def over(self, other: Range) -> Range:
        """The ratio of two figures whose errors are independent: their spreads add as squares of logarithms."""
        spread = math.log(self.high / self.low) / 2 if self.low > 0 else 0.0
        other_spread = math.log(other.high / other.low) / 2 if other.low > 0 else 0.0
        return Range.around(self.expected / other.expected, math.exp(math.hypot(spread, other_spread)))


Logs = tuple[float, float, float]
"""The logarithm of what is expected, and how far the ends are from it."""


LoadBound = Literal["compute", "queue", "max_num_seqs", "pool"]
"""What slow first tokens wait for most: their own prompt, the prompts of others, a place among the sequences of the
batch, or room in the cache."""


@dataclass(frozen=True, slots=True)
class Wait(Published):
    """A range whose high end may be none: as slow as that it grows and grows."""

    low: float
    expected: float
    high: float | None
    """Null: no end."""

    @property
    def shown(self) -> Range:
        """The range with a far end in place of none, to compare and to draw."""
        high = FAR * max(1.0, self.expected) if self.high is None else self.high
        return Range(self.low, self.expected, high)


def _passed_at(parts: Sequence[tuple[float, Logs]], below: float, value: float, low: float, high: float) -> float:
    """The logarithm from `low` to `high` that a share of all cases is below, looked for from `value` on; `parts`:
    shares of cases, each with their figure.

    Newton's steps, and halvings where one would lead out of what is left. Told to one of CELLS of the whole width, so
    that the last digits do not hang on the way there.
    """
    begin, width = low, high - low
    for _ in range(MOST_STEPS):
        passed, slope = -below, 0.0
        for share, (expected, nearer, farther) in parts:
            far = value - expected
            spread = nearer if far < 0 else farther
            if spread:
                place = far / spread * SLOPE
                passed += share * (0.5 + math.erf(place) / 2)
                slope += share * SLOPE / spread * HEIGHT * math.exp(-place * place)
            else:
                passed += share * (far > 0)
        low, high = (value, high) if passed < 0 else (low, value)
        step = passed / slope if slope else width
        near = abs(step) <= NEAR * width
        value = value - step if near or low < value - step < high else (low + high) / 2
        if near or high - low <= NEAR * width:
            break
    cell = min(int((value - begin) / width * CELLS), CELLS - 1) if width else 0
    return begin + (cell + 0.5) / CELLS * width


def _passed(logs: Logs, value: float) -> float:
    """The share of cases below a logarithm: a normal distribution of logarithms, of its own width to each side."""
    expected, below, above = logs
    far = value - expected
    spread = below if far < 0 else above
    return 0.5 + math.erf(far / spread * SLOPE) / 2 if spread else float(far > 0)

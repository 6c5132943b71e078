"""Prompts beside a batch: when a first token comes, and how prompts of others lengthen the steps of those who decode.

Prompts that come at random are read by the step after the one in which they came (a gated queue): a step takes V
seconds where none came, A + a N where N did. Its mean is (A - q (A - V)) / (1 - r), r = rate a, q the share of steps
without prompts; long steps gather more prompts, so they come in rows. Prompts that take the place of a finished
request come at the end of a step, as many as have ended, however long it took.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate
from operator import mul

from ..record import dataclass
from .batch import Batch, Cycle
from .points import compound_quantile, gamma_quantile

ROUNDS, DAMPED = 8, 0.6
"""Steps of the fixed point of mean and spread, and the part of each that is taken."""
NEARLY = 0.97
"""The largest share of time that reading is taken to need: beyond it all grows without end."""
TABLE, MOST = 24, 200
"""Numbers of prompts in a step whose lengths are kept, and whose chances are, at most."""
LEAST_LOG = -690.0
"""Logarithm of a chance that a float holds with digits to spare."""


def joining(rate: float, mean: float, variance: float, even: float) -> list[float]:
    """The distribution of prompts that come during a step whose length has a mean and a variance.

    `even`: variance / mean of the arrivals in a fixed time, 1 for random ones. Binomial or negative binomial.
    """
    count = rate * mean
    spread = max(even, 1 - count) + rate * variance / mean
    if abs(spread - 1) < 1e-6:
        spread = 1 + 1e-6
    shape = count / (spread - 1)
    factor = (spread - 1) / spread
    none = -shape * math.log(spread)
    if none < LEAST_LOG:  # so many come that no float holds the chance of none
        return [0.0] * (MOST - 1) + [1.0]
    masses = [math.exp(none)]
    total = masses[0]
    while total < 0.9995 and masses[-1] > 0.0 and len(masses) < MOST:
        masses.append(max(0.0, masses[-1] * factor * (1 + (shape - 1) / len(masses))))
        total += masses[-1]
    return masses


def _toward(value: float, found: float) -> float:
    """Take a damped step of a fixed point, at most to half or twice as much."""
    return min(2 * value, max(value / 2, value + DAMPED * (found - value)))


class PromptReading:
    """One replica with a steady batch, in which prompts take the places of finished requests."""

    def __init__(self, batch: Batch, cycle: Cycle) -> None:
        self.batch = batch
        self.cycle = cycle
        self.own = batch.lengths.computed
        self.variation = batch.lengths.prompt_spread.squared_variation
        self.plain = cycle.plain_seconds
        self.joining = cycle.rate * cycle.seconds * (1 - 1 / cycle.running)
        self.next_seconds = 0.0
        """Of the step that is put together already when a request comes at any time."""

    def seconds(self, tokens: float) -> float:
        """The time until prompt tokens are read, from the start of a step."""
        cycle = self.cycle
        if tokens <= 0.0:
            return self.plain
        full, rest = divmod(tokens, cycle.full_tokens)
        last = self.batch.reading(cycle.decoding, rest) if rest >= 1.0 else 0.0
        return full * cycle.full_seconds + last

    def first_token(self, u: tuple[float, ...], own: float) -> tuple[float, float]:
        """The time to the first token at a point of the cube, and how much of it is reading."""
        reading = self.seconds(own + compound_quantile(u[3], self.joining, self.own, self.variation))
        return reading, reading

    def token_seconds(self, share: float, steps: float, reading: float) -> float:
        """The mean step that a request sees while it is decoded, after a reading of some length."""
        each = self.cycle.prompt_seconds
        return self.plain + compound_quantile(share, steps * self.joining, each, self.variation) / steps

    def gap_seconds(self, share: float) -> float:
        """A quantile of the time between two tokens of a request."""
        return self.plain + compound_quantile(share, self.joining, self.cycle.prompt_seconds, self.variation)


@dataclass(frozen=True, slots=True)
class _Added:
    """The seconds that prompts add to the steps of a request."""

    waiting: float
    """Of prompts that came while its own was read."""
    most: float
    """Of all, at most."""
    later: float
    """Of prompts that come later: the mean, and its variance."""
    variance: float

    def seconds(self, later: float) -> float:
        """All of them where those that come later add so much."""
        return min(self.most, later + self.waiting)


class RandomPromptReading(PromptReading):
    """The same with prompts that come at a rate, at any time, into the places that are free."""

    def __init__(self, batch: Batch, cycle: Cycle, rate: float, *, idle: bool = False) -> None:
        super().__init__(batch, cycle)
        self.rate = rate
        self.idle = idle
        self.even = 1 / batch.server.replicas
        """Replicas that get each request in turn, or when least loaded, get them at more even times."""
        self.room = (batch.most.running - cycle.running) * self.own if batch.steps else math.inf
        self.mixed = batch.server.policy.mixed
        self._steps()
        if batch.server.ahead and not idle:
            self.next_seconds = self.mean

    def _steps(self) -> None:
        """Find the distribution of steps by fixed point: the prompts of one come during the one before."""
        rate, variation = self.rate, self.variation
        lasts = [self.seconds(self.own * count) for count in range(3)]
        lasts[0] = lasts[0] or lasts[1]
        least, slope = min(lasts[:2]), max(0.0, lasts[2] - lasts[1])
        load = min(NEARLY, rate * slope)
        mean = lasts[0] / (1 - load)
        variance = max(1e-18, slope * slope * rate * (self.even + variation) * mean / (1 - load * load))
        masses: list[float] = []
        for _ in range(ROUNDS):
            masses = joining(rate, mean, variance, self.even)
            while len(lasts) < min(len(masses), TABLE):
                lasts.append(self.seconds(self.own * len(lasts)))
            slope = max(0.0, (lasts[-1] - lasts[1]) / (len(lasts) - 2))
            while len(lasts) < len(masses):
                lasts.append(lasts[-1] + slope)
            total = sum(masses)
            found = sum(map(mul, masses, lasts)) / total
            square = sum(mass * last * last for mass, last in zip(masses, lasts, strict=False)) / total
            load = min(NEARLY, rate * slope)
            wanted = square - found * found + variation * slope * slope * rate * mean
            mean = max(least, _toward(mean, mean + (found - mean) / (1 - load)))
            variance = max(1e-18, _toward(variance, variance + (wanted - variance) / (1 - load * load)))
        self.mean, self.variance, self.load, self.slope = mean, variance, min(NEARLY, rate * slope), slope
        self.none = masses[0] / sum(masses)
        self.busy = min(1.0, rate * mean / (rate * mean + self.none))
        """Share of time in which something is read, where nothing is decoded."""
        self.lasts = lasts
        self.shares = list(accumulate(map(mul, masses, lasts)))
        self.biased = sum(mass * last * last for mass, last in zip(masses, lasts, strict=False)) / self.shares[-1]
        tokens = rate * mean * self.own / max(1e-9, 1 - self.none)
        if self.mixed:
            self.gap = mean / (1 + (1 - self.none) * max(0.0, tokens / self.cycle.full_tokens - 1))
        else:
            self.gap = mean / max(self.none, 1e-6)

    def current(self, share: float) -> float:
        """The step that a request comes into: long ones are met more often."""
        wanted = share * self.shares[-1]
        number = bisect_left(self.shares, wanted)
        before = self.shares[number - 1] if number else 0.0
        inside = (wanted - before) / (self.shares[number] - before)
        last = self.lasts[number]
        if not number or not self.variation:
            return last
        spread = self.slope * self.slope * number * self.variation
        return gamma_quantile(min(0.999, max(0.001, inside)), last + spread / last, spread * (1 + spread / last**2))

    def first_token(self, u: tuple[float, ...], own: float) -> tuple[float, float]:
        """The time to the first token at a point of the cube, and how much of it is reading."""
        if self.idle:
            reading = self.seconds(own)
            return reading, reading
        current = self.current(u[1])
        waited = u[2] * current
        ahead = compound_quantile(u[3], self._count(waited), self.own, self.variation)
        total = own + min(self.room, ahead)
        if total <= self.cycle.full_tokens:
            after = compound_quantile(u[4], self._count(current - waited), self.own, self.variation)
            total = min(self.cycle.full_tokens, total + min(after, max(0.0, self.room - ahead)))
        reading = self.seconds(total)
        return current - waited + self.next_seconds + reading, reading

    def _count(self, seconds: float) -> float:
        """The mean number of other prompts within some seconds before or after one."""
        count = self.rate * seconds
        return max(count * self.even, count - (1 - self.even) / 2)

    def token_seconds(self, share: float, steps: float, reading: float) -> float:
        """The mean step that a request sees while it is decoded, after a reading of some length.

        What came during the reading is read first: steps are longer at the beginning.
        """
        found = self._added(steps, reading)
        count = self.rate * steps * min(self.plain, self.gap)
        none = math.exp(-count)
        later = 0.0
        if found.later > 0.0 and share > none:
            some, mean = 1 - none, found.later
            variance = (found.variance + mean * mean) / some - (mean / some) ** 2
            later = gamma_quantile((share - none) / some, mean / some, variance)
        return min(self.plain, self.gap) + found.seconds(later) / steps

    def gap_seconds(self, share: float) -> float:
        """A quantile of the time between two tokens of a request."""
        count = self.rate * self.plain
        added = max(0.0, self.gap - self.plain)
        return self.plain + (compound_quantile(share, count, added / count, self.variation) if count else 0.0)

    def mean_token_seconds(self, steps: float, reading: float) -> float:
        """The mean of `token_seconds`."""
        found = self._added(steps, reading)
        return min(self.plain, self.gap) + found.seconds(found.later) / steps

    def _added(self, steps: float, reading: float) -> _Added:
        each, plain = self.cycle.prompt_seconds, min(self.plain, self.gap)
        load = min(NEARLY, self.rate * each if self.mixed else self.load)
        busy = self._count(reading) * self.slope / (1 - self.load)
        top = min(reading, self.cycle.full_seconds)
        if self.mixed:
            busy = min(busy, steps * top) * max(0.0, 1 - self.gap / top) if top else 0.0
        else:
            busy -= self.gap - plain
        most = (self.room / self.own + steps * self.joining) * max(each, self.slope)
        mean = steps * (self.gap - plain)
        if mean <= 0.0:
            return _Added(busy, most, 0.0, 0.0)
        count = self.rate * steps * plain
        one = mean / count * (1 - load)
        return _Added(busy, most, mean, count * one * one * (self.even + self.variation) / (1 - load) ** 3)

"""Distributions as a few hundred points that fill the unit cube evenly: the same at every call, no random numbers.

The points are multiples of powers of the generalized golden ratio (Roberts 2018), which cover a cube of many dimensions
better than a grid. A quantity that depends on several independent causes is evaluated at each point; the quantiles of
the results are those of its distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ..record import dataclass

if TYPE_CHECKING:
    from typing import Protocol

    class Distribution(Protocol):
        """A distribution over requests (or tokens), in one unit."""

        @property
        def mean(self) -> float:
            """Over all of them."""

        @property
        def p50(self) -> float:
            """What half of them stay below."""

        @property
        def p95(self) -> float:
            """What 95 % stay below."""

        @property
        def p99(self) -> float:
            """What 99 % stay below."""

        def scaled(self, factor: float) -> Distribution:
            """Multiply by a number above 0."""


MANY = 24
"""A Poisson variable with a larger mean is taken as continuous."""
FEW: Final = tuple((place + 0.5) / 10 for place in range(10))
"""Shares at which a figure with a single cause is looked at, for its mean."""


@lru_cache(maxsize=16)
def cube(count: int, dimensions: int) -> tuple[tuple[float, ...], ...]:
    """Points inside the unit cube; along each axis each of `count` equal intervals holds one, in its middle."""
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    axes = []
    for axis in range(dimensions):
        step = root ** -(axis + 1)
        order = sorted(range(count), key=lambda index: (0.5 + (index + 1) * step) % 1.0)
        places = [0.0] * count
        for rank, index in enumerate(order):
            places[index] = (rank + 0.5) / count
        axes.append(places)
    return tuple(zip(*axes, strict=True))


@lru_cache(maxsize=4096)
def normal(share: float) -> float:
    """The quantile of a standard normal variable."""
    from statistics import NormalDist  # takes as long to import as all of this room

    return NormalDist().inv_cdf(share)


def gamma_quantile(share: float, mean: float, variance: float) -> float:
    """A quantile of a gamma variable (Wilson and Hilferty 1931)."""
    if variance <= 0.0 or mean <= 0.0:
        return max(mean, 0.0)
    ninth = variance / (9 * mean * mean)
    if ninth > 0.4:
        return -mean * math.log1p(-share)
    return mean * max(0.0, 1 - ninth + normal(share) * math.sqrt(ninth)) ** 3


def compound_quantile(share: float, count: float, size: float, squared_variation: float) -> float:
    """A quantile of the sum of a Poisson number of sizes."""
    if count > MANY:
        return gamma_quantile(share, count * size, count * (1 + squared_variation) * size * size)
    mass, number = math.exp(-count), 0
    while share > mass and number < 4 * MANY:
        share -= mass
        number += 1
        mass *= count / number
    if not number or not squared_variation:
        return number * size
    inside = min(0.999, max(0.001, share / mass))
    return gamma_quantile(inside, number * size, number * squared_variation * size * size)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A distribution over requests (or tokens): its mean and three quantiles, in one unit."""

    mean: float
    p50: float
    p95: float
    p99: float

    def scaled(self, factor: float) -> Quantiles:
        """Multiply by a number above 0."""
        return Quantiles(self.mean * factor, self.p50 * factor, self.p95 * factor, self.p99 * factor)

    def shifted(self, offset: float) -> Quantiles:
        """Add a constant."""
        return Quantiles(self.mean + offset, self.p50 + offset, self.p95 + offset, self.p99 + offset)


class ByShare:
    """A distribution by the figure at each share, which is worked out where somebody looks."""

    __slots__ = ("_figure", "_known")

    def __init__(self, figure: Callable[[float], float]) -> None:
        self._figure = figure
        self._known: dict[float, float] = {}

    def at(self, share: float) -> float:
        """What a share stays below."""
        found = self._known.get(share)
        if found is None:
            found = self._known[share] = self._figure(share)
        return found

    @property
    def mean(self) -> float:
        """Over a few shares."""
        return sum(map(self.at, FEW)) / len(FEW)

    @property
    def p50(self) -> float:
        """At one half."""
        return self.at(0.5)

    @property
    def p95(self) -> float:
        """At 95 %."""
        return self.at(0.95)

    @property
    def p99(self) -> float:
        """At 99 %."""
        return self.at(0.99)

    def scaled(self, factor: float) -> ByShare:
        """Multiply by a number above 0."""
        return ByShare(lambda share: self.at(share) * factor)


def quantiles(values: Sequence[float], weights: Sequence[float] | None = None) -> Quantiles:
    """The mean and the quantiles of points that count equally, or by weight."""
    if weights is None:
        ordered, last = sorted(values), len(values) - 1
        p50, p95, p99 = (_between(ordered, share * last) for share in (0.5, 0.95, 0.99))
        return Quantiles(math.fsum(values) / len(values), p50, p95, p99)
    total, found, seen = math.fsum(weights), [], 0.0
    shares = [0.5, 0.95, 0.99]
    for value, weight in sorted(zip(values, weights, strict=True)):
        seen += weight
        while shares and seen >= shares[0] * total:
            found.append(value)
            shares.pop(0)
    found.extend([max(values)] * len(shares))
    mean = math.fsum(value * weight for value, weight in zip(values, weights, strict=True)) / total
    return Quantiles(mean, *found)


def _between(ordered: Sequence[float], place: float) -> float:
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])

"""The most that a server can take within targets for the first token and the time per token."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from typing import Final, Literal

from ..errors import UsageError
from ..record import dataclass, replace
from .batch import Batch
from .figures import Load
from .requests import Arrivals, Lengths
from .serve import load as served
from .server import Server
from .steady import FULL, steady

At = Literal["mean", "p50", "p95", "p99"]

ROUNDS: Final = 10
"""Halvings of the logarithm of the rate: to 0.7 % of it."""
LIGHT: Final = 1e-3
"""Share of the largest throughput at which a server is as good as empty."""
MOST_USERS: Final = 1_000_000
TYPICAL: Final = 0.9
"""Share of the throughput that targets of 95 % of requests would ask for, were they those of all: some take longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Seconds that requests may take, where something is asked."""

    ttft_seconds: float | None = None
    tpot_seconds: float | None = None
    at: At = "p95"
    """Which quantile must keep to them."""

    def __post_init__(self) -> None:
        for name, seconds in (("first token", self.ttft_seconds), ("time per token", self.tpot_seconds)):
            if seconds is not None and not 0.0 < seconds < math.inf:
                raise UsageError("bad-target", f"a {name} of {seconds:g} s is no target", "Give seconds above 0.")

    def shares(self, load: Load) -> dict[str, float]:
        """What a load takes of each target that is asked, by its name: ttft, tpot."""
        asked = {"ttft": (self.ttft_seconds, load.ttft_seconds), "tpot": (self.tpot_seconds, load.tpot_seconds)}
        return {name: getattr(found, self.at) / target for name, (target, found) in asked.items() if target is not None}

    def missed(self, load: Load) -> tuple[str, ...]:
        """The names of the targets that a load misses: ttft, tpot."""
        return tuple(name for name, share in self.shares(load).items() if share > 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Most:
    """What a server can take; where `amount` is 0 not even one request keeps to the targets."""

    amount: float
    """Requests a second, or users."""
    load: Load
    """The load at that amount; at 0 that of a single user, the best that is possible."""
    beyond: Load
    """A little more: what it shows is what stands in the way."""
    missed: tuple[str, ...]
    """The targets that `beyond` misses; none where the batches are full."""


def largest_rate(server: Server, lengths: Lengths, targets: Targets) -> Most:
    """The largest rate of random requests that keeps to the targets."""
    batch = Batch(server, lengths)
    full = FULL * batch.most.rate * server.replicas

    def at(rate: float) -> Load:
        return steady(batch, Arrivals(rate=rate))

    low, high = LIGHT * full, full * (1 - 1e-9)
    good, bad = at(low), at(high)
    if targets.missed(good):
        alone = steady(batch, Arrivals(users=1.0))
        return Most(amount=0.0, load=alone, beyond=good, missed=targets.missed(good))
    if not targets.missed(bad):
        return Most(amount=high, load=bad, beyond=at(2 * full), missed=())
    for _ in range(ROUNDS):
        middle = math.sqrt(low * high)
        found = at(middle)
        if targets.missed(found):
            high, bad = middle, found
        else:
            low, good = middle, found
    return Most(amount=low, load=good, beyond=bad, missed=targets.missed(bad))


def most_users(server: Server, lengths: Lengths, targets: Targets) -> Most:
    """The largest number of users, each with one request under way, that keeps to the targets."""
    batch = Batch(server, lengths)

    def at(users: int) -> Load:
        return steady(batch, Arrivals(users=float(users)))

    good = at(1)
    if targets.missed(good):
        return Most(amount=0.0, load=good, beyond=good, missed=targets.missed(good))
    low, high = 1, 2
    bad = at(high)
    while not targets.missed(bad) and high < MOST_USERS:
        low, good, high = high, bad, high * 2
        bad = at(high)
    while high - low > 1 and targets.missed(bad):
        middle = (low + high) // 2
        found = at(middle)
        if targets.missed(found):
            high, bad = middle, found
        else:
            low, good = middle, found
    return Most(amount=float(low), load=good, beyond=bad, missed=targets.missed(bad))


def least_replicas(server: Server, lengths: Lengths, arrivals: Arrivals, targets: Targets) -> int | None:
    """A floor for the replicas that keep to the targets, from the means of their batches, which late requests exceed.

    None where a request that is alone misses one.
    """
    batch = Batch(replace(server, replicas=1), lengths)
    if targets.missed(steady(batch, Arrivals(users=1.0))):
        return None
    if arrivals.requests is not None:
        return 1  # they end, however they pile up
    most = batch.most
    if targets.tpot_seconds is not None and batch.steps:
        step = targets.tpot_seconds * server.speculation.made
        place = bisect_right(batch.table, step, key=lambda cycle: cycle.seconds)
        most = batch.table[min(place, len(batch.table) - 1)]
    if arrivals.rate:
        return max(1, math.ceil(arrivals.rate / most.rate))
    holds_more = most is not batch.most and most.seconds > 0.0
    return max(1, math.ceil(arrivals.users / most.running)) if holds_more else 1


def least_rate(arrivals: Arrivals, lengths: Lengths, targets: Targets) -> float:
    """Requests a second that are finished at least where the targets are kept; 0 where they bound none."""
    if arrivals.requests is not None:
        return 0.0
    if arrivals.rate or targets.ttft_seconds is None or targets.tpot_seconds is None:
        return arrivals.rate
    return TYPICAL * arrivals.users / (targets.ttft_seconds + lengths.output * targets.tpot_seconds)


def fewest_replicas(
    server: Server, lengths: Lengths, arrivals: Arrivals, targets: Targets, most: int, least: int = 1
) -> tuple[int | None, Load]:
    """How many replicas keep to the targets, None if even `most` do not, and the load of the last.

    `least` is a floor that is known.
    """

    def at(replicas: int) -> Load:
        return served(Batch(replace(server, replicas=replicas), lengths), arrivals)

    def holds(found: Load) -> bool:
        return (found.stable or arrivals.requests is not None) and not targets.missed(found)

    low, high = min(least, most) - 1, min(least, most)
    good = at(high)
    while not holds(good):
        if high >= most:
            return None, good
        low, high = high, min(2 * high - (least - 1), most)
        good = at(high)
    return _between(at, holds, low, high, good)


def _between(
    at: Callable[[int], Load], holds: Callable[[Load], bool], low: int, high: int, good: Load
) -> tuple[int, Load]:
    while high - low > 1:
        middle = (low + high) // 2
        found = at(middle)
        if holds(found):
            high, good = middle, found
        else:
            low = middle
    return high, good

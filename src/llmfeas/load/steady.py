"""A server under a load that goes on: requests at a rate, or users who always have one under way, out of step.

Three causes act on three time scales. Slowly, the number of requests in the system wanders (`crowd`), which gives the
batch and the wait for a slot. Quickly, a prompt meets others (`reading`). And each request has its own lengths. All
are drawn at the points of an even cube.
"""

from __future__ import annotations

import math
from typing import Final

from ..ranges import LoadBound
from ..record import dataclass
from .batch import Batch, Cycle, Limit
from .crowd import Crowd
from .figures import Load
from .points import ByShare, Quantiles, cube, gamma_quantile, normal, quantiles
from .reading import PromptReading, RandomPromptReading
from .requests import Arrivals

POINTS: Final = 256
AXES: Final = 10
ALIKE: Final = 4
"""Crowds that are read as one of the size in their middle, so that more requests a second hardly wait less: so many
between one and one of e times as many.
"""
FULL: Final = 0.995
"""Share of the largest throughput above which a rate counts as too high."""
ENDLESS: Final = Quantiles(math.inf, math.inf, math.inf, math.inf)

Point = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """One request at a point of the cube, seconds."""

    waited: float
    """For a slot, and on the way in."""
    reading: float
    """From then on to the first token."""
    alone: float
    """What that would be without others."""
    token: float
    gap: float

    @property
    def first(self) -> float:
        """To the first token."""
        return self.waited + self.reading


@dataclass(frozen=True, slots=True)
class SteadyState:
    """All replicas of a server under a steady load."""

    drawn: list[Drawn]
    rate: float
    """Requests a second that are finished."""
    running: float
    waiting: float
    stable: bool
    most: float
    """Requests a second that can be finished."""
    limit: Limit


def steady_state(batch: Batch, arrivals: Arrivals) -> SteadyState:
    """A steady load; at a rate that is too high, that of full batches."""
    replicas, full = batch.server.replicas, batch.most.running
    most = batch.most.rate * replicas
    if arrivals.rate >= FULL * most:
        return SteadyState(_closed(batch, full), most, full * replicas, math.inf, False, most, batch.limit)
    if arrivals.rate and not batch.steps:
        drawn, waiting = _read_only(batch, arrivals.rate / replicas)
        return SteadyState(drawn, arrivals.rate, 0.0, waiting * replicas, True, most, batch.limit)
    if arrivals.rate:
        crowd = Crowd(batch, arrivals.rate)
        drawn = _open(batch, arrivals.rate, crowd)
        running = (crowd.mean - crowd.waiting) * replicas
        return SteadyState(drawn, arrivals.rate, running, crowd.waiting * replicas, True, most, batch.limit)
    users = max(1.0, arrivals.users / replicas)
    running = min(users, full)
    rate = batch.at(running).rate * replicas
    return SteadyState(
        _closed(batch, users), rate, running * replicas, (users - running) * replicas, True, most, batch.limit
    )


def _open(batch: Batch, rate: float, crowd: Crowd) -> list[Drawn]:
    slots, per = batch.most.running, rate / batch.server.replicas
    readings: dict[int, PromptReading] = {}

    def one(u: Point) -> Drawn:
        running = crowd.quantile(u[0]) + 1
        idle = running < 2 - 1e-9
        ahead = 0.0 if idle else max(0.0, running - slots - batch.slots_deviation * normal(u[9]))
        key = -2 if idle else -1 if ahead else round(ALIKE * math.log(running))
        if key not in readings:
            at = batch.at(running if idle else min(slots, math.exp(key / ALIKE)))
            readings[key] = (
                PromptReading(batch, batch.most) if ahead else RandomPromptReading(batch, at, per, idle=idle)
            )
        return _drawn(batch, readings[key], u, gamma_quantile(u[8], ahead, ahead) / batch.most.rate)

    return [one(u) for u in cube(POINTS, AXES)]


def _read_only(batch: Batch, rate: float) -> tuple[list[Drawn], float]:
    """Requests of a replica that makes a single token of each, and how many are there."""
    busy = RandomPromptReading(batch, batch.most, rate)
    idle = RandomPromptReading(batch, batch.most, rate, idle=True)
    drawn = [_drawn(batch, busy if u[0] < busy.busy else idle, u, 0.0) for u in cube(POINTS, AXES)]
    return drawn, rate * sum(one.reading for one in drawn) / len(drawn)


def _closed(batch: Batch, users: float) -> list[Drawn]:
    slots = batch.most.running
    cycle = batch.at(min(users, slots))
    reading, late = PromptReading(batch, cycle), _late(batch, cycle)
    variation = batch.lengths.output_spread.squared_variation

    def one(u: Point) -> Drawn:
        ahead = max(0.0, users - slots - batch.slots_deviation * normal(u[9])) if users > 1 else 0.0
        waited = gamma_quantile(u[8], ahead, ahead * max(variation, 1 - ahead / slots)) / batch.most.rate
        return _drawn(batch, reading, u, waited or late)

    return [one(u) for u in cube(POINTS, AXES)]


def _drawn(batch: Batch, reading: PromptReading, u: Point, waited: float) -> Drawn:
    lengths = batch.lengths
    own = lengths.computed * lengths.prompt_spread.quantile(u[5])
    output = max(1.0, lengths.output * lengths.output_spread.quantile(u[6]))
    first, spent = reading.first_token(u, own)
    steps = max(1.0, (output - 1) / batch.server.speculation.made)
    token = reading.token_seconds(u[7], steps, spent) * steps / max(1.0, output - 1) if batch.steps else 0.0
    waited += batch.server.overhead_seconds
    alone = reading.next_seconds + reading.seconds(own)
    return Drawn(waited, first, alone, token, reading.gap_seconds(u[4]))


def steady(batch: Batch, arrivals: Arrivals) -> Load:
    """The figures of a load without end; a rate that is too high gives those of full batches, not `stable`."""
    users = arrivals.users / batch.server.replicas
    if not arrivals.rate and users <= batch.most.running and batch.lengths.are_fixed:
        return _even(batch, max(1.0, users))
    found = steady_state(batch, arrivals)
    return figures(found, found.drawn, batch.lengths.output)


def _even(batch: Batch, users: float) -> Load:
    """The same where requests are alike and each user has a slot: all waits are for the prompts of others."""
    server, lengths, cycle = batch.server, batch.lengths, batch.at(users)
    reading, replicas = PromptReading(batch, cycle), batch.server.replicas
    spare = (0.5,) * AXES
    waited = server.overhead_seconds + _late(batch, cycle)
    own = reading.seconds(lengths.computed)

    def first(share: float) -> float:
        return waited + reading.first_token((*spare[:3], share, *spare[4:]), lengths.computed)[0]

    def token(share: float) -> float:
        return reading.token_seconds(share, batch.steps, own) / server.speculation.made if batch.steps else 0.0

    rate = cycle.rate * replicas
    firsts = ByShare(first)
    return Load(
        stable=True,
        ttft_seconds=firsts,
        tpot_seconds=ByShare(token),
        itl_seconds=ByShare(reading.gap_seconds),
        requests_per_second=rate,
        output_tokens_per_second=rate * lengths.output,
        running=users * replicas,
        waiting=0.0,
        bound_by="queue" if firsts.p95 - waited > 2 * own else "compute",
        largest_rate=batch.most.rate * replicas,
    )


def _late(batch: Batch, cycle: Cycle) -> float:
    """Seconds from a request's coming in to its first step, where it is sent as its predecessor ends with a step."""
    step, overhead = cycle.plain_seconds, batch.server.overhead_seconds
    if not step or cycle.running <= 1:
        return 0.0
    return step * (math.ceil(overhead / step) + batch.server.ahead) - overhead


def figures(found: SteadyState, drawn: list[Drawn], output: float) -> Load:
    """What is reported of a steady state and its requests, with answers of a mean length."""
    return Load(
        stable=found.stable,
        ttft_seconds=quantiles([one.first for one in drawn]) if found.stable else ENDLESS,
        tpot_seconds=quantiles([one.token for one in drawn]),
        itl_seconds=quantiles([one.gap for one in drawn]),
        requests_per_second=found.rate,
        output_tokens_per_second=found.rate * output,
        running=found.running,
        waiting=found.waiting,
        bound_by=_bound(found, drawn),
        largest_rate=found.most,
    )


def _bound(found: SteadyState, drawn: list[Drawn]) -> LoadBound:
    """What the slowest tenth of first tokens waits for; slots, where requests pile up."""
    slot: LoadBound = "queue" if found.limit == "compute" else found.limit
    if not found.stable:
        return slot
    late = sorted(drawn, key=lambda one: one.first)[-len(drawn) // 10 :]
    shares: dict[LoadBound, float] = {
        "compute": sum(one.alone for one in late),
        "queue": sum(one.reading - one.alone for one in late),
    }
    shares[slot] = shares.get(slot, 0.0) + sum(one.waited for one in late)
    return max(shares, key=lambda kind: shares[kind])

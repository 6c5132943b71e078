"""Prompts and answers on separate machines: one pool of servers reads, the cache goes over, another pool decodes.

Prompts no longer lengthen the steps of those who decode (DistServe, Zhong et al., OSDI 2024). The first token is shown
when the second pool has the cache and has let the request in: what the user waits for is the reading, the transfer,
a slot and a step.
"""

from __future__ import annotations

import math

from ..record import replace
from .batch import Batch, Limit
from .figures import Load
from .requests import FIXED, Arrivals, Lengths
from .server import Policy, Server
from .steady import FULL, Drawn, SteadyState, figures, steady_state

ROUNDS = 12


def disaggregated(
    prefill: Server, decode: Server, lengths: Lengths, arrivals: Arrivals, transfer_seconds: float
) -> Load:
    """The figures of a load without end; `transfer_seconds` is that of the cache of a mean prompt."""
    readers = Batch(prefill, replace(lengths, output=1.0, output_spread=FIXED))
    writers = Batch(replace(decode, policy=_joining(decode.policy)), replace(lengths, prefix_hit=1.0))
    most = min(readers.most.rate * prefill.replicas, writers.most.rate * decode.replicas)
    rate = arrivals.rate
    if not rate:
        rate = _rate_of_users(readers, writers, arrivals.users, transfer_seconds, FULL * most)
    stable = not arrivals.rate or rate < FULL * most
    rate = min(rate, 0.999 * FULL * most)
    first, second = steady_state(readers, Arrivals(rate=rate)), steady_state(writers, Arrivals(rate=rate))
    drawn = []
    for place, (one, other) in enumerate(zip(first.drawn, _shuffled(second.drawn), strict=True)):
        sent = transfer_seconds * lengths.prompt_spread.quantile((place + 0.5) / len(first.drawn))
        waited, reading = one.waited + sent + other.waited, one.reading + other.reading
        drawn.append(Drawn(waited, reading, one.alone, other.token, other.gap))
    limit: Limit = "compute" if first.most <= most else second.limit
    waiting = first.waiting + second.waiting if stable else math.inf
    whole = SteadyState(drawn, rate, second.running, waiting, stable, most, limit)
    return figures(whole, drawn, lengths.output)


def _joining(policy: Policy) -> Policy:
    """A request that brings its cache joins the next step, whatever the engine."""
    return replace(policy, mixed=True, chunked=True)


def _shuffled(drawn: list[Drawn]) -> list[Drawn]:
    """Pair the points of two stages anew: what delays a request in one says nothing about the other."""
    return [drawn[(place * 97 + 31) % len(drawn)] for place in range(len(drawn))]


def _rate_of_users(readers: Batch, writers: Batch, users: float, transfer: float, most: float) -> float:
    """The rate at which a number of users send, by Little's law: users = rate x (first token + answer)."""
    low, high = 0.0, most
    for _ in range(ROUNDS):
        rate = (low + high) / 2
        first, second = steady_state(readers, Arrivals(rate=rate)), steady_state(writers, Arrivals(rate=rate))
        count = len(first.drawn)
        life = transfer + sum(one.first for one in first.drawn) / count + sum(one.first for one in second.drawn) / count
        life += writers.steps * writers.server.speculation.made * sum(one.token for one in second.drawn) / count
        low, high = (rate, high) if rate * life < users else (low, rate)
    return low

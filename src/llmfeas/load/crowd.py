"""How many requests a server holds when they come at a rate.

A birth-death chain: n requests leave at n / (life of a request beside n others). With every request served at the same
speed (processor sharing) the shares of the states depend on lengths by their mean alone (Kelly 1979). Beyond the slots
requests wait: one finds all slots taken about as often as in the queue of many servers of Erlang, and waits
(1 + c²) / 2 as long, c² the squared variation of answers (Lee and Longton 1959). Prompts that come in rows lengthen
steps while they add requests, which spreads the number more than chance does: (step / step without prompts)² as much.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate

from .batch import Batch
from .reading import RandomPromptReading

STRIDE = 24
"""Between the states of the chain lies at most a share of 1 / STRIDE."""
TAIL = 16
"""Points for those who find all slots taken."""
LIVES = 8


class Lives:
    """How long a request stays with a replica, by running requests, while prompts come at a rate."""

    def __init__(self, batch: Batch, rate: float) -> None:
        self.running: list[float] = []
        self.seconds: list[float] = []
        self.spread = 1.0
        steps = max(1.0, batch.steps)
        places = range(0, len(batch.table), max(1, len(batch.table) // LIVES))
        for cycle in (*(batch.table[place] for place in places), batch.most):
            reading = RandomPromptReading(batch, cycle, rate)
            own = reading.seconds(reading.own + min(reading.room, reading.own * rate * reading.biased))
            life = own + (batch.steps * reading.mean_token_seconds(steps, own) if batch.steps else 0.0)
            self.running.append(cycle.running)
            self.seconds.append(life)
            if cycle.running <= rate * life and cycle.plain_seconds:
                self.spread = max(1.0, reading.gap / cycle.plain_seconds) ** 2

    def at(self, running: float) -> float:
        """The seconds with a number of running requests."""
        place = bisect_left(self.running, running)
        if place == 0 or place == len(self.running):
            return self.seconds[min(place, len(self.running) - 1)]
        low, high = self.running[place - 1], self.running[place]
        share = (running - low) / (high - low)
        return self.seconds[place - 1] * (1 - share) + self.seconds[place] * share


class Crowd:
    """Requests on one of the replicas, those that wait included, as an arriving request finds them.

    Replicas that give each request to the least loaded share their fluctuations: the chain is that of all together.
    """

    def __init__(self, batch: Batch, rate: float) -> None:
        replicas = batch.server.replicas
        slots, load = batch.most.running * replicas, rate / replicas / batch.most.rate
        lives = Lives(batch, rate / replicas)
        states = [0.0]
        while states[-1] < slots:
            states.append(min(slots, states[-1] + max(1.0, states[-1] / STRIDE)))
        slopes = [math.log(rate * lives.at(state / replicas) / max(1.0, state)) / lives.spread for state in states]
        logs = [0.0]
        for low, high, before, slope in zip(states, states[1:], slopes, slopes[1:], strict=False):
            logs.append(logs[-1] + (high - low) * (slope if high - low == 1.0 else (before + slope) / 2))
        top = max(logs)
        masses = [math.exp(log - top) for log in logs]
        for place in range(1, len(states) - 1):
            masses[place] *= (states[place + 1] - states[place - 1]) / 2
        decay = math.log(load) * 2 / (1 + batch.lengths.output_spread.squared_variation)
        tail = masses[-1] * load / (1 - load) / TAIL
        for place in range(TAIL):
            states.append(slots + max(1.0, math.log((TAIL - place - 0.5) / TAIL) / decay))
            masses.append(tail)
        self.states = [state / replicas for state in states]
        self.shares = list(accumulate(masses))
        total = self.shares[-1]
        self.mean = math.fsum(state * mass for state, mass in zip(self.states, masses, strict=True)) / total
        over = [max(0.0, state - batch.most.running) * mass for state, mass in zip(self.states, masses, strict=True)]
        self.waiting = math.fsum(over) / total

    def quantile(self, share: float) -> float:
        """The number of requests that a share of arrivals finds at most."""
        return self.states[min(bisect_left(self.shares, share * self.shares[-1]), len(self.states) - 1)]

"""What a steady batch does: seconds of a step, prompts that join it, requests finished, all by decoding requests.

With D steps an answer, b decoding requests take in b / D prompts a step. A decoding request sees steps of V + m w, V
the step without prompts, m the prompts of others and w what a prompt adds; a request lives D (V + m w) + S, S the
reading of its own prompt. Requests in the batch over life is throughput (Little). Slots, pages or the tokens that a
step may hold set the end.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter
from typing import Final, Literal

from ..record import dataclass, fields
from .requests import Lengths
from .server import Policy, Server

Limit = Literal["max_num_seqs", "pool", "compute"]

TABLE: Final = 28
"""Batches for which steps are computed; between them figures are interpolated."""
GUESSES: Final = 4
"""Batches that are looked at where a guess says, before the rest is halved."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """One replica with a steady batch."""

    running: float
    """Decoding requests and those whose prompt is being read."""
    decoding: float
    rate: float
    """Requests a second."""
    seconds: float
    """Mean step of a decoding request."""
    plain_seconds: float
    """A step without prompts."""
    prompt_seconds: float
    """What a prompt adds to it."""
    full_seconds: float
    """A step that reads all prompt tokens it may."""
    full_tokens: float


FIGURES: Final = attrgetter(*(each.name for each in fields(Cycle)))


class Cycles:
    """Batches of ever more prompts a step, each computed when it is first asked for."""

    def __init__(self, prompts: list[float], cycle: Callable[[float], Cycle]) -> None:
        self._prompts, self._cycle = prompts, cycle
        self._known: list[Cycle | None] = [None] * len(prompts)

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, place: int) -> Cycle:
        found = self._known[place]
        if found is None:
            found = self._known[place] = self._cycle(self._prompts[place])
        return found

    def place(self, running: float) -> int:
        """Where the first batch with more running requests stands, if there is one; looked for where their number for
        each prompt says, as in the last batch that was seen: few are computed on the way.
        """
        low, high, seen = 0, len(self), -1
        for tries in range(high):
            if low == high:
                break
            each = self[seen].running / self._prompts[seen]
            guess = bisect_right(self._prompts, running / each) if tries < GUESSES else (low + high) // 2
            seen = min(max(low, guess), high - 1)
            low, high = (seen + 1, high) if self[seen].running <= running else (low, seen)
        return low

    def end(self, place: int, last: Cycle) -> None:
        """Put the last batch at a place and nothing behind it."""
        self._known[place:], self._prompts[place + 1 :] = [last], []


def held_tokens(lengths: Lengths, policy: Policy, page_tokens: float, drafted: float) -> float:
    """Pool tokens of a running request, mean over time: half of its last page is empty."""
    return lengths.written(policy.reserved) + page_tokens / 2 + drafted


def entry_tokens(lengths: Lengths, policy: Policy) -> float:
    """Pool tokens that are free on average where it is full: half of what the next request needs to be let in."""
    return (lengths.prompt + lengths.output * policy.reserved) / 2


class Batch:
    """One replica of a server with requests of given lengths."""

    def __init__(self, server: Server, lengths: Lengths) -> None:
        self.server = server
        self.lengths = lengths
        self.own, self.cached, self.attended = lengths.computed, lengths.cached, lengths.attended
        """As in the lengths: asked for in every step."""
        self.mixed = server.policy.mixed
        self.drafted = server.speculation.tokens
        self.steps = max(0.0, lengths.output - 1) / server.speculation.made
        """Decoding steps of an answer."""
        spread = 1 + lengths.output_spread.squared_variation
        held = lengths.written(server.policy.reserved)
        self.held_tokens = held_tokens(lengths, server.policy, server.page_tokens, self.drafted)
        self.slots_deviation = 0.0
        """Standard deviation of the requests that fit, because they hold more or less."""
        free = entry_tokens(lengths, server.policy)
        fits = max(1.0, (server.kv_pool_tokens - free) / self.held_tokens)
        self.slots = min(float(server.max_num_seqs), fits)
        self.slots_limit: Limit = "pool" if fits < server.max_num_seqs else "max_num_seqs"
        if self.slots_limit == "pool":
            grown = lengths.output * spread / 2
            uneven = lengths.prompt**2 * lengths.prompt_spread.squared_variation
            uneven += grown**2 * (1 / 3 + 2 / 3 * lengths.output_spread.squared_variation)
            self.slots_deviation = math.sqrt(uneven * self.slots) / held * (1 - server.policy.reserved / 2)
        self.limit: Limit = self.slots_limit
        self.table = self._table()

    def budget(self, decoding: float) -> float:
        """Prompt tokens that a step may read beside its decoding requests."""
        tokens = float(self.server.max_num_batched_tokens)
        if self.mixed:
            tokens = max(1.0, tokens - decoding * (1 + self.drafted))
        if not self.server.policy.chunked:
            own = self.own
            wasted = own * (1 + self.lengths.prompt_spread.squared_variation) / 2
            tokens = max(own, tokens - wasted)
        return tokens

    def plain(self, decoding: float) -> float:
        """Seconds of a step without prompts."""
        return self.server.step_seconds(decoding, self.cached, 0.0, 0.0) if decoding > 0.0 else 0.0

    def reading(self, decoding: float, tokens: float) -> float:
        """Seconds of a step that reads prompt tokens."""
        if not self.mixed:
            decoding = 0.0
        return self.server.step_seconds(decoding, self.cached if decoding else 0.0, tokens, self.attended)

    def preempted(self) -> float:
        """How often a request is computed again where the pool is full and nothing is kept free.

        After a request ends its pages go to those that wait, until less is free than the next prompt needs: on average
        half of it. Until the next one ends the others grow by an answer, exponentially distributed, and what exceeds
        the free room throws out the newest.
        """
        if self.server.policy.reserved or self.limit != "pool":
            return 0.0
        ratio = self.lengths.output / self.lengths.prompt
        return ratio * ratio * -math.expm1(-1 / ratio)

    def cycle(self, prompts: float, computed: float = 1.0) -> Cycle:
        """The batch that takes in a mean number of prompts a step, each computed so many times."""
        own, decoding = self.own * computed, prompts * self.steps
        running = max(1.0, decoding)
        for _ in range(2):
            others = 1 - 1 / running
            seen = others * decoding
            budget, plain = self.budget(seen), self.plain(seen + 1) if self.steps else 0.0
            joining = prompts * others
            together = joining / -math.expm1(-joining) if joining > 1e-9 else 1.0
            if not self.steps:
                together = max(1.0, prompts)
            tokens = min(budget, own * together)
            step = self.reading(seen, tokens)
            each = (step - (self.plain(seen) if self.mixed else 0.0)) * own / tokens
            seconds = plain + joining * each if self.steps else step
            rate = prompts / seconds
            running = max(1.0, decoding + rate * step * max(1.0, own / tokens))
        return Cycle(running, decoding, rate, seconds, plain, each, self.reading(seen, budget), budget)

    def _table(self) -> Cycles:
        """Batches from one request alone to the largest throughput."""
        most = self.slots / max(1.0, self.steps)
        if self.mixed or not self.steps:
            each = self.own + self.steps * (1 + self.drafted)
            if self.server.max_num_batched_tokens / each < most:
                most, self.limit = self.server.max_num_batched_tokens / each, "compute"
        least = min(most, self._alone())
        count = 1 if least == most else min(TABLE, 3 + int(8 * math.log(most / least)))
        ratio = most / least
        table = Cycles([least * ratio ** (index / max(1, count - 1)) for index in range(count)], self.cycle)
        if table[-1].running > self.slots:
            place = table.place(self.slots)
            self.limit = self.slots_limit
            table.end(place, _between(table, self.slots))
        again = self.preempted()
        if again and self.steps:
            prompts = table[-1].decoding / max(1e-9, self.steps)
            table.end(len(table) - 1, self.cycle(prompts, 1 + again))
        return table

    def _alone(self) -> float:
        """The prompts a step of a single user, who always has one request."""
        own, budget = self.own, self.budget(0.0)
        first = self.reading(0.0, min(own, budget)) * max(1.0, own / budget)
        plain = self.plain(1.0)
        return plain / (self.steps * plain + first) if self.steps else 1.0

    @property
    def most(self) -> Cycle:
        """The batch of the largest throughput."""
        return self.table[-1]

    def at(self, running: float) -> Cycle:
        """The batch with a number of running requests, between 1 and the most."""
        return _between(self.table, running)

    def rate(self, running: float) -> float:
        """Requests a second with a number of running requests."""
        return self.at(running).rate * min(1.0, running)


def _between(table: Cycles, running: float) -> Cycle:
    place = table.place(running)
    if place == 0 or place == len(table):
        return table[min(place, len(table) - 1)]
    low, high = table[place - 1], table[place]
    share = (running - low.running) / (high.running - low.running)
    return Cycle(*[one + share * (other - one) for one, other in zip(FIGURES(low), FIGURES(high), strict=True)])

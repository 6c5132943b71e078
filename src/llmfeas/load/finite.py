"""A finite number of requests: all at once, from users who begin together, or faster than they are finished.

A run of one replica's scheduler from event to event: steps in which nothing joins or ends are taken in one stride.
Lengths and the times between arrivals are spread evenly over their distributions, so nothing is random. What is
missing against the engine: pages (half of one is counted for each request), and the chance of acceptance (its mean).
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from functools import lru_cache
from itertools import accumulate
from typing import Final

from ..errors import UsageError
from ..ranges import LoadBound
from .batch import Batch
from .figures import Load
from .points import cube, quantiles
from .requests import Arrivals, Lengths
from .server import Server

MOST = 20_000
"""Requests of one replica that are taken one by one; a load of more goes on long enough to have no end."""
WAITED_FOR: Final[tuple[LoadBound, ...]] = ("queue", "max_num_seqs", "pool")
"""What a request may wait for before it is let in."""
MOST_PASSES = 100_000
"""Passes through the model that are followed: two seconds of them, and some megabytes."""


class Request:
    """One request: its lengths in tokens, what is read and made of it, when its first token came."""

    __slots__ = (
        *("arrival", "end", "first", "last", "left", "made"),
        *("number", "output", "prompt", "since", "stood", "turn"),
    )

    def __init__(self, number: int, prompt: float, hit: float, output: float) -> None:
        self.number, self.prompt, self.output = number, prompt, output
        self.left = prompt - hit
        """Tokens to read before the next one is made."""
        self.made = self.arrival = self.first = self.last = self.since = 0.0
        self.end = -1.0
        """The step of its last token; negative while it does not decode."""
        self.turn = 0
        """How often it was thrown out."""
        self.stood: dict[LoadBound, float] = {}
        """What the first of those who wait had waited for when it came; once it is let in what it waited for itself."""


@lru_cache(maxsize=2)
def drawn(lengths: Lengths, count: int) -> tuple[tuple[float, float, float], ...]:
    """Prompt, what the cache has of it, and answer of so many requests; a faster server is asked for the same ones."""
    found = []
    for u in cube(count, 3):
        prompt = max(1.0, round(lengths.prompt * lengths.prompt_spread.quantile(u[0])))
        output = max(1.0, round(lengths.output * lengths.output_spread.quantile(u[1])))
        found.append((prompt, min(prompt - 1, prompt * lengths.prefix_hit), output))
    return tuple(found)


class Run:
    """One replica that serves a number of requests."""

    def __init__(self, server: Server, lengths: Lengths, arrivals: Arrivals) -> None:
        count = math.ceil((arrivals.requests or 1) / server.replicas)
        self.server, self.lengths, self.pace = server, lengths, server.speculation.made
        self.policy, self.hit = server.policy, lengths.prefix_hit
        self.requests = [Request(number, *each) for number, each in enumerate(drawn(lengths, count))]
        users = max(1, round(arrivals.users / server.replicas)) if arrivals.users else 0
        begin = count if arrivals.rate or not users else min(users, count)
        self.coming = deque(self.requests[:begin])
        """On their way, by the time at which they are there."""
        self.unsent = deque(self.requests[begin:])
        """Of users who wait for an answer."""
        if arrivals.rate:
            gaps = accumulate(-math.log(u[2]) for u in cube(count, 3))
            for request, gap in zip(self.requests, gaps, strict=True):
                request.arrival = gap * server.replicas / arrivals.rate
        self.waiting: deque[Request] = deque()
        self.reading: list[Request] = []
        self.ends: list[tuple[float, int, int, Request]] = []
        """A heap of the steps in which those who decode end, some of them thrown out since."""
        self.decoding = 0
        self.newest: list[Request] = []
        self.time = self.step = self.tokens = self.cached = self.seen = 0.0
        """`seen`: until when those came whom the next step can take."""
        self.running = 0
        self.gaps: list[tuple[float, float]] = []
        self.stood: dict[LoadBound, float] = dict.fromkeys(WAITED_FOR, 0.0)
        """Seconds for which the first of those who wait was not let in, by what it waited for."""
        self.first_waits_for: LoadBound = "queue"
        self.running_seconds = self.waiting_seconds = 0.0
        while self.running or self.waiting or self.coming:
            self._advance()

    def _held(self, request: Request, made: float) -> float:
        kept = self.policy.reserved * (request.output - made)
        return request.prompt + made + kept + self.server.page_tokens / 2

    @property
    def room(self) -> float:
        """Tokens of the pool that are free."""
        return self.server.kv_pool_tokens - self.tokens

    def _advance(self) -> None:
        while self.coming and self.coming[0].arrival <= self.seen:
            self.coming[0].stood = dict(self.stood)
            self.waiting.append(self.coming.popleft())
        if not self.running and not self.waiting:
            self.time = self.seen = max(self.time, self.coming[0].arrival)
            return
        budget = float(self.server.max_num_batched_tokens)
        if self.policy.mixed:
            self._make_room()
            budget -= self.decoding * (1 + self.server.speculation.tokens)
        pieces = self._pieces(budget)
        if pieces:
            self._read(pieces)
        else:
            self._make_room()
            self._decode()
        while self.decoding and self._next_end() <= self.step + 1e-9:
            self._finish(heapq.heappop(self.ends)[-1])

    def _next_end(self) -> float:
        """The step in which the first of those who decode ends."""
        while True:
            end, _, turn, request = self.ends[0]
            if turn == request.turn:
                return end
            heapq.heappop(self.ends)

    def _pieces(self, budget: float) -> list[tuple[Request, float]]:
        """The prompts that the next step reads, each with its tokens."""
        pieces = []
        for request in self.reading:
            part = min(request.left, budget)
            if part > 0.0:
                pieces.append((request, part))
                budget -= part
        while self.waiting:
            request = self.waiting[0]
            self.first_waits_for = self._waits_for(request, budget, first=not pieces)
            if self.first_waits_for != "compute":
                break
            self._count_waits(request)
            part = min(request.left, budget) if self.policy.chunked else request.left
            self.reading.append(self.waiting.popleft())
            self.newest.append(request)
            self.running += 1
            self.tokens += self._held(request, request.made)
            self.cached += request.prompt + request.made
            pieces.append((request, part))
            budget -= part
        return pieces

    def _waits_for(self, request: Request, budget: float, *, first: bool) -> LoadBound:
        """What the first of those who wait waits for; `compute` where it is let in."""
        if self.running >= self.server.max_num_seqs:
            return "max_num_seqs"
        if self.running and self._held(request, request.made) > self.room:
            return "pool"
        whole = request.left <= budget or (first and budget >= self.server.max_num_batched_tokens)
        return "compute" if budget >= 1.0 and (self.policy.chunked or whole) else "queue"

    def _count_waits(self, request: Request) -> None:
        """Turn the clock of a request that comes in or leaves into what it has waited, and back."""
        if not request.first:
            request.stood = {kind: self.stood[kind] - seconds for kind, seconds in request.stood.items()}

    def _read(self, pieces: list[tuple[Request, float]]) -> None:
        """Take one step that reads prompts."""
        tokens = sum(part for _, part in pieces)
        attended = sum(part * (one.prompt + one.made - one.left + part / 2) for one, part in pieces) / tokens
        decoding = self.decoding if self.policy.mixed else 0
        self._pass(1.0 if decoding else 0.0, decoding, tokens, attended)
        for request, part in pieces:
            request.left -= part
        for request in [one for one, _ in pieces if one.left <= 0.0]:
            self.reading.remove(request)
            request.made += 1
            self.tokens += 1 - self.policy.reserved
            self.cached += 1
            request.first = request.first or self.time
            request.since = self.step
            if request.output <= request.made:
                self._finish(request)
            else:
                steps = math.ceil((request.output - request.made) / self.pace - 1e-9)
                request.end = self.step + steps
                heapq.heappush(self.ends, (request.end, request.number, request.turn, request))
                self.decoding += 1

    def _decode(self) -> None:
        """Take all decoding steps until something ends, comes, or the pool is full."""
        steps, count = max(1.0, self._next_end() - self.step), self.decoding
        growth = count * self.pace * (1 - self.policy.reserved)
        if growth > 0.0 and self.running > 1 and self.room < growth * steps:
            steps = max(1.0, self.room // growth)
        if self.coming:
            first = self.server.step_seconds(count, self._cached(0.0), 0.0, 0.0)
            steps = max(1.0, min(steps, math.ceil((self.coming[0].arrival - self.time) / first)))
        self._pass(steps, count, 0.0, 0.0)

    def _cached(self, steps: float) -> float:
        """Mean cached tokens of those who decode, in the middle of some steps."""
        return self.cached / max(1, self.running) + steps * self.pace / 2

    def _pass(self, steps: float, decoding: int, tokens: float, attended: float) -> None:
        """Let steps go by.

        Raises:
            UsageError: there are more of them than can be followed, as where prompts are read token by token.
        """
        if len(self.gaps) >= MOST_PASSES:
            raise UsageError(
                "bad-requests",
                f"these requests take more than {MOST_PASSES} passes, which cannot be followed one by one",
                "Give fewer --requests, or more --max-num-batched-tokens.",
            )
        each = self.server.step_seconds(decoding, self._cached(steps) if decoding else 0.0, tokens, attended)
        seconds = each * max(1.0, steps)
        self.time += seconds
        self.seen = self.time - each if self.server.ahead else self.time
        self.step += steps
        self.tokens += steps * decoding * self.pace * (1 - self.policy.reserved)
        self.cached += steps * decoding * self.pace
        self.gaps.append((each, steps * decoding))
        self.running_seconds += seconds * self.running
        self.waiting_seconds += seconds * len(self.waiting)
        if self.waiting:
            self.stood[self.first_waits_for] += seconds

    def _make_room(self) -> None:
        """Throw out the newest requests while the pool has no room for a token of each."""
        while self.room < self.decoding * self.pace * (1 - self.policy.reserved) and self.running > 1:
            request = self.newest.pop()
            if request.last:
                continue
            if request.end < 0.0:
                self.reading.remove(request)
            self._leave(request)
            self.first_waits_for = "pool"
            self._count_waits(request)
            request.end, request.turn = -1.0, request.turn + 1
            request.left = request.prompt * (1 - self.hit) + request.made
            self.waiting.appendleft(request)

    def _leave(self, request: Request) -> None:
        if request.end >= 0.0:
            request.made = min(request.output, request.made + (self.step - request.since) * self.pace)
            self.decoding -= 1
        self.running -= 1
        self.tokens -= self._held(request, request.made)
        self.cached -= request.prompt + request.made

    def _finish(self, request: Request) -> None:
        self._leave(request)
        request.last = self.time
        if self.unsent:
            # those who end within the way of a request come together again, as in a benchmark of equal lengths
            follower = self.unsent.popleft()
            follower.arrival = self.time + self.server.overhead_seconds
            self.coming.append(follower)


def finite(batch: Batch, arrivals: Arrivals) -> Load:
    """The figures of a number of requests, from the first to the last."""
    server = batch.server
    if not 1 <= (arrivals.requests or 0) <= MOST * server.replicas:
        raise UsageError(
            "bad-requests",
            f"{arrivals.requests} requests cannot be followed one by one",
            f"Give 1 to {MOST} for each replica, or none for a load without end.",
        )
    run = Run(server, batch.lengths, arrivals)
    answered = [one for one in run.requests if one.output > 1] or run.requests
    gaps = [(gap, count) for gap, count in run.gaps if count] or [(0.0, 1)]  # answers of one token have none
    made = sum(one.output for one in run.requests)
    most = batch.most.rate * server.replicas
    return Load(
        stable=not arrivals.rate or arrivals.rate < most,
        ttft_seconds=quantiles([one.first - one.arrival for one in run.requests]).shifted(server.overhead_seconds),
        tpot_seconds=quantiles([(one.last - one.first) / max(1.0, one.output - 1) for one in answered]),
        itl_seconds=quantiles([gap for gap, _ in gaps], [count for _, count in gaps]),
        requests_per_second=len(run.requests) * server.replicas / run.time,
        output_tokens_per_second=made * server.replicas / run.time,
        running=run.running_seconds * server.replicas / run.time,
        waiting=run.waiting_seconds * server.replicas / run.time,
        bound_by=_bound(batch, run),
        largest_rate=most,
    )


def _bound(batch: Batch, run: Run) -> LoadBound:
    """What the slowest tenth of first tokens waits for: before it is let in, and while its prompt is read."""
    overhead, budget = batch.server.overhead_seconds, batch.budget(0.0)
    alone = overhead + batch.reading(0.0, min(batch.own, budget)) * max(1.0, batch.own / budget)
    shares: dict[LoadBound, float] = dict.fromkeys(("compute", *WAITED_FOR), 0.0)
    late = sorted(run.requests, key=lambda one: one.first - one.arrival)
    for one in late[-max(1, len(late) // 10) :]:
        whole = one.first - one.arrival + overhead
        own = min(alone * one.prompt / batch.lengths.prompt, whole)
        for kind in ("max_num_seqs", "pool"):
            shares[kind] += one.stood[kind]
        shares["compute"] += own
        shares["queue"] += whole - own - one.stood["max_num_seqs"] - one.stood["pool"]
    return max(shares, key=lambda kind: shares[kind])

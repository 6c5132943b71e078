"""The schedulers of serving engines, step by step: what the closed form of the load is held against.

One event at a time, seeded, no wall clock. As vLLM V1 does it (`vllm/v1/core/sched/scheduler.py`): running requests
get their tokens first, oldest first; waiting ones are let in by what is left of the step's tokens, by the number of
sequences and by free pages; without a free page the newest request is preempted, goes back to the head of the queue
and is computed again. `Policy` turns it into what SGLang, TensorRT-LLM and older vLLM do.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from llmfeas.load.requests import Arrivals, Lengths
from llmfeas.load.server import Server


@dataclass(eq=False, slots=True)
class Job:
    arrival: float
    prompt: int
    hit: int
    output: int
    computed: int = 0
    made: int = 0
    pages: int = 0
    first: float = 0.0
    last: float = 0.0
    preempted: int = 0

    @property
    def left(self) -> int:
        """Tokens to compute before the next one is made: 1 while decoding."""
        return self.prompt + self.made - self.computed

    @property
    def decoding(self) -> bool:
        return self.made > 0 and self.left == 1

    @property
    def ttft(self) -> float:
        return self.first - self.arrival

    @property
    def tpot(self) -> float:
        return (self.last - self.first) / (self.output - 1)


@dataclass(slots=True)
class Engine:
    """One replica: its queue, what runs (oldest first), its free pages."""

    server: Server
    waiting: deque[Job] = field(default_factory=deque)
    running: list[Job] = field(default_factory=list)
    used: int = 0
    busy: bool = False
    prompts_only: bool = False
    coming: deque[tuple[float, Job]] = field(default_factory=deque)
    """Who came since, with the time."""
    began: float = 0.0
    """When the last step began, while which the next one was put together, if steps are put together ahead."""

    @property
    def load(self) -> int:
        return len(self.coming) + len(self.waiting) + len(self.running)

    def look(self) -> None:
        """Take those who came to the queue; where steps are put together ahead those who came before the last."""
        idle = not self.waiting and not self.running
        while self.coming and (idle or not self.server.ahead or self.coming[0][0] <= self.began):
            self.waiting.append(self.coming.popleft()[1])

    @property
    def total(self) -> float:
        return self.server.kv_pool_tokens / self.server.page_tokens

    def pages(self, tokens: float) -> int:
        return math.ceil(tokens / self.server.page_tokens)

    def take(self, job: Job, tokens: int) -> bool:
        """Hold pages for more tokens of a request, if there are any."""
        more = self.pages(job.computed + tokens) - job.pages
        if more > 0 and self.used + more > self.total:
            return False
        self.used += max(0, more)
        job.pages += max(0, more)
        return True

    def free(self, job: Job) -> None:
        self.used -= job.pages
        job.pages = 0

    def preempt(self) -> Job:
        """Throw out the newest request; it is computed again, from its first token."""
        job = self.running.pop()
        self.free(job)
        job.computed = 0
        job.preempted += 1
        self.waiting.appendleft(job)
        return job

    def may_enter(self, job: Job) -> bool:
        """Whether the pool has room for all that is known of a request, and for the kept share of all answers."""
        share, free = self.server.policy.reserved, self.total - self.used
        if share:
            free -= sum(self.pages(share * (one.output - one.made) + max(0, one.left)) for one in self.running)
        return not self.running or free >= self.pages(job.prompt + job.made + share * (job.output - job.made))

    def decode(self, budget: int, plan: list[tuple[Job, int]], *, prompts: bool) -> int | None:
        """Plan the running requests, oldest first; None once one was preempted."""
        drafted, index, preempted = self.server.speculation.tokens, 0, False
        while index < len(self.running) and budget > 0:
            job = self.running[index]
            if not prompts and not job.decoding:
                index += 1
                continue
            tokens = min(budget, job.left + drafted if job.decoding else job.left)
            thrown = None
            while thrown is not job and not self.take(job, tokens):
                thrown = self.preempt()
                preempted = True
            if thrown is job:
                break
            plan.append((job, tokens))
            budget -= tokens
            index += 1
        return None if preempted else budget

    def enter(self, budget: int, plan: list[tuple[Job, int]]) -> None:
        """Let in waiting requests, first come first served."""
        chunked = self.server.policy.chunked
        while self.waiting and budget > 0 and len(self.running) < self.server.max_num_seqs:
            job = self.waiting[0]
            job.computed = job.hit
            tokens = min(job.left, budget)
            if not chunked and job.left > budget and (plan or budget < self.server.max_num_batched_tokens):
                break
            tokens = tokens if chunked else job.left
            if not self.may_enter(job) or not self.take(job, tokens):
                break
            self.running.append(self.waiting.popleft())
            plan.append((job, tokens))
            budget -= tokens

    def planned(self) -> list[tuple[Job, int]]:
        """The requests of the next step, each with its tokens."""
        plan: list[tuple[Job, int]] = []
        budget: int | None = self.server.max_num_batched_tokens
        assert budget is not None
        if self.server.policy.mixed:
            budget = self.decode(budget, plan, prompts=True)
            if budget is not None:
                self.enter(budget, plan)
            return plan
        for job in [one for one in self.running if not one.decoding]:
            tokens = min(job.left, budget)
            if tokens and self.take(job, tokens):
                plan.append((job, tokens))
                budget -= tokens
        if len(self.running) < self.server.max_num_seqs:
            self.enter(budget, plan)
        if not plan:
            self.decode(self.server.max_num_batched_tokens * 1000, plan, prompts=False)
        return plan

    def seconds(self, plan: list[tuple[Job, int]]) -> tuple[float, int]:
        """The seconds of a step and its prompt tokens."""
        cached = sequences = tokens = 0
        attended = 0.0
        for job, count in plan:
            if job.decoding:
                sequences += 1
                cached += job.computed
            else:
                tokens += count
                attended += count * (job.computed + count / 2)
        mean = cached / sequences if sequences else 0.0
        seconds = self.server.step_seconds(sequences, mean, tokens, attended / tokens if tokens else 0.0)
        return seconds, tokens


@dataclass(slots=True)
class Run:
    """What was seen: finished requests in the order of their arrival, and each step."""

    jobs: list[Job] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    steps: int = 0
    step_seconds: float = 0.0
    running_seconds: float = 0.0
    waiting_seconds: float = 0.0
    preemptions: int = 0
    end: float = 0.0


def drawn(lengths: Lengths, random_: random.Random) -> tuple[int, int, int]:
    prompt = max(1, round(lengths.prompt * lengths.prompt_spread.quantile(random_.random() * 0.999998 + 1e-6)))
    output = max(1, round(lengths.output * lengths.output_spread.quantile(random_.random() * 0.999998 + 1e-6)))
    return prompt, min(prompt - 1, round(prompt * lengths.prefix_hit)), output


def finish(engine: Engine, plan: list[tuple[Job, int]], now: float, random_: random.Random, run: Run) -> Iterator[Job]:
    """Count the tokens of a step and give the requests that end with it."""
    speculation = engine.server.speculation
    for job, tokens in plan:
        made = 1
        if job.decoding:
            while made <= speculation.tokens and random_.random() < speculation.acceptance:
                made += 1
            made = min(made, job.output - job.made)
            job.computed += made
        else:
            job.computed += tokens
            if job.left > 0:
                continue
        if job.made:
            run.gaps.extend([now - job.last, *([0.0] * (made - 1))])
        else:
            job.first = now
        job.made += made
        job.last = now
        if job.made >= job.output:
            engine.running.remove(job)
            engine.free(job)
            yield job


def simulate(server: Server, lengths: Lengths, arrivals: Arrivals, seed: int, *, staggered: float = 0.0) -> Run:
    """Serve a finite number of requests. `staggered`: seconds over which users begin, instead of all at once."""
    random_ = random.Random(seed)
    engines = [Engine(server) for _ in range(server.replicas)]
    events: list[tuple[float, int, int, Job | int]] = []
    assert arrivals.requests is not None
    sent = 0

    def send(time: float) -> None:
        nonlocal sent
        if sent < arrivals.requests:  # type: ignore[operator]
            heapq.heappush(events, (time + server.overhead_seconds, 0, sent, Job(time, *drawn(lengths, random_))))
            sent += 1

    time = 0.0
    for _index in range(arrivals.requests if not arrivals.users else min(arrivals.requests, int(arrivals.users))):
        if arrivals.rate:
            time += random_.expovariate(arrivals.rate)
        elif staggered:
            time = staggered * random_.random()
        send(time)
    run, plans = Run(), [list[tuple[Job, int]]() for _ in engines]
    while events:
        now, kind, _, event = heapq.heappop(events)
        if isinstance(event, Job):
            min(engines, key=lambda engine: engine.load).coming.append((now, event))
        else:
            engine, engines[event].busy = engines[event], False
            for job in finish(engine, plans[event], now, random_, run):
                run.jobs.append(job)
                run.end = now
                if arrivals.users:
                    send(now)
        if events and events[0][0] == now and events[0][1] <= kind:
            continue
        for number, engine in enumerate(engines):
            if engine.load and not engine.busy:
                engine.look()
                engine.began = now
                plans[number] = engine.planned()
                seconds, _ = engine.seconds(plans[number])
                engine.busy = True
                run.steps += 1
                run.step_seconds += seconds
                run.running_seconds += seconds * len(engine.running)
                run.waiting_seconds += seconds * len(engine.waiting)
                heapq.heappush(events, (now + seconds, 1, number, number))
    run.jobs.sort(key=lambda job: job.arrival)
    run.preemptions = sum(job.preempted for job in run.jobs)
    return run

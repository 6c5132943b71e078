"""Servers, lengths and arrivals drawn with a seed, and what the simulation saw of them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from simulation import Run, simulate

from llmfeas.load.batch import Batch
from llmfeas.load.requests import FIXED, Arrivals, Lengths, Spread
from llmfeas.load.server import SGLANG, TENSORRT_LLM, VLLM, VLLM_V0, Server, Speculation

POLICIES = {"vllm": VLLM, "sglang": SGLANG, "tensorrt-llm": TENSORRT_LLM, "vllm-v0": VLLM_V0}
KINDS = ("rate", "users", "all at once", "cold users", "too fast")
FIGURES = ("ttft p50", "ttft p95", "tpot p50", "tpot p95", "requests/s")


def between(random_: random.Random, low: float, high: float) -> float:
    return math.exp(random_.uniform(math.log(low), math.log(high)))


def drawn_spread(random_: random.Random, *, fixed: bool) -> Spread:
    shape = random_.choice(["uniform", "uniform", "lognormal"] + ["fixed"] * fixed)
    if shape == "fixed":
        return FIXED
    if shape == "uniform":
        return Spread("uniform", random_.choice([0.3, 0.5, 1.0]))
    return Spread("lognormal", random_.uniform(0.4, 1.2))


def drawn_step(random_: random.Random):  # type: ignore[no-untyped-def]
    """A step that reads weights, or is bound by its tokens, with attention to caches and prompts."""
    weights = between(random_, 0.003, 0.04)
    token = weights / between(random_, 100, 600)
    cached = weights * between(random_, 0.2, 2) / 1e5
    attended = token * between(random_, 0.01, 0.2) / 2000
    fixed = weights * random_.uniform(0.05, 0.5)

    def step(sequences: float, mean: float, tokens: float, seen: float) -> float:
        return fixed + max(weights, (sequences + tokens) * token) + sequences * mean * cached + tokens * seen * attended

    return step


def drawn(seed: int, policy: str, *, fixed: bool = True) -> tuple[random.Random, Server, Lengths]:
    """A server under a policy and its lengths; `fixed`: answers may all be equally long."""
    random_ = random.Random(f"{seed} {policy}")
    rules = POLICIES[policy]
    step, prompt_spread, output_spread = (
        drawn_step(random_),
        drawn_spread(random_, fixed=True),
        drawn_spread(random_, fixed=fixed),
    )
    prompt, output = round(between(random_, 64, 6000)), round(between(random_, 16, 500))
    batched = random_.choice([512, 2048, 8192])
    if not rules.chunked:
        batched, prompt = 8192, min(prompt, round(8192 / prompt_spread.quantile(0.99999)))
    lengths = Lengths(
        prompt=prompt,
        output=output,
        prompt_spread=prompt_spread,
        output_spread=output_spread,
        prefix_hit=random_.choice([0.0, 0.0, 0.5]),
    )
    held = prompt + output * (1 + output_spread.squared_variation) / 2
    longest = prompt * prompt_spread.quantile(0.99999) + output * output_spread.quantile(0.99999)
    pool = max(1.5 * longest, held * between(random_, 6, 100)) if random_.random() < 0.5 else math.inf
    server = Server(
        step_seconds=step,
        max_num_seqs=random_.choice([16, 32, 64, 128, 256]),
        max_num_batched_tokens=batched,
        kv_pool_tokens=pool,
        policy=rules,
    )
    if random_.random() < 0.15:
        server = replace(server, replicas=random_.choice([2, 4]))
    if random_.random() < 0.15:
        server = replace(server, speculation=Speculation(random_.choice([2, 4]), random_.uniform(0.3, 0.9)))
    if random_.random() < 0.15:
        server = replace(server, overhead_seconds=random_.uniform(0.001, 0.02))
    server = replace(server, ahead=seed // len(POLICIES) % 2 == 1)
    return random_, server, lengths


def drawn_arrivals(random_: random.Random, server: Server, lengths: Lengths, kind: str, work: float) -> Arrivals:
    """Arrivals of a kind; `work`: answer tokens of all requests together, about."""
    batch = Batch(server, lengths)
    full = batch.most.running * server.replicas
    count = max(100, min(3000, int(work / lengths.output)))
    if kind == "rate":
        return Arrivals(rate=random_.uniform(0.2, 0.95) * batch.most.rate * server.replicas)
    if kind == "users":
        return Arrivals(users=max(1, round(full * between(random_, 0.05, 2))))
    if kind == "all at once":
        return Arrivals(requests=min(count, 1000))
    if kind == "cold users":
        return Arrivals(users=max(1, min(count // 5, round(full * between(random_, 0.05, 2)))), requests=count)
    return Arrivals(rate=batch.most.rate * server.replicas * between(random_, 1.3, 4), requests=count)


def simulated(server: Server, lengths: Lengths, arrivals: Arrivals, seeds: Sequence[int], work: float) -> list[Run]:
    """Runs; a load without end is one of many requests, of which the middle is looked at."""
    if arrivals.requests is not None:
        return [simulate(server, lengths, arrivals, seed) for seed in seeds]
    batch = Batch(server, lengths)
    full = batch.most.running * server.replicas
    count = max(800, int(25 * min(full, arrivals.users or full)), min(5000, int(work / lengths.output)))
    life = 0.0
    if arrivals.users:
        running = min(arrivals.users / server.replicas, batch.most.running)
        life = arrivals.users / (batch.at(running).rate * server.replicas)
    ended = replace(arrivals, requests=count)
    return [simulate(server, lengths, ended, seed, staggered=life) for seed in seeds]


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    return ordered[low] + (place - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def seen(runs: Sequence[Run], *, endless: bool) -> dict[str, tuple[float, float, float]]:
    """The figures of some runs together, each with the quantiles two points below and above it."""
    low, high = (0.25, 0.9) if endless else (0.0, 1.0)
    jobs = [job for run in runs for job in run.jobs[int(low * len(run.jobs)) : int(high * len(run.jobs))]]
    first = [job.ttft for job in jobs]
    token = [job.tpot for job in jobs if job.output > 1]
    rates = []
    for run in runs:
        ends = sorted(job.last for job in run.jobs)
        start, end = (int(low * len(ends)), int(high * len(ends)) - 1) if endless else (None, len(ends) - 1)
        begun = ends[start] if start is not None else 0.0
        rates.append((end - (start or 0) + (start is None)) / (ends[end] - begun))
    rate = sum(rates) / len(rates)
    spans = [
        (quantile(values, share - 0.02), quantile(values, share), quantile(values, share + 0.02))
        for values in (first, token)
        for share in (0.5, 0.95)
    ]
    return dict(zip(FIGURES, [*spans, (rate, rate, rate)], strict=True))

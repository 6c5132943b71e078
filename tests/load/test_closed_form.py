"""The closed form of a load beside the simulation of the scheduler, over random servers, lengths and arrivals."""

from __future__ import annotations

import statistics
from dataclasses import replace
from itertools import pairwise

import pytest
from random_servers import FIGURES, POLICIES, drawn, drawn_arrivals, seen, simulated

from llmfeas.load.batch import Batch
from llmfeas.load.requests import Arrivals, Lengths
from llmfeas.load.serve import load

WORK = 50_000
"""Tokens of the answers of one simulated run, about."""
SETTINGS = 8
NEAR = 0.15


def error(found: float, true: float) -> float:
    return max(found / true, true / found) - 1 if found > 0 and true > 0 else float(found != true)


@pytest.mark.parametrize("kind", ["rate", "users", "all at once"])
def test_the_closed_form_is_near_the_simulation(kind: str) -> None:
    """Medians within 15 %, and most single figures: a p95 where 5 % of the requests wait for a slot jumps."""
    errors: dict[str, list[float]] = {name: [] for name in FIGURES}
    for number in range(SETTINGS):
        policy = list(POLICIES)[number % len(POLICIES)]
        random_, server, lengths = drawn(number, policy, fixed=kind != "users")
        arrivals = drawn_arrivals(random_, server, lengths, kind, WORK)
        runs = simulated(server, lengths, arrivals, range(1), WORK)
        true = seen(runs, endless=arrivals.requests is None)
        found = load(Batch(server, lengths), arrivals)
        ttft, tpot = found.ttft_seconds, found.tpot_seconds
        answers = (ttft.p50, ttft.p95, tpot.p50, tpot.p95, found.requests_per_second)
        for name, answer in zip(FIGURES, answers, strict=True):
            errors[name].append(error(answer, true[name][1]))
    for name in FIGURES:
        assert statistics.median(errors[name]) < NEAR, name
    steady = [each for name in FIGURES if name != "ttft p95" for each in errors[name]]
    assert sum(each < NEAR for each in steady) >= 0.8 * len(steady)


@pytest.mark.parametrize("policy", list(POLICIES))
def test_requests_of_a_single_token_are_served_where_the_pool_binds(policy: str) -> None:
    _, server, _ = drawn(1, policy)
    small = replace(server, kv_pool_tokens=9000.0)
    found = load(Batch(small, Lengths(prompt=2000, output=1)), Arrivals(rate=1e9))
    assert found.requests_per_second > 0
    assert not found.stable


@pytest.mark.parametrize("policy", list(POLICIES))
def test_more_requests_a_second_never_wait_less(policy: str) -> None:
    """Crowds are sampled: read each at its own size, the 95th percentile of a higher rate could fall."""
    _, server, lengths = drawn(7, policy, fixed=True)
    most = load(Batch(server, lengths), Arrivals(rate=1e9)).requests_per_second
    found = [load(Batch(server, lengths), Arrivals(rate=most * share / 40)).tpot_seconds.p95 for share in range(8, 38)]
    assert all(later >= 0.999 * earlier for earlier, later in pairwise(found))

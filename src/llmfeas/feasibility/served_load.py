"""A server under load: what its users wait for and what it gets done, with the ranges of its steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..load.server import Server
from ..load.targets import Targets
from ..ranges import Range, Wait
from ..record import replace
from ..scenario import Scenario
from ..timing.inference import speed_intervals
from ..timing.served import best_load_of, load_of, server_of
from ..workload.serving import answer_tokens, prompt_of
from .result import Percentiles, ServedLoad

if TYPE_CHECKING:
    from ..load.points import Distribution


def served_load(scenario: Scenario) -> ServedLoad:
    """The figures of a load, with ranges: those of the same server with slower and with faster steps.

    Users who wait for their answers slow down with the server: then all times grow alike.
    """
    decoding, reading = speed_intervals(scenario)
    expected = load_of(scenario, decoding.factor, reading.factor)
    if scenario.rate:
        slow = load_of(scenario, decoding.factor / decoding.width, reading.factor / reading.width)
        fast = load_of(scenario, decoding.factor * decoding.width, reading.factor * reading.width)
    else:
        slow, fast = expected.slower(decoding.width), expected.slower(1 / decoding.width)
    value, best = scenario.tables.efficiency.value, best_load_of(scenario)
    first, steady_token = value("load.ttft"), value("load.tpot")
    token = steady_token if scenario.requests is None else value("load.burst")
    free = 1.0 if scenario.rate and expected.stable and scenario.requests is None else token
    written = _range(
        slow.output_tokens_per_second, expected.output_tokens_per_second, fast.output_tokens_per_second, free
    )
    done = _range(slow.requests_per_second, expected.requests_per_second, fast.requests_per_second, free)
    # of users who ask one request after the other as many are finished as the cache lets begin, at any length
    low, middle, high = (max(each.largest_rate, each.requests_per_second) for each in (slow, expected, fast))
    largest = _range(low, middle, high, steady_token)
    return ServedLoad(
        ttft_seconds=_percentiles(
            fast.ttft_seconds, expected.ttft_seconds, slow.ttft_seconds, first, best.ttft_seconds
        ),
        tpot_seconds=_percentiles(
            fast.tpot_seconds, expected.tpot_seconds, slow.tpot_seconds, token, best.tpot_seconds
        ),
        output_tokens_per_second=_no_more(written, best.output_tokens_per_second),
        requests_per_second=_no_more(done, best.requests_per_second),
        waiting=_finite(fast.waiting, expected.waiting, slow.waiting),
        running=_range(fast.running, expected.running, slow.running),
        largest_requests_per_second=_no_more(largest, best.largest_rate),
        bound_by=expected.bound_by,
        prompt_tokens=prompt_of(scenario),
        answer_tokens=answer_tokens(scenario),
        is_stable=expected.stable,
    )


def judged_servers(scenario: Scenario, targets: Targets, *, sure: bool) -> list[tuple[Server, Targets]]:
    """The servers by which a verdict judges a load, each with the targets that it is to keep.

    The expected one; where it is to be `sure` that one within the least ranges of its waits, and the slow one.
    """
    decoding, reading = speed_intervals(scenario)
    expected = server_of(scenario, decoding.factor, reading.factor)
    if not sure:
        return [(expected, targets)]
    value = scenario.tables.efficiency.value
    token = value("load.tpot") if scenario.requests is None else value("load.burst")
    within = replace(
        targets,
        ttft_seconds=targets.ttft_seconds and targets.ttft_seconds / value("load.ttft"),
        tpot_seconds=targets.tpot_seconds and targets.tpot_seconds / token,
    )
    slow = server_of(scenario, decoding.factor / decoding.width, reading.factor / reading.width)
    return [(expected, within), (slow, targets)]


def _percentiles(
    fast: Distribution, expected: Distribution, slow: Distribution, width: float, best: Distribution
) -> Percentiles:
    return Percentiles(
        p50=_finite(fast.p50, expected.p50, slow.p50, width, best.p50),
        p95=_finite(fast.p95, expected.p95, slow.p95, width, best.p95),
    )


def _range(one: float, expected: float, other: float, width: float = 1.0) -> Range:
    """A range that reaches at least a factor to both sides; the discrete steps of a queue may turn its ends."""
    return Range(min(one, expected / width, other), expected, max(one, expected * width, other))


def _no_more(found: Range, best: float) -> Range:
    """The same without what beats the best server; which steps meet in a queue may do so by a few per cent."""
    return found.at_most(max(best, found.expected))


def _finite(one: float, expected: float, other: float, width: float = 1.0, least: float = 0.0) -> Wait | None:
    """The same where the expected value is finite; an end that is not is none; none is below `least`."""
    if not math.isfinite(expected):
        return None
    found = _range(one, expected, other, width).at_least(min(least, expected))
    return Wait(found.low, found.expected, found.high if math.isfinite(found.high) else None)

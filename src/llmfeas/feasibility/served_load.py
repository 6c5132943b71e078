"""A server under load: what its users wait for and what it gets done, from the seconds of its steps."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from ..findings import cached_across_batches
from ..load.batch import Batch
from ..load.disaggregated import disaggregated
from ..load.figures import Load
from ..load.requests import Arrivals
from ..load.serve import load
from ..load.server import POLICIES, Server, Speculation, StepSeconds
from ..load.steady import FULL
from ..load.targets import Targets
from ..memory.inference import inference_memory
from ..memory.peak import memory
from ..memory.usable import usable_bytes
from ..ranges import Range, Wait
from ..record import dataclass, replace
from ..scenario import Scenario
from ..timing.decode import passes_at_once
from ..timing.inference import speed_intervals
from ..timing.links import device_links
from ..timing.passes import least_step_seconds, step_seconds
from ..workload.cache import kv_cache_bytes
from ..workload.lengths import lengths_of
from ..workload.serving import cached_value_bytes, peers, replicas, widest_pass_tokens
from .result import Percentiles, ServedLoad

if TYPE_CHECKING:
    from ..load.points import Distribution

SLOTS, PASS_TOKENS = 256, 2048
"""Requests and tokens of a step of an engine that has no such settings."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What bounds a replica's batch."""

    max_num_seqs: int
    max_num_batched_tokens: int
    kv_pool_tokens: float
    page_tokens: int


def served_load(scenario: Scenario) -> ServedLoad:
    """The figures of a load, with ranges: those of the same server with slower and with faster steps.

    Users who wait for their answers slow down with the server: then all times grow alike.
    """
    decoding, reading = speed_intervals(scenario)
    expected = _load(scenario, decoding.factor, reading.factor)
    if scenario.rate:
        slow = _load(scenario, decoding.factor / decoding.width, reading.factor / reading.width)
        fast = _load(scenario, decoding.factor * decoding.width, reading.factor * reading.width)
    else:
        slow, fast = expected.slower(decoding.width), expected.slower(1 / decoding.width)
    value, best = scenario.tables.efficiency.value, _best(scenario)
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
        is_stable=expected.stable,
    )


def keeps_up(scenario: Scenario) -> bool:
    """Whether the expected figures keep up with the requests and to the targets: the verdict of a load without its
    ranges and reasons, at a quarter of the work.
    """
    decoding, reading = speed_intervals(scenario)
    if scenario.rate and scenario.requests is None and scenario.disaggregate is None:
        batch = _batch(scenario, *_of_users(scenario), decoding.factor, reading.factor)
        if scenario.rate >= FULL * batch.most.rate * batch.server.replicas:
            return False
    found = _load(scenario, decoding.factor, reading.factor)
    targets = Targets(ttft_seconds=scenario.ttft_seconds, tpot_seconds=scenario.tpot_seconds)
    return (found.stable or scenario.requests is not None) and not targets.missed(found)


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


def _load(scenario: Scenario, decode_factor: float, read_factor: float) -> Load:
    batch = _batch(scenario, *_of_users(scenario), decode_factor, read_factor)
    return _followed(scenario, batch)


def _best(scenario: Scenario) -> Load:
    """The load at the same server if its steps took no longer than the stated peaks of its devices allow."""
    return _followed(scenario, _best_batch(scenario, *_of_users(scenario)))


def _followed(scenario: Scenario, batch: Batch) -> Load:
    arrivals = arrivals_of(scenario)
    if scenario.disaggregate is not None:
        prompts, answers = (count // (scenario.tp * scenario.pp * peers(scenario)) for count in scenario.pools)
        readers, writers = (replace(batch.server, replicas=copies) for copies in (prompts, answers))
        return disaggregated(readers, writers, batch.lengths, arrivals, transfer_seconds(scenario))
    return load(batch, arrivals)


def _of_users(scenario: Scenario) -> tuple[int, int | None, float]:
    """What a batch takes from the number of users: requests at once, those of the server, the spread of lengths."""
    return _most_at_once(scenario), scenario.max_num_seqs, scenario.length_spread


@cached_across_batches
def _batch(
    scenario: Scenario, _at_once: int, _seqs: int | None, _spread: float, decode_factor: float, read_factor: float
) -> Batch:
    """The same for every number of users, who may widen what the server runs at once."""
    return Batch(server_of(scenario, decode_factor, read_factor), lengths_of(scenario))


@cached_across_batches
def _best_batch(scenario: Scenario, _at_once: int, _seqs: int | None, _spread: float) -> Batch:
    server = server_of(scenario)
    steps = least_step_seconds(scenario, server.max_num_seqs, server.max_num_batched_tokens)
    return Batch(replace(server, step_seconds=steps, overhead_seconds=0.0), lengths_of(scenario))


def _most_at_once(scenario: Scenario) -> int:
    """Requests that one replica runs at once at most: at a rate no more than the requests at once that were given.

    Copies that share experts are one replica.
    """
    seqs = scenario.max_num_seqs or SLOTS
    if scenario.rate and scenario.was_given("concurrency"):
        seqs = min(seqs, -(-scenario.concurrency // replicas(scenario)))
    return seqs * peers(scenario)


def _percentiles(
    fast: Distribution, expected: Distribution, slow: Distribution, width: float, best: Distribution
) -> Percentiles:
    return Percentiles(
        p50=_finite(fast.p50, expected.p50, slow.p50, width, best.p50),
        p95=_finite(fast.p95, expected.p95, slow.p95, width, best.p95),
    )


def transfer_seconds(scenario: Scenario) -> float:
    """Seconds to bring the cache of a prompt from the devices that read it to those that go on.

    Each device of one sends its part to one of the other; over the network where one machine does not hold both.
    """
    numbers, device = scenario.tables.efficiency, scenario.device
    links = device_links(numbers, device, scenario.devices_per_node, scenario.network_bytes_per_s)
    near = scenario.num_devices <= scenario.devices_per_node
    rate = links.pair_bytes_per_s if near else links.network_bytes_per_s
    value = cached_value_bytes(scenario)
    return kv_cache_bytes(scenario.model.architecture, scenario.prompt, 1, value) / (rate * scenario.tp * scenario.pp)


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


def arrivals_of(scenario: Scenario) -> Arrivals:
    """How requests come: at a rate, else from as many users as are served at once."""
    if scenario.rate:
        return Arrivals(rate=scenario.rate, requests=scenario.requests)
    return Arrivals(users=float(scenario.concurrency), requests=scenario.requests)


def server_of(scenario: Scenario, decode_factor: float = 1.0, read_factor: float = 1.0) -> Server:
    """The engine as its scheduler sees it, with steps that are faster by factors than computed."""
    limits, policy = limits_of(scenario), POLICIES[scenario.engine_record.serving.scheduler]
    if not policy.chunked:  # who serves such prompts has made room for a whole one beside those who decode
        whole = peers(scenario) * scenario.prompt + limits.max_num_seqs
        limits = replace(limits, max_num_batched_tokens=max(limits.max_num_batched_tokens, whole))
    steps = step_seconds(scenario, limits.max_num_seqs, limits.max_num_batched_tokens)
    if not decode_factor == read_factor == 1.0:
        steps = partial(_faster, steps, decode_factor, read_factor)
    return Server(
        step_seconds=steps,
        max_num_seqs=_most_at_once(scenario),
        max_num_batched_tokens=limits.max_num_batched_tokens,
        kv_pool_tokens=limits.kv_pool_tokens,
        page_tokens=limits.page_tokens,
        policy=policy,
        replicas=max(1, replicas(scenario) // peers(scenario)),
        speculation=Speculation(scenario.drafted, scenario.acceptance or 0.0),
        overhead_seconds=scenario.tables.efficiency.value("prefill.request"),
    )


def _faster(
    steps: StepSeconds, decode: float, read: float, sequences: float, cached: float, tokens: float, attended: float
) -> float:
    """A step of which the decoding and the rest are each faster by a factor."""
    if tokens <= 0.0:
        return steps(sequences, cached, 0.0, 0.0) / decode
    alone = steps(sequences, cached, 0.0, 0.0) if sequences > 0.0 else 0.0
    return alone / decode + max(0.0, steps(sequences, cached, tokens, attended) - alone) / read


def limits_of(scenario: Scenario) -> BatchLimits:
    """What the engine's settings and the memory leave for a batch of one replica.

    Where not even one request fits, the room is without bound: figures are those of a server that had it.
    """
    behaviour = scenario.engine_record.serving.memory
    one = scenario.with_batch({"concurrency": replicas(scenario)}, {})
    counted = memory(one)
    if counted.serving is not None:
        room = counted.serving.kv_pool_tokens.expected
    else:
        free = usable_bytes(scenario) - counted.memory.peak_bytes.expected + counted.memory.components["kv_cache_bytes"]
        held = inference_memory(one).cache_bytes / (scenario.context or 1)
        room = free / held if held else math.inf
    copies = peers(scenario)
    return BatchLimits(
        max_num_seqs=copies * (scenario.max_num_seqs or SLOTS),
        max_num_batched_tokens=copies * passes_at_once(scenario) * (widest_pass_tokens(scenario) or PASS_TOKENS),
        kv_pool_tokens=copies * room if room >= (scenario.context or 1) else math.inf,
        page_tokens=behaviour.block_tokens,
    )

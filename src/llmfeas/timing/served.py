"""A model's server under load: its scheduler, its batch, and what requests wait for at the speed of its steps."""

from __future__ import annotations

import math
from functools import partial

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
from ..memory.written_requests import loaded_tokens
from ..record import dataclass, replace
from ..scenario import Scenario
from ..workload.cache import kv_cache_bytes
from ..workload.lengths import lengths_of
from ..workload.serving import cached_value_bytes, peers, pool_of, replicas, widest_pass_tokens
from .decode import passes_at_once
from .inference import speed_intervals
from .links import device_links
from .passes import least_step_seconds, step_seconds

SLOTS, PASS_TOKENS = 256, 2048
"""Requests and tokens of a step of an engine that has no such settings."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What bounds a replica's batch."""

    max_num_seqs: int
    max_num_batched_tokens: int
    kv_pool_tokens: float
    page_tokens: int


def keeps_up(scenario: Scenario) -> bool:
    """Whether the expected figures keep up with the requests and to the targets: the verdict of a load without its
    ranges and reasons, at a quarter of the work.
    """
    decoding, reading = speed_intervals(scenario)
    if scenario.rate and scenario.requests is None and scenario.disaggregate is None:
        batch = _batch(scenario, *_of_users(scenario), decoding.factor, reading.factor)
        if scenario.rate >= FULL * batch.most.rate * batch.server.replicas:
            return False
    found = load_of(scenario, decoding.factor, reading.factor)
    return (found.stable or scenario.requests is not None) and not _targets(scenario).missed(found)


def share_of_targets(scenario: Scenario) -> float:
    """What the expected figures take of the tighter target; without one, the seconds of a token."""
    decoding, reading = speed_intervals(scenario)
    found = load_of(scenario, decoding.factor, reading.factor)
    return max(_targets(scenario).shares(found).values(), default=found.tpot_seconds.p95)


def _targets(scenario: Scenario) -> Targets:
    return Targets(ttft_seconds=scenario.ttft_seconds, tpot_seconds=scenario.tpot_seconds)


def load_of(scenario: Scenario, decode_factor: float, read_factor: float) -> Load:
    """The load at the server whose steps are faster by factors than computed."""
    batch = _batch(scenario, *_of_users(scenario), decode_factor, read_factor)
    return _followed(scenario, batch)


def best_load_of(scenario: Scenario) -> Load:
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


def arrivals_of(scenario: Scenario) -> Arrivals:
    """How requests come: at a rate, else from as many users as are served at once."""
    if scenario.rate:
        return Arrivals(rate=scenario.rate, requests=scenario.requests)
    return Arrivals(users=float(scenario.concurrency), requests=scenario.requests)


def server_of(scenario: Scenario, decode_factor: float = 1.0, read_factor: float = 1.0) -> Server:
    """The engine as its scheduler sees it, with steps that are faster by factors than computed."""
    limits, policy = limits_of(scenario), POLICIES[scenario.engine_record.serving.scheduler]
    pool = pool_of(scenario)
    if not policy.chunked:  # who serves such prompts has made room for a whole one beside those who decode
        whole = peers(scenario) * scenario.prompt + limits.max_num_seqs
        limits = replace(limits, max_num_batched_tokens=max(limits.max_num_batched_tokens, whole))
    steps = step_seconds(scenario, limits.max_num_seqs, limits.max_num_batched_tokens)
    if not decode_factor == read_factor == 1.0:
        steps = partial(_faster, steps, decode_factor, read_factor)
    return Server(
        step_seconds=steps,
        max_num_seqs=min(_most_at_once(scenario), limits.max_num_seqs),
        max_num_batched_tokens=limits.max_num_batched_tokens,
        kv_pool_tokens=limits.kv_pool_tokens,
        page_tokens=limits.page_tokens,
        policy=policy,
        replicas=max(1, replicas(scenario) // peers(scenario)),
        speculation=Speculation(scenario.drafted, scenario.acceptance or 0.0),
        overhead_seconds=scenario.tables.efficiency.value("prefill.request"),
        ahead=pool is not None and pool.ahead,
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
    most = scenario.max_num_seqs or SLOTS
    if counted.serving is not None:
        room, most = counted.serving.kv_pool_tokens.expected, min(most, counted.serving.most_at_once)
        if room >= (one.context or 1) and one.model.architecture.window is not None:
            room = loaded_tokens(one, counted.serving.kv_pool_bytes.expected)
    else:
        free = usable_bytes(scenario) - counted.memory.peak_bytes.expected + counted.memory.components["kv_cache_bytes"]
        held = inference_memory(one).cache_bytes / (scenario.context or 1)
        room = free / held if held else math.inf
    copies = peers(scenario)
    return BatchLimits(
        max_num_seqs=copies * most,
        max_num_batched_tokens=copies * passes_at_once(scenario) * (widest_pass_tokens(scenario) or PASS_TOKENS),
        kv_pool_tokens=copies * room if room >= (scenario.context or 1) else math.inf,
        page_tokens=behaviour.block_tokens,
    )

"""The derivation of what is no tensor: the driver's context, what an engine allocates, slack of its allocator."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..memory.peak import Memory
from ..memory.runtime import (
    bucket_bytes,
    context_bytes,
    divided_bytes,
    growth_of,
    moving_bytes,
    overhead_of,
    own_memory,
)
from ..memory.serving_room import counted_graph_bytes
from ..memory.training import training_memory
from ..scenario import Scenario
from ..workload.serving import pool_of
from .result import TermInput
from .terms import number

RUNTIME, ENGINES = "data/runtime.yaml", "data/engines.yaml"
Summands = Iterator[tuple[str, tuple[TermInput, ...]]]
"""What adds up: numbers, or products of two, each with the numbers in it."""


def runtime_formula(scenario: Scenario, memory: Memory) -> tuple[str, tuple[TermInput, ...]]:
    """What adds up to the bytes that are no tensors; a remainder where something else was taken into account."""
    value = memory.components["runtime_bytes"]
    if scenario.is_training:
        summands = list(_of_training(scenario, memory))
    else:
        summands = list(_of_server(scenario, value) if pool_of(scenario) else _of_inference(scenario, memory))
    formula = " + ".join(each for each, _ in summands)
    inputs = tuple(entry for _, entries in summands for entry in entries)
    more = value - sum(math.prod(float(str(entry.value)) for entry in entries) for _, entries in summands)
    if abs(more) <= 1e-7 * value:
        return formula, inputs
    if own_memory(scenario) is not None:
        return f"{formula} + measured", (*inputs, number("measured", more, "bytes", "own measurements"))
    return f"{formula} - given_back", (*inputs, number("given_back", -more, "bytes", "derived"))


def _of_training(scenario: Scenario, memory: Memory) -> Summands:
    overhead = overhead_of(scenario)
    yield "context", (number("context", context_bytes(scenario), "bytes", RUNTIME),)
    if overhead.fixed_bytes:
        yield "fixed", (number("fixed", overhead.fixed_bytes, "bytes", ENGINES),)
    if buckets := bucket_bytes(overhead, divided_bytes(scenario)):
        yield "buckets", (number("buckets", buckets, "bytes", ENGINES),)
    if overhead.gaps:
        moving = moving_bytes(training_memory(scenario).components)
        yield "gaps * moving", (number("gaps", overhead.gaps, "", ENGINES), number("moving", moving, "bytes"))
    if share := growth_of(scenario):
        # Of what is free without it: (usable - all) = (1 - share) free.
        free = max(memory.usable_bytes - sum(memory.components.values()), 0.0) / (1.0 - share)
        yield "grows * free", (number("grows", share, "", ENGINES), number("free", free, "bytes"))


def _of_inference(scenario: Scenario, memory: Memory) -> Summands:
    behaviour = scenario.engine_record.serving.memory
    yield "context", (number("context", context_bytes(scenario), "bytes", RUNTIME),)
    if behaviour.fixed_bytes:
        yield "fixed", (number("fixed", behaviour.fixed_bytes, "bytes", ENGINES),)
    if behaviour.cache_slack:
        cache = number("cache", memory.components["kv_cache_bytes"], "bytes")
        yield "cache_slack * cache", (number("cache_slack", behaviour.cache_slack, "", ENGINES), cache)
    if behaviour.slack:
        held = sum(size for name, size in memory.components.items() if name != "runtime_bytes")
        yield "slack * tensors", (number("slack", behaviour.slack, "", ENGINES), number("tensors", held, "bytes"))


def _of_server(scenario: Scenario, value: float) -> Summands:
    """Contexts lie outside of a server's share."""
    graphs = counted_graph_bytes(scenario)
    yield "outside", (number("outside", value - graphs, "bytes", ENGINES),)
    if graphs:
        yield "graphs", (number("graphs", graphs, "bytes", ENGINES),)

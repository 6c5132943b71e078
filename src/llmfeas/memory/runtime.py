"""What no tensor accounts for: contexts, libraries, workspaces, allocator slack; and how sure a peak is."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, hypot

from ..catalog.efficiency import Own
from ..catalog.engine import ServingMemory, TrainingOverhead
from ..derivation import ENGINES, Say, plain
from ..ranges import Range
from ..scenario import Scenario
from ..workload.kernels import runs_fused
from ..workload.parameters import parameters_of
from .usable import usable_bytes

NORMAL_90 = 1.2816
"""Ninetieth percentile of the normal distribution: 80 % lie between it and its negative."""

STEADY = ("weights_bytes", "optimizer_bytes", "kv_cache_bytes")
"""Components that are laid out once; what comes and goes leaves gaps in the allocator's blocks."""


def context_bytes(scenario: Scenario) -> float:
    """The driver's context, and for a training on a CPU the program that runs it."""
    table, backend = scenario.tables.runtime, scenario.device.backend
    return table.contexts[backend] + (table.programs.get(backend, 0.0) if scenario.is_training else 0.0)


def overheads(scenario: Scenario, components: Mapping[str, float], say: Say = plain) -> tuple[float, float]:
    """The expected bytes beyond tensors, whose sizes at the peak are `components`, and the driver's context: what is
    allocated, and what the allocator holds besides.

    What counts as allocated holds no slack or gaps, what is reserved no context.
    Source: data/engines.yaml.
    """
    if scenario.is_training:
        return training_overhead(overhead_of(scenario), components, divided_bytes(scenario), say)
    return inference_overhead(scenario.engine_record.serving.memory, components, say)


def inference_overhead(
    behaviour: ServingMemory, components: Mapping[str, float], say: Say = plain
) -> tuple[float, float]:
    """Bytes that an engine allocates beyond what was counted, and those that its allocator holds besides."""
    slack, fixed = 0.0, say("fixed", behaviour.fixed_bytes, "bytes", ENGINES) if behaviour.fixed_bytes else 0.0
    if behaviour.cache_slack:
        cache = say("cache", components.get("kv_cache_bytes", 0.0), "bytes")
        fixed += say("cache_slack", behaviour.cache_slack, "", ENGINES) * cache
    if behaviour.slack:
        slack = say("slack", behaviour.slack, "", ENGINES) * say("tensors", sum(components.values()), "bytes")
    return fixed, slack


def training_overhead(
    overhead: TrainingOverhead, components: Mapping[str, float], divided: float, say: Say = plain
) -> tuple[float, float]:
    """Bytes that a framework allocates beyond what was counted, and those that its allocator holds besides."""
    gaps, fixed = 0.0, say("fixed", overhead.fixed_bytes, "bytes", ENGINES) if overhead.fixed_bytes else 0.0
    if buckets := bucket_bytes(overhead, divided):
        fixed += say("buckets", buckets, "bytes", ENGINES)
    if overhead.gaps:
        gaps = say("gaps", overhead.gaps, "", ENGINES) * say("moving", moving_bytes(components), "bytes")
    return fixed, gaps


def bucket_bytes(overhead: TrainingOverhead, divided: float) -> float:
    """Bytes of buckets and prefetched shards: no more than the `divided` bytes that there are, but where a framework
    makes them in full size whatever is trained.
    """
    whole = overhead.whole_buckets and divided
    return overhead.sharded_bytes if whole else min(overhead.sharded_bytes, divided)


def moving_bytes(components: Mapping[str, float]) -> float:
    """Bytes of what comes and goes in a step."""
    return sum(size for name, size in components.items() if name not in STEADY)


def runtime_memory(scenario: Scenario, components: Mapping[str, float]) -> Range:
    """The bytes beyond tensors with their range: added to the tensors it holds 80 % of measured peaks.

    What an allocator holds beyond tensors it gives back before it fails: a peak that is too large by no more than that
    fills the memory, and only what cannot be given back exceeds it; so does what it grows by. The low end is negative
    where software may keep less than the tensors that were counted. Width: exp(1.28 sigma) to both sides of the peak,
    sigma the spread of left-out groups. Sources: data/engines.yaml, runtime.yaml;
    https://docs.pytorch.org/docs/stable/notes/cuda.html (cached blocks are freed before an allocation fails).
    """
    return on_device(scenario, anywhere(scenario, components))


Anywhere = tuple[float, float, float, float]
"""Bytes of tensors, of all together, of what of that the allocator can give back, and the factor of the range."""


def anywhere(scenario: Scenario, components: Mapping[str, float], kernels: float = 0.0) -> Anywhere:
    """What a peak comes to on any device of the backend, however much memory it has; `kernels`: bytes inside those."""
    tensors = sum(components.values())
    fixed, allocator = overheads(scenario, components)
    expected = tensors + kernels + fixed + allocator + context_bytes(scenario)
    weights = components.get("weights_bytes", 0.0) / max(tensors, 1.0)
    return tensors, expected, allocator, peak_width(scenario, weights)


def on_device(scenario: Scenario, peak: Anywhere) -> Range:
    """The bytes beyond tensors of such a peak on the device at hand (`runtime_memory`)."""
    tensors, expected, allocator, width = peak
    own = own_memory(scenario)
    if own is not None:
        expected, width = expected * own.factor, own.width
    usable = usable_bytes(scenario)
    squeezed = expected if expected <= usable else max(usable, expected - allocator)
    grown = growth_of(scenario) * max(usable - squeezed, 0.0)
    high = max(expected * width, squeezed + 2 * grown)
    return Range(squeezed / width - tensors, squeezed + grown - tensors, high - tensors)


def growth_of(scenario: Scenario) -> float:
    """Share of the free memory that the allocator comes to hold, and gives back before it fails: routed experts on
    several devices get another number of rows each time, for which no block that it holds may be large enough. Beside
    a server there is none to take.
    """
    alone = scenario.objective is None or not scenario.objective.rollouts
    varies = scenario.is_training and scenario.ep > 1 and not scenario.engine_record.training.balanced
    return overhead_of(scenario).grows if varies and alone else 0.0


def own_memory(scenario: Scenario) -> Own | None:
    """What the user's own measurements of peak memory say of this device and engine, None where there are none."""
    return scenario.tables.efficiency.own(scenario.device.id, "memory", scenario.engine)


def peak_width(scenario: Scenario, weights: float = 0.0) -> float:
    """The factor to both sides of a peak between which 80 % of measurements lie; `weights`: their share of it."""
    if scenario.is_training:
        return _training_width(scenario, is_sharded(scenario))
    spread = scenario.engine_record.serving.memory.log_spread
    return exp(NORMAL_90 * hypot(spread, weights * _file_spread(scenario)))


def _file_spread(scenario: Scenario) -> float:
    """How much files of a format's name differ from model to model, where the file itself is not here."""
    if scenario.stored is not None:
        return 0.0
    return scenario.tables.quantization.format(scenario.quant, scenario.engine_record.speaks).spread


def _training_width(scenario: Scenario, sharded: bool) -> float:
    overhead, adapters = overhead_of(scenario), None
    if scenario.trains_adapters:
        adapters = overhead.sharded_adapters_log_spread if sharded else overhead.adapters_log_spread
    every = overhead.sharded_log_spread if sharded else overhead.log_spread
    return exp(NORMAL_90 * (every if adapters is None else adapters))


def overhead_of(scenario: Scenario) -> TrainingOverhead:
    """What the framework that runs a training scenario holds beside tensors."""
    held = scenario.engine_record.training.memory
    return held.divided if held.divided is not None and runs_fused(scenario) else held


def divided_bytes(scenario: Scenario) -> float:
    """The bytes that can be under way at once where ranks divide gradients (ZeRO 2) or weights too (ZeRO 3), else 0."""
    if not is_sharded(scenario):
        return 0.0
    counts = parameters_of(scenario)
    elements = counts.trainable + (counts.total if scenario.zero >= 3 else 0)
    return 4.0 * elements / (scenario.tp * scenario.pp)


def is_sharded(scenario: Scenario) -> bool:
    """Whether ranks divide weights or gradients among them."""
    return scenario.zero >= 2 and scenario.dp > 1

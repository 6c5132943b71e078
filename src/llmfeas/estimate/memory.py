"""Memory of one device: tensors of the step or the serving, plus what is no tensor, beside what is usable."""

from __future__ import annotations

from ..ranges import Range
from ..record import dataclass
from ..scenario import Scenario, whatever_the_batch
from .inference_memory import inference_memory
from .result import Memory, Note, components_of
from .runtime_memory import runtime_memory
from .stacks import stack_notes
from .training_memory import training_memory
from .usable_memory import usable_bytes
from .weights import weights_file_bytes

APPROXIMATE_FACTOR = 1.15
"""Spread of a peak where the walk is that of the nearest family: a prior, no measurement speaks for it."""


@dataclass(frozen=True, slots=True)
class CountedMemory:
    """Memory and what the user should know about how it was counted."""

    memory: Memory
    notes: tuple[Note, ...] = ()


def memory(scenario: Scenario) -> CountedMemory:
    """Count the bytes at the peak of one step (training) or of prefill and decode (inference), per device."""
    return _training(scenario) if scenario.is_training else _serving(scenario)


def _training(scenario: Scenario) -> CountedMemory:
    tensors = training_memory(scenario)
    runtime = runtime_memory(scenario, tensors.components)
    peak = runtime.shifted(tensors.bytes)
    notes: tuple[Note, ...] = ()
    if tensors.approximate:
        peak = Range(peak.low / APPROXIMATE_FACTOR, peak.expected, peak.high * APPROXIMATE_FACTOR)
        notes = (Note("memory-approximate", tensors.approximate),)
    found = Memory(
        components=components_of({**tensors.components, "runtime_bytes": runtime.expected}),
        peak_bytes=peak,
        peak_moment=tensors.moment,
        runner_up_moment=tensors.runner_up,
        kv_cache_bytes=0.0,
        weights_file_bytes=_file_bytes(scenario),
        host_bytes=tensors.host_bytes,
        capacity_bytes=scenario.memory_bytes,
        usable_bytes=usable_bytes(scenario),
    )
    return CountedMemory(found, (*notes, *stack_notes(scenario)))


def _serving(scenario: Scenario) -> CountedMemory:
    tensors = inference_memory(scenario)
    runtime = runtime_memory(scenario, tensors.components)
    found = Memory(
        components=components_of({**tensors.components, "runtime_bytes": runtime.expected}),
        peak_bytes=runtime.shifted(tensors.bytes),
        peak_moment=tensors.moment,
        runner_up_moment=tensors.runner_up,
        kv_cache_bytes=tensors.kv_cache_bytes,
        weights_file_bytes=_file_bytes(scenario),
        host_bytes=tensors.host_bytes,
        capacity_bytes=scenario.memory_bytes,
        usable_bytes=usable_bytes(scenario),
    )
    return CountedMemory(found, stack_notes(scenario))


@whatever_the_batch
def _file_bytes(scenario: Scenario) -> float:
    if scenario.stored is not None:
        return float(scenario.stored.file_bytes)
    return weights_file_bytes(
        scenario.tables.quantization, scenario.model, scenario.precision, scenario.quant, scenario.engine_record.speaks
    )


def peak_bytes(scenario: Scenario) -> Range:
    """Give the peak alone, for searches over recipes."""
    return memory(scenario).memory.peak_bytes

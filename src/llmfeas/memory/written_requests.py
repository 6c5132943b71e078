"""What the requests of a load hold of a server's cache: no more than they have written so far."""

from __future__ import annotations

from math import ceil, inf

from ..findings import cached_across_batches
from ..load.batch import entry_tokens, held_tokens
from ..load.server import POLICIES
from ..record import dataclass, replace
from ..scenario import Scenario
from ..workload.lengths import lengths_of
from ..workload.serving import pool_of, sequences_of
from .inference import InferenceMemory, inference_memory


@dataclass(frozen=True, slots=True)
class WrittenRequests:
    """Requests of a load that goes on, on one copy of a model."""

    tokens: float
    """That one holds, mean over time."""
    request_bytes: float
    """Its cache on one device."""
    free_bytes: float
    """What is free on average where the cache is full, because the next request does not fit."""


def written_requests(scenario: Scenario) -> WrittenRequests | None:
    """What requests hold where each is at another place of its answer (`--cache-held written`).

    None where they reserve the room of the whole context: as was asked, in a pool that is no server's, or where all
    begin together.
    """
    whole = scenario.cache_held == "whole" or scenario.requests is not None
    if pool_of(scenario) is None or not scenario.has_load or whole:
        return None
    lengths, policy = lengths_of(scenario), POLICIES[scenario.engine_record.serving.scheduler]
    held = held_tokens(lengths, policy, scenario.engine_record.serving.memory.block_tokens, scenario.drafted)
    if held >= (scenario.context or 1):
        return None
    each, read = while_writing(scenario, ceil(held))
    return WrittenRequests(held, each, each * entry_tokens(lengths, policy) / held + read)


@cached_across_batches
def while_writing(scenario: Scenario, tokens: int) -> tuple[float, float]:
    """Bytes on one device of a request that writes after so many tokens, and what prompts hold more while one pass
    reads them.

    A windowed layer keeps the pages of its window and gives back those before (vLLM, single_type_kv_cache_manager.py,
    remove_skipped_blocks); of a prompt it holds all tokens of the pass, which all prompts that are read share.
    """
    window, sequences = scenario.model.architecture.window, sequences_of(scenario)
    asked = replace(scenario, context=tokens)
    if window is None or not window.in_cache:
        return inference_memory(asked).cache_bytes / sequences, 0.0
    each = inference_memory(replace(asked, max_num_batched_tokens=1)).cache_bytes / sequences
    return each, inference_memory(asked).cache_bytes / sequences - each


def loaded_tokens(scenario: Scenario, pool_bytes: float) -> float:
    """Tokens of requests of a load, each at another place of its answer, that fill so many bytes on each device.

    Without bound where requests hold nothing there.
    """
    tokens = min(ceil(lengths_of(scenario).written()), scenario.context or 1)
    each, read = while_writing(scenario, tokens)
    return max(pool_bytes - read, each) / each * tokens if each else inf


def with_written(scenario: Scenario, found: InferenceMemory) -> tuple[InferenceMemory, WrittenRequests | None]:
    """The memory of a server with what the requests of its load hold, and that; unchanged where they hold all."""
    written = written_requests(scenario)
    return (found, None) if written is None else (as_written(found, sequences_of(scenario), written), written)


def as_written(found: InferenceMemory, sequences: int, requests: WrittenRequests) -> InferenceMemory:
    """The memory of a server whose requests hold what they have written, at most their whole contexts."""
    cache = min(sequences * requests.request_bytes + requests.free_bytes, found.cache_bytes)
    less = found.cache_bytes - cache
    return replace(
        found,
        bytes=found.bytes - less,
        components={**found.components, "kv_cache_bytes": found.components["kv_cache_bytes"] - less},
        moments={name: moment - less for name, moment in found.moments.items()},
        cache_bytes=cache,
    )

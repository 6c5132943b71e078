"""What a layout leaves open beside tensors and stages: who shares experts, chunks of a stage, what is recomputed."""

from __future__ import annotations

from collections.abc import Iterator

from ..record import replace
from ..scenario import Scenario
from ..workload.kernels import runs_fused
from .draft import Draft
from .valid_layout import PLACES_OF_ENDS, divisors

MOST_CHUNKS = 8
"""Chunks of layers a stage that nobody asked for."""


def _expert_sizes(scenario: Scenario) -> list[int]:
    """The expert-parallel sizes that divide experts and data-parallel ranks, the largest first, down to a node's."""
    experts, s = scenario.model.architecture.experts, scenario
    if experts is None or s.num_devices == 1:
        return [1]
    ranks = max(1, s.num_devices // (s.tp * s.pp))
    largest, *sizes = (size for size in reversed(divisors(experts.count, ranks)) if ranks % size == 0)
    return [largest, *(size for size in sizes if size >= s.devices_per_node)]


def _chunk_counts(scenario: Scenario) -> list[int]:
    """The numbers of chunks that a stage can hold where nobody says, the most first: tuned engines interleave.

    Chunks hold equal numbers of layers, where embedding and head may stand for one each.
    """
    if scenario.pp == 1 or scenario.engine_record.training.style == "plain":
        return [1]
    layers, counts = scenario.model.architecture.layers, range(MOST_CHUNKS, 1, -1)
    places = (layers, layers + PLACES_OF_ENDS)
    return [*(each for each in counts if any(number % (scenario.pp * each) == 0 for number in places)), 1]


def recomputations(scenario: Scenario, draft: Draft) -> Iterator[Scenario]:
    """Yield a job as its engine runs it, then with all recomputed, where a pre-training leaves that open."""
    yield scenario
    if scenario.task == "pretrain" and scenario.checkpointing != "full" and not draft.was_given("checkpointing"):
        yield replace(scenario, checkpointing="full")


def spread_experts(scenario: Scenario, draft: Draft) -> Iterator[Scenario]:
    """Yield a layout with its experts over other numbers of devices, the most first.

    Public code that is fine-tuned spreads none: each device runs all of them on its own tokens.
    """
    s = scenario
    if draft.was_given("ep") or not runs_fused(s):
        yield s
        return
    yield from (replace(s, ep=ep) for ep in _expert_sizes(s))


def cut_stages(scenario: Scenario, draft: Draft) -> Iterator[Scenario]:
    """Yield a layout with its stages in other numbers of chunks, the most first: more keep micro-batches for longer."""
    chunks = [scenario.interleave] if draft.was_given("interleave") else _chunk_counts(scenario)
    yield from (replace(scenario, interleave=each) for each in chunks)


def variants(scenario: Scenario, draft: Draft) -> Iterator[Scenario]:
    """Yield a layout in all ways to share its experts and to cut its stages, the most of both first."""
    for each in spread_experts(scenario, draft):
        yield from cut_stages(each, draft)

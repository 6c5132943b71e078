"""What is alive along one training step on the fullest rank, moment by moment: a plain walk with numbers as sizes."""

from __future__ import annotations

from ..autograd.storage import numeric_sizes
from ..scenario import Scenario
from ..walk.candidates import Peak, candidate_at
from ..walk.step import walked_step
from .training import fullest_rank

MOST_MOMENTS = 150
"""Moments of a timeline; of more, neighbours are told by the fullest among them."""


def step_timeline(scenario: Scenario) -> tuple[Peak, ...]:
    """The local maxima of a step in their order, and the optimizer's step; the fullest is the peak of `memory`."""
    rank = fullest_rank(scenario)
    batch, length = -(-scenario.sequences_together // rank.parts), scenario.rank_tokens
    marks = walked_step(rank.setup, numeric_sizes(batch, length)).marks
    levels = [candidate_at(level, moment) for level, moment, _ in marks]
    found = [rank.moments.filled(level, batch, length, rank.held) for level in levels]
    stride = -(-len(found) // MOST_MOMENTS)
    shown = [max(found[at : at + stride], key=lambda peak: peak.bytes) for at in range(0, len(found), stride)]
    end = rank.moments.filled(rank.moments.end, batch, length, rank.held)
    return (*shown, end)

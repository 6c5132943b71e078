"""Kernels that the host launches in a micro-step of public code: one for each tensor that the walk of its memory makes.

Profiles of 39 steps on an H100 and an H200 (data/measurements/own_more.yaml and its neighbours) had 1.2 times as many
in the median: dense models 0.98 to 1.28 times, kernels of Liger and flash-linear-attention 1.3 to 1.7 times, routed
tokens 1.2 to 1.8 times, once 3.7. Loops over a sequence and answers that are written are counted elsewhere.
"""

from __future__ import annotations

from ..memory.training import training_plan
from ..scenario import Scenario
from .work import forwards_beside


def forward_launches(scenario: Scenario) -> int:
    """Kernels of a forward pass on the rank that launches most, with those of its loss."""
    return max(rank.moments.forward for rank in training_plan(scenario).ranks)


def launches_of(scenario: Scenario) -> float:
    """Kernels of a micro-step on the rank that launches most; passes without a gradient launch what a forward pass
    does.
    """
    again = forwards_beside(scenario)
    passes = (
        rank.parts * ((1 + again) * rank.moments.forward + rank.moments.backward)
        for rank in training_plan(scenario).ranks
    )
    return scenario.turns * max(passes)

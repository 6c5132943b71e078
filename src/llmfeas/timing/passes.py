"""Seconds of one step of a serving engine, which decodes some sequences and reads parts of prompts at once."""

from __future__ import annotations

from ..load.costs import mixed, sampled
from ..load.server import StepSeconds
from ..scenario import Scenario, cached_across_batches
from .decode import decode_parts
from .prefill import read_parts

TYPICAL_TOKENS = 1024.0
"""Cached or attended tokens between which and none a step's time is taken as a straight line."""


@cached_across_batches
def step_seconds(scenario: Scenario, sequences: int, tokens: int) -> StepSeconds:
    """What a step takes on one replica, with up to so many sequences and prompt tokens, from the model of each alone.

    Asked at few sizes and interpolated between them.
    """
    length = float(scenario.prompt + (scenario.output or 0)) or TYPICAL_TOKENS

    def decode(running: float, cached: float) -> float:
        return sum(decode_parts(scenario, cached, running).values())

    def read(waiting: float, attended: float) -> float:
        return waiting * sum(read_parts(scenario, waiting, 2 * attended).values())

    return mixed(sampled(decode, sequences, length), sampled(read, tokens + sequences, length))

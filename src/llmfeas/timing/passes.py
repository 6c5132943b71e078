"""Seconds of one step of a serving engine, which decodes some sequences and reads parts of prompts at once."""

from __future__ import annotations

from ..findings import cached_across_batches
from ..load.costs import mixed, sampled
from ..load.server import StepSeconds
from ..scenario import Scenario
from ..workload.serving import answer_tokens, peers, prompt_of
from .decode import decode_parts, passes_at_once
from .prefill import read_parts, stage_gain
from .serving_floor import least_decode_seconds, least_prompt_seconds

MOMENT = 1e-9
"""Seconds of a step that nothing stated bounds: all of it on a host whose bandwidth nobody knows."""
TYPICAL_TOKENS = 1024.0
"""The longest piece of a prompt where nobody says how long prompts are."""


@cached_across_batches
def step_seconds(scenario: Scenario, sequences: int, tokens: int) -> StepSeconds:
    """What a step takes on one replica, with up to so many sequences and prompt tokens, from the model of each alone.

    Asked at few sizes and interpolated between them. Stages work on as many passes at once, each with its share of the
    sequences: all have made a step when the slowest has gone through all layers, since none overtakes another. Copies
    that share experts are one replica and wait for each other too. A prompt is read whole, by one pass of one copy.
    """
    length, passes, copies = _length(scenario), passes_at_once(scenario), peers(scenario)
    longest = min(scenario.prompt or TYPICAL_TOKENS, tokens / copies / passes)

    def decode(running: float, cached: float) -> float:
        together = max(1.0, running / passes)
        each = max(1.0, together / copies)
        return sum(decode_parts(scenario, cached, each, together / each).values())

    def read(waiting: float, attended: float) -> float:
        own = max(1.0, waiting / passes / copies, min(waiting, longest))
        together = max(own, waiting / passes)
        alone = stage_gain(scenario, own) if passes > 1 else 1.0
        return alone * own * sum(read_parts(scenario, own, 2 * attended, together / (own * copies)).values())

    return mixed(sampled(decode, sequences, length), sampled(read, tokens + sequences, length))


def _length(scenario: Scenario) -> float:
    """Tokens of a request, between which and none times are asked."""
    return float(prompt_of(scenario) + answer_tokens(scenario))


@cached_across_batches
def least_step_seconds(scenario: Scenario, sequences: int, tokens: int) -> StepSeconds:
    """The same at the stated peaks of the devices: what decodes and what reads a prompt share bytes and products."""
    length, copies = _length(scenario), peers(scenario)
    decode = sampled(
        lambda running, cached: least_decode_seconds(scenario, cached, running / copies), sequences, length
    )
    read = sampled(
        lambda waiting, attended: least_prompt_seconds(scenario, waiting, 2 * attended), tokens + sequences, length
    )

    def seconds(running: float, cached: float, waiting: float, attended: float) -> float:
        least = max(MOMENT, decode(running, cached)) if running > 0.0 else MOMENT
        return max(least, read(waiting, attended)) if waiting > 0.0 else least

    return seconds

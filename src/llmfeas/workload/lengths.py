"""What a scenario says of the requests that its users send."""

from __future__ import annotations

from ..load.requests import FIXED, Lengths, Spread
from ..scenario import Scenario
from .serving import answer_tokens, prompt_of


def lengths_of(scenario: Scenario) -> Lengths:
    """Lengths of prompts and answers; answers end where the context does."""
    spread = Spread("lognormal", scenario.length_spread) if scenario.length_spread else FIXED
    return Lengths(
        prompt=prompt_of(scenario),
        output=max(1, answer_tokens(scenario)),
        prompt_spread=spread,
        output_spread=spread,
        prefix_hit=scenario.prefix_hit,
    )

"""What a scenario says of the requests that its users send."""

from __future__ import annotations

from ..load.requests import FIXED, Lengths, Spread
from ..scenario import Scenario
from .serving import answer_tokens

CHAT_PROMPT_TOKENS = 256
"""Of a short chat, where only a load is described."""


def prompt_of(scenario: Scenario) -> int:
    """Tokens of the prompt that a request comes with: as said, else that of a short chat as far as there is room."""
    room = max(1, (scenario.context or CHAT_PROMPT_TOKENS + 1) - answer_tokens(scenario))
    return scenario.prompt or min(CHAT_PROMPT_TOKENS, room)


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

"""Data that a training waits for: what its loaders bring, and what the storage behind them gives."""

from __future__ import annotations

from ..scenario import Scenario
from ..units import GB
from ..workload.text_tokens import stored_bytes


def loaded_tokens_per_second(scenario: Scenario) -> float | None:
    """Tokens a second that come in at most; None where nobody said, and of what the model writes itself."""
    if scenario.objective is not None and scenario.objective.rollouts:
        return None
    limits = [] if scenario.loader_tokens_per_s is None else [scenario.loader_tokens_per_s]
    if scenario.storage_gb_per_s is not None:
        limits.append(scenario.storage_gb_per_s * GB / stored_bytes(scenario.model.architecture.vocab))
    return min(limits, default=None)


def loading_seconds(scenario: Scenario, tokens: float) -> float:
    """The least seconds in which the tokens of a step are there, which are read while another one is computed."""
    speed = loaded_tokens_per_second(scenario)
    return 0.0 if speed is None else tokens / speed

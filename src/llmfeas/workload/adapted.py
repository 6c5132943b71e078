"""Which layers adapters train, and which of the others a backward pass runs through."""

from __future__ import annotations

from ..scenario import Scenario


def bare_layers(scenario: Scenario) -> int:
    """The first so many layers have no adapters."""
    return 0 if scenario.lora_layers is None else max(0, scenario.model.architecture.layers - scenario.lora_layers)


def lifts_input(scenario: Scenario) -> bool:
    """Whether backward runs through layers below all adapters too where layers are run again."""
    return not bare_layers(scenario) or scenario.engine_record.training.input_gradients


def adapted_share(scenario: Scenario) -> float:
    """Share of the layers that have adapters, where any does."""
    return 1 - bare_layers(scenario) / scenario.model.architecture.layers


def graded_share(scenario: Scenario) -> float:
    """Share of the layers that a backward pass runs through: those below all adapters need none."""
    return 1.0 if scenario.checkpointing != "none" and lifts_input(scenario) else adapted_share(scenario)

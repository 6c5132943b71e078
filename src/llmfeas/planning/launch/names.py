"""What stands in a configuration for the model, the data and the steps."""

from __future__ import annotations

import math

from ...scenario import Scenario
from ..repositories import asked_repository, repositories_of, repository

DATASET = "DATASET"
"""Stands for the data, which a scenario does not name."""
LEARNING_RATES = {"pretrain": 3e-4, "finetune": 2e-5, "lora": 2e-4, "qlora": 2e-4}
"""Customary starting points; no figure of an estimate depends on them."""
OBJECTIVE_RATES = {"finetune": 1e-6, "lora": 1e-5, "qlora": 1e-5}
"""The same where the model learns from preferences (trl's own, ten times as much for adapters)."""
ALPHA_PER_RANK = 2


def learning_rate(scenario: Scenario) -> float:
    """A customary starting point."""
    return (LEARNING_RATES if scenario.loss is None else OBJECTIVE_RATES)[scenario.method]


def low_rank(scenario: Scenario, prefix: str = "lora_", rank: str = "r") -> dict[str, int | float]:
    """The adapters' rank, alpha and dropout, under the names that an engine has for them."""
    return {
        f"{prefix}{rank}": scenario.lora_rank,
        f"{prefix}alpha": ALPHA_PER_RANK * scenario.lora_rank,
        f"{prefix}dropout": scenario.lora_dropout,
    }


def model_notes(scenario: Scenario) -> tuple[str, ...]:
    """Say that a model has no repository, or that of its versions the one was taken that chats."""
    taken, known = repository(scenario), repositories_of(scenario.model)
    if taken is None:
        return (f"no repository of {scenario.model.name} is known: put a path or repository in place of its id",)
    if scenario.task == "inference" and taken in known[1:] and taken != asked_repository(scenario.asked_by):
        return (f"{taken} was taken, which was taught to chat; {known[0]} was not",)
    return ()


def pair_notes(scenario: Scenario, asked: str, templates: str = "") -> tuple[str, ...]:
    """Say how a server that scores pairs is `asked`, and where `templates` are in which a decoder reads them."""
    scored = scenario.model.reranker
    if scored is None:
        return ()
    if scored.by != "tokens" or not templates:
        return (asked,)
    return asked, f"it scores a pair in the form that it was trained on alone: --chat-template, from {templates}"


def steps(scenario: Scenario) -> int:
    """Count optimizer steps: tokens / tokens of a step, rounded up, at least 1."""
    return max(
        1,
        math.ceil((scenario.tokens or 0.0) / (sequences(scenario) * scenario.sequences_an_example * scenario.seq_len)),
    )


def sequences(scenario: Scenario) -> int:
    """Count the sequences (with an objective: examples) of one step: micro-batch x ranks x accumulation."""
    return scenario.micro_batch * scenario.dp * scenario.micro_steps


def batch_notes(scenario: Scenario) -> tuple[str, ...]:
    """Say that the global batch was rounded up to whole micro-batches, if so."""
    if sequences(scenario) == scenario.global_batch:
        return ()
    return (f"a step takes {sequences(scenario)} sequences: whole micro-batches on every rank",)


def training_notes(scenario: Scenario) -> tuple[str, ...]:
    """Say what a scenario does not know and the user has to fill in."""
    rate = learning_rate(scenario)
    return (
        *model_notes(scenario),
        f"put your data in place of {DATASET}; the learning rate, {rate:g}, is only a customary start",
        *batch_notes(scenario),
    )

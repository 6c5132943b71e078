"""What stands in a configuration for the model, the data and the steps."""

from __future__ import annotations

import math
from pathlib import Path

from ...catalog.architecture import Model
from ...catalog.model_names import typed
from ...catalog.search import tokens_of
from ...scenario import Scenario

DATASET = "DATASET"
"""Stands for the data, which a scenario does not name."""
LEARNING_RATES = {"pretrain": 3e-4, "finetune": 2e-5, "lora": 2e-4, "qlora": 2e-4}
"""Customary starting points; no figure of an estimate depends on them."""
OBJECTIVE_RATES = {"finetune": 1e-6, "lora": 1e-5, "qlora": 1e-5}
"""The same where the model learns from preferences (trl's own, ten times as much for adapters)."""
LORA_ALPHA_PER_RANK = 2
CHATS = frozenset({"instruct", "chat", "it"})
"""Words of a repository whose model answers in a conversation."""


def learning_rate(scenario: Scenario) -> float:
    """A customary starting point."""
    return (LEARNING_RATES if scenario.loss is None else OBJECTIVE_RATES)[scenario.method]


def repository(scenario: Scenario) -> str | None:
    """The model as a path or as its Hugging Face repository; None where none is known.

    Of a model's repositories the one it was asked by, if the weights there can be used; for a server the first of its
    maker whose model was taught to chat.
    """
    path = scenario.model_path
    if path is not None:
        from ...importers.hub import PREFIX

        return _asked_repository(path[len(PREFIX) :].strip()) if path[: len(PREFIX)].lower() == PREFIX else _local(path)
    asked = _asked_repository(scenario.asked_by)
    if asked and (scenario.quant == scenario.model.published_quant or not typed(asked).format):
        return asked
    known = _repositories(scenario.model)
    if scenario.task == "inference":
        known = sorted(known, key=lambda each: not _chats(each, known[0]))
    return known[0] if known else None


def _chats(name: str, first: str) -> bool:
    return name.partition("/")[0] == first.partition("/")[0] and not CHATS.isdisjoint(tokens_of(name))


def holds_format(scenario: Scenario) -> bool:
    """Whether the repository holds the weights in the format that is used: as published, or as its own name says."""
    if scenario.quant != scenario.model.published_quant:
        return False
    return bool(_asked_repository(scenario.asked_by)) or not typed(scenario.asked_by).format


def is_gguf_repository(scenario: Scenario) -> bool:
    """Whether the model's repository holds files in GGUF, as it says of itself."""
    return "gguf" in (repository(scenario) or "").lower()


def _asked_repository(text: str) -> str:
    """The repository that a model was asked by, without revision and tag; an empty text for other names, as those of
    Ollama's library are.
    """
    from ...importers.hub import REPOSITORY

    match = REPOSITORY.fullmatch(text)
    return match["id"] if match and not typed(text).tagged else ""


def _repositories(model: Model) -> list[str]:
    return [alias for alias in model.aliases if alias.count("/") == 1]


def repository_of(model: Model) -> str:
    """The repository of a model of the catalog, or its id where none is known."""
    return next(iter(_repositories(model)), str(model.id))


def is_gguf(scenario: Scenario) -> bool:
    """Whether the model is a GGUF file."""
    return (scenario.model_path or "").lower().endswith(".gguf")


def _local(path: str) -> str:
    """A path as engines take it: the folder of a config.json or of weights; never something like an option."""
    place = Path(path)
    whole = place.suffix.lower() == ".gguf" or not place.suffix or place.is_dir()
    text = path if whole else str(place.parent)
    return f"./{text}" if text.startswith("-") else text


def model_name(scenario: Scenario) -> str:
    """The model's path or repository, else its id, which `model_notes` explains."""
    return repository(scenario) or scenario.model.id


def model_notes(scenario: Scenario) -> tuple[str, ...]:
    """Say that a model has no repository, or that of its versions the one was taken that chats."""
    taken, known = repository(scenario), _repositories(scenario.model)
    if taken is None:
        return (f"no repository of {scenario.model.name} is known: put a path or repository in place of its id",)
    if scenario.task == "inference" and taken in known[1:] and taken != _asked_repository(scenario.asked_by):
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

"""Where a model lies: a path, or the repository that it is asked by or published in."""

from __future__ import annotations

from pathlib import Path

from ..catalog.architecture import Model
from ..catalog.names.models import typed
from ..catalog.search import tokens_of
from ..scenario import Scenario

CHATS = frozenset({"instruct", "chat", "it"})
"""Words of a repository whose model answers in a conversation."""


def repository(scenario: Scenario) -> str | None:
    """The model as a path or as its Hugging Face repository; None where none is known.

    Of a model's repositories the one it was asked by, if the weights there can be used; for a server the first of its
    maker whose model was taught to chat.
    """
    path = scenario.model_path
    if path is not None:
        from ..importers.stores.hub import PREFIX

        return asked_repository(path[len(PREFIX) :].strip()) if path[: len(PREFIX)].lower() == PREFIX else _local(path)
    asked = asked_repository(scenario.asked_by)
    if asked and (scenario.quant == scenario.model.published_quant or not typed(asked).format):
        return asked
    known = repositories_of(scenario.model)
    if scenario.task == "inference":
        known = sorted(known, key=lambda each: not _chats(each, known[0]))
    return known[0] if known else None


def _chats(name: str, first: str) -> bool:
    return name.partition("/")[0] == first.partition("/")[0] and not CHATS.isdisjoint(tokens_of(name))


def holds_format(scenario: Scenario) -> bool:
    """Whether the repository holds the weights in the format that is used: as published, or as its own name says."""
    if scenario.quant != scenario.model.published_quant:
        return False
    return bool(asked_repository(scenario.asked_by)) or not typed(scenario.asked_by).format


def is_gguf_repository(scenario: Scenario) -> bool:
    """Whether the model's repository holds files in GGUF, as it says of itself."""
    return "gguf" in (repository(scenario) or "").lower()


def asked_repository(text: str) -> str:
    """The repository that a model was asked by, without revision and tag; an empty text for other names, as those of
    Ollama's library are.
    """
    from ..importers.stores.hub import REPOSITORY

    match = REPOSITORY.fullmatch(text)
    return match["id"] if match and not typed(text).tagged else ""


def repositories_of(model: Model) -> list[str]:
    """The repositories of a model of the catalog, its maker's first."""
    return [alias for alias in model.aliases if alias.count("/") == 1]


def repository_of(model: Model) -> str:
    """The repository of a model of the catalog, or its id where none is known."""
    return next(iter(repositories_of(model)), str(model.id))


def _local(path: str) -> str:
    """A path as engines take it: the folder of a config.json or of weights; never something like an option."""
    place = Path(path)
    whole = place.suffix.lower() == ".gguf" or not place.suffix or place.is_dir()
    text = path if whole else str(place.parent)
    return f"./{text}" if text.startswith("-") else text


def model_name(scenario: Scenario) -> str:
    """The model's path or repository, else its id, which `model_notes` explains."""
    return repository(scenario) or scenario.model.id

"""Entries called by their very names, as most questions have it: looking for them in others (`search`) takes longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .records import Match

if TYPE_CHECKING:
    from .architecture import Model
    from .store import Catalog, Records


def exact_id(records: Records[Any], text: str) -> str | None:
    """The id of the entry that has this very name; None where none has."""
    if text in records:
        return text
    from .search import index_of, name_key

    return index_of(records).exact.get(name_key(text))


def engine_named(text: str, catalog: Catalog) -> str:
    """The id of the engine that a text names by id, name or alias; the text itself where none is called so."""
    return exact_id(catalog.engines, text) or text


def find_model(text: str, catalog: Catalog, *, pulled: bool = False) -> Match[Model]:
    """Find a model by id, name, alias, Hugging Face repository, Ollama tag, or what comes close enough to mean one.

    A format in the name (`-AWQ`, `:q4_K_M`) is that of the record's published weights. One that is `pulled` by Ollama
    is a tag of its library, unless it names a repository.

    Raises:
        UsageError: `unknown-model` or `ambiguous-model`, with candidates.
    """
    if pulled and "/" not in text:
        from .names.model_search import pulled_model

        return pulled_model(text, catalog)
    if text in catalog.models:
        return Match(catalog.models[text])
    from .names.model_search import model_named

    return model_named(text, catalog)


def find_published_file(text: str, catalog: Catalog) -> Match[Model] | None:
    """Find the model that a published file's name says (`Qwen3-8B-Q4_K_M.gguf`) where no file of this name lies here.

    None: it is no such name, something lies there, or the name says no model.
    """
    if not text.lower().endswith((".gguf", ".safetensors")):
        return None
    from .names.model_search import published_file

    return published_file(text, catalog)

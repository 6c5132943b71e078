"""What a model is asked for, where its file or Sentence Transformers' beside it say so: vectors, or scores of pairs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from ...catalog.architecture import Architecture
from ...catalog.parts import SideWeights
from ...catalog.published import Reranker
from ...record import replace
from ..config_file import MAX_BYTES, Config
from .encoder import class_of, labels_of

_OF_PAIRS: Final = "CrossEncoder"
_CROSSED: Final = ("sentence_transformers", "sbert_ce_default_activation_function")
"""Fields that Sentence Transformers writes into the config.json of a cross-encoder (4 and 5, and before)."""
_CLASSES: Final = ("SequenceClassification",)
"""Purposes of classes that end in labels."""


def as_asked(config: Config, architecture: Architecture) -> tuple[Architecture, Reranker | None]:
    """The architecture as it is used, and how it scores pairs if it does.

    An encoder with one label scores pairs. A decoder with one may judge answers as well: it takes Sentence
    Transformers' files to say that it scores pairs.
    """
    one, kind = labels_of(config) == 1, class_of(config)
    if architecture.encoder:
        return architecture, Reranker() if one and kind in _CLASSES else None
    if architecture.source is not None:
        return architecture, None
    modules, library = _modules(config)
    crossed = library == _OF_PAIRS or any(key in config.fields for key in _CROSSED)
    if kind in _CLASSES:
        return _labelled(architecture, labels_of(config)), Reranker() if one and crossed else None
    if crossed:
        return replace(architecture, embeds=True), Reranker(by="tokens")
    return (replace(architecture, embeds=True) if "Pooling" in modules else architecture), None


def _labelled(architecture: Architecture, labels: int) -> Architecture:
    """A decoder with a product to labels in place of the projection to the vocabulary."""
    side = architecture.beside or SideWeights()
    side = replace(side, vectors=side.vectors + labels * architecture.hidden)
    return replace(architecture, scores=True, embeds=True, tied=False, beside=side)


def _modules(config: Config) -> tuple[frozenset[str], str]:
    """Classes of the modules that Sentence Transformers makes of a folder, and what it calls the whole."""
    folder = Path(config.file).parent
    listed, said = _json(folder / "modules.json"), _json(folder / "config_sentence_transformers.json")
    types = [each.get("type") for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    names = frozenset(each.rpartition(".")[2] for each in types if isinstance(each, str))
    whole = said.get("model_type") if isinstance(said, dict) else None
    return names, _OF_PAIRS if "LogitScore" in names else whole if isinstance(whole, str) else ""


def _json(path: Path) -> Any:
    """What a small file holds; nothing where there is none that can be read."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None

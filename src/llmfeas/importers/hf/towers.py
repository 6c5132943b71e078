"""Encoders of images and sounds beside a language model (data/towers.yaml)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

from ...catalog.records import merged
from ...catalog.store import data_file, data_folder
from ..config_file import Config
from .projectors import PROJECTORS
from .tower_parts import COUNTS

_SIZES: Final = ("hidden_size", "intermediate_size", "num_hidden_layers", "patch_size", "image_size")


@functools.cache
def table() -> Mapping[str, Any]:
    """The file: encoders by their model_type, and by that of whole models what stands beside their language model."""
    return data_file(data_folder(), "towers").data


def encoder_kind(kind: str, *senses: str) -> Mapping[str, Any] | None:
    """The record of an encoder of these senses (`sight`, `sound`); None where it cannot be counted."""
    written = next((each for sense in senses if (each := table()[sense].get(kind))), None)
    like = encoder_kind(written["like"], *senses) if written and "like" in written else None
    return merged(like, written) if like and written else written


def defaults_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a record says of fields that a file leaves out."""
    sizes = dict(zip(_SIZES, record.get("sizes", ()), strict=False))
    return {**sizes, **record.get("defaults", {})}


def towers_beside(whole: Config, hidden: int) -> int | None:
    """Parameters of the encoders and projectors that a configuration names, beside a language model of this width.

    A section that is not there is what its class makes of it, in files that nest their language model.
    None: one of them is of a kind that cannot be counted.

    Raises:
        DataError: a size is missing or wrong.
    """
    written: Mapping[str, Any] | None = table()["beside"].get(whole.text("model_type"))
    row, found = written or {}, 0
    if "within" in row:
        whole = whole.nested(row["within"]) or whole
    if row.get("patches") or "drafts_for" in row:
        return _products(row, whole, hidden)
    if written == {} or (written is None and _holds_more(whole)):
        return None
    implied = row.get("implied", written is not None)
    implied = implied and (whole.nested("text_config") is not None or not row.get("nested", True))
    for key, place, way in (("vision_config", "vision", "see"), ("audio_config", "audio", "hear")):
        usual = row.get(place)
        section = whole.nested(row["at"] if place == "audio" and "at" in row else key)
        if section is None and not (implied and usual):
            continue
        kind = _kind_in(section, usual)
        if usual is None or kind is None:
            return None
        own = defaults_of(row) if section is None else {}
        known = (section or Config(whole.file, {}, {}, f"{key}.")).with_defaults({**defaults_of(kind), **own})
        encoder = COUNTS[kind["count"]](known)
        found += encoder.elements + _between(row.get(way), whole, known, encoder, hidden)
    return found


def _products(row: Mapping[str, Any], whole: Config, hidden: int) -> int:
    """Parameters of the products through which patches, or another model's stream, come in where no encoder is."""
    if row.get("patches"):
        known = whole.with_defaults({"patch_size": 30, "num_channels": 3})
        return (known.count("patch_size") ** 2 * known.count("num_channels", "few") + 1) * hidden
    wide = whole.with_defaults({"backbone_hidden_size": row["drafts_for"]}).count("backbone_hidden_size")
    centroids = (whole.optional_count("num_centroids", "rows") or 2048) * whole.flag("use_ordered_embeddings")
    return (3 * wide + centroids) * hidden


_STACK: Final = frozenset(("hidden_size", "d_model", "num_hidden_layers", "model_type"))
_COUNTED: Final = frozenset(("text_config", "llm_config", "language_config", "vision_config", "audio_config"))


def _holds_more(whole: Config) -> bool:
    """Whether a file that nests its language model says of stacks under names that no encoder usually has."""
    if not any(isinstance(whole.raw(key), Mapping) for key in _COUNTED):
        return False
    beside = (value for key, value in whole.fields.items() if key.endswith("_config") and key not in _COUNTED)
    return any(isinstance(value, Mapping) and not _STACK.isdisjoint(value) for value in beside)


def _kind_in(section: Config | None, usual: str | None) -> Mapping[str, Any] | None:
    """The encoder of a section: the usual one, or the one that it names where classes take others."""
    said = section.text("model_type") if section is not None else ""
    return encoder_kind(said if said and usual in table()["for_anybody"] else usual or "", "sight", "sound")


def _between(written: str | Mapping[str, Any] | None, *places: Any) -> int:
    """Elements of a projector, by its name or by that and its arguments; none: the encoder's own merger."""
    if written is None:
        return 0
    if isinstance(written, str):
        return PROJECTORS[written](*places)
    ((name, arguments),) = written.items()
    return PROJECTORS[name](*places, **arguments)

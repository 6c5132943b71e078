"""The data as a wheel carries it: each file of YAML as JSON, which is read faster and needs no library.

The entries of large sections, of which a question asks for a few, are lines of their own behind a line with the rest of
the file and one that says where they stand; it tells the fields, too, that are asked of every entry.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..record import is_record
from .document import read_yaml
from .files import DataFile
from .names.devices import machines_from
from .names.machines import providers_of
from .names.model_index import index_of_models, told_of
from .records import EntryKind
from .search import index_from
from .store import BACKENDS, DEVICES, ENGINES, MODELS, OFFERS, Records, digest
from .types import hints_of

APART: Mapping[str, tuple[str, ...]] = {
    "backends": ("backends",),
    "changes": ("changes",),
    "efficiency": ("parameters",),
    "engines": ("engines",),
    "families": ("families",),
    "hardware": ("devices",),
    "implementations": ("implementations",),
    "models": ("models", "families"),
    "offers": ("offers",),
    "processors": ("devices",),
    "quantization": ("formats", "encodings"),
}
"""Sections by file whose entries stand apart."""
TOLD: Mapping[str, tuple[str, ...]] = {
    "devices": (
        *("name", "released", "assumption", "by_rule", "backend", "kind", "representative", "memory_gib"),
        *("devices_per_node", "prices?"),
    ),
    "engines": ("launchers",),
    "offers": ("tier", "device"),
    "formats": ("aliases",),
}
"""Fields by section that are asked of every entry; of one with a `?`, whether the entry says anything of it."""


def packed(data: Path) -> Mapping[str, str]:
    """Each file of the folder `data` as JSON by its name without ending, the `digest` of them all, and what takes long
    to find out at each start: the `names` of models taken apart.

    Raises:
        DataError: a file cannot be read.
    """
    files = sorted(data.rglob("*.yaml"))
    contents = {path.relative_to(data).with_suffix("").as_posix(): read_yaml(path).data for path in files}
    for kind in (DEVICES, OFFERS, MODELS, BACKENDS, ENGINES):
        sections: Mapping[str, Any] = {kind.key: tuple[kind.record, ...], kind.base: Mapping[str, kind.record]}  # type: ignore[name-defined]
        for file in set(kind.files) & contents.keys():
            content = contents[file]
            typed = {key: _typed(hint, content[key]) for key, hint in sections.items() if key in content}
            contents[file] = {**content, **typed}
    derived = {"digest": digest(data), **_names(contents)}
    texts = {name: _json(content) for name, content in {**contents, **derived}.items()}
    for name in APART.keys() & contents.keys():
        texts[name] = _with_entries_apart(name, contents)
    return texts


def _names(contents: Mapping[str, Any]) -> dict[str, object]:
    """What is looked up where somebody types a name: of models, devices and offers, and of models taken apart."""
    models, devices, offers = (_records(kind, contents) for kind in (MODELS, DEVICES, OFFERS))
    told = told_of(models.names())
    more: dict[str, Mapping[str, object]] = {
        "models": {"models": index_of_models(models.names(), told).to_dict()},
        "devices": {"machines": machines_from(devices.names())},
        "offers": {"providers": providers_of(offers, devices)},
    }
    indices = {each.section.key: index_from(each.names()).to_dict() for each in (models, devices, offers)}
    return {"names": told, **{f"names/{key}": {**index, **more[key]} for key, index in indices.items()}}


def _records(kind: EntryKind[Any], contents: Mapping[str, Any]) -> Records[Any]:
    return Records(kind, lambda name, needed: DataFile(contents.get(name, {}), None))


def _typed(hint: Any, value: Any) -> Any:
    """Plain data in which the numbers of fields that are no whole ones are floats, as those that were validated are."""
    options = [hint]
    while any(typing.get_origin(option) in (typing.Annotated, typing.Union, types.UnionType) for option in options):
        options = [part for option in options for part in _options_in(option)]
    if isinstance(value, dict):
        for option in options:
            if is_record(option):
                return {key: _typed(hints_of(option).get(key), each) for key, each in value.items()}
            if isinstance(origin := typing.get_origin(option), type) and issubclass(origin, Mapping):
                return {key: _typed(typing.get_args(option)[1], each) for key, each in value.items()}
    elif isinstance(value, list):
        inner = next((typing.get_args(option)[0] for option in options if typing.get_origin(option) is tuple), None)
        return [_typed(inner, each) for each in value]
    elif value.__class__ is int and float in options and int not in options:
        return float(value)
    return value


def _options_in(hint: Any) -> tuple[Any, ...]:
    """What a hint allows: what is annotated, what is united."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return typing.get_args(hint)[:1]
    return typing.get_args(hint) if origin in (typing.Union, types.UnionType) else (hint,)


def _with_entries_apart(file: str, contents: Mapping[str, Any]) -> str:
    rest = {key: section for key, section in contents[file].items() if key not in APART[file]}
    index, lines = {}, []
    for name in APART[file]:
        section = contents[file][name]
        entries = {entry["id"]: entry for entry in section} if isinstance(section, list) else section
        written = [_json(entry) for entry in entries.values()]
        columns = {field: list(_column(name, field, entries, contents)) for field in TOLD.get(name, ())}
        lengths = [len(line.encode()) + 1 for line in written]
        index[name] = {"names": list(entries), "lengths": lengths, "columns": columns}
        lines += written
    return "".join(f"{line}\n" for line in (_json(rest), _json(index), *lines))


def _column(section: str, field: str, entries: Mapping[str, Any], contents: Mapping[str, Any]) -> Iterator[object]:
    """Yield a field of each entry, by itself or from its base; None where neither has it."""
    kinds: tuple[EntryKind[Any], ...] = (DEVICES, OFFERS)
    kind = next((kind for kind in kinds if kind.key == section), None)
    if kind is None:
        yield from (entry.get(field) for entry in entries.values())
        return
    records = _records(kind, contents)
    for name in entries:
        yield (records.tells(name, field[:-1]) or None) if field[-1] == "?" else records.peek(name, field)


def _json(content: object) -> str:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)

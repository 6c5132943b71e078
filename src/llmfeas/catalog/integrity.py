"""A whole data directory held against the records: entries, references between them, names that are taken twice."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..text import printable
from .names import name_key
from .sections import BACKENDS, DEVICES, ENGINES, MODELS, OFFERS, Section
from .source import Document
from .store import Records
from .validation import Place


def problems(directory: Path) -> Iterator[DataError]:
    """Validate all records of a data directory: entries, references between them, names that are taken twice."""
    sections: tuple[Section[Any], ...] = (DEVICES, OFFERS, MODELS, BACKENDS, ENGINES)
    known: dict[str, Records[Any]] = {}
    for section in sections:
        try:
            records = known[section.key] = Records(section, directory)
            for key in records:
                try:
                    records[key]
                except DataError as error:
                    yield error
        except DataError as error:
            yield error
            continue
        yield from _taken_names(section, records)
    yield from _dangling_references(known)


def _taken_names(section: Section[Any], records: Records[Any]) -> Iterator[DataError]:
    owners: dict[str, str] = {}
    for key, entry in records.names():
        document = records.document(key)
        for name in {
            name_key(str(name)) for name in (key, *(entry.get("aliases") or ()), *(entry.get("default_for") or ()))
        }:
            owner = owners.setdefault(name, key)
            if owner != key and document is not None:
                where = document.where((section.key, key))
                yield DataError(
                    "bad-data", f"{where}: the name '{printable(name, 40)}' belongs to '{owner}'", "Keep one."
                )


def _dangling_references(known: Mapping[str, Records[Any]]) -> Iterator[DataError]:
    """Find offers of devices, and bases of entries, that do not exist."""
    for records in known.values():
        section = records.section
        bases = {name: 0 for file in records.files for name in (file.data.get(section.base) or {})}
        for key, entry in records.names():
            document = records.document(key)
            if document is None:
                continue
            wanted = entry.get(section.base_field) if section.base else None
            if section.base and wanted not in bases:
                place = (section.key, key, section.base_field)
                yield _no_such(document, place, section.base_field, wanted, bases)
            device = entry.get("device") if section.key == "offers" else None
            if device is not None and device not in known.get("devices", {}):
                yield _no_such(document, (section.key, key, "device"), "device", device, known.get("devices", {}))


def _no_such(document: Document, place: Place, what: str, name: object, known: Mapping[str, Any]) -> DataError:
    near = difflib.get_close_matches(str(name), list(known), 2)
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else "Add it, or mend the name."
    return DataError("bad-data", f"{document.where(place)}: there is no {what} '{printable(name, 40)}'", hint, near)

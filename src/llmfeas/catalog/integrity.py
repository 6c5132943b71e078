"""A whole data directory held against the records: entries, references between them, names that are taken twice."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import DataError, did_you_mean
from ..text import printable
from .document import Document, Place, read_yaml
from .efficiency import Efficiency
from .implementation import Implementation, flattened
from .quantization import Quantization, expanded
from .records import Built, EntryKind
from .search import name_key
from .store import BACKENDS, DEVICES, ENGINES, MODELS, OFFERS, Catalog, Records, data_file
from .tables import ChangeOrder, Power, Runtime

TABLES: Mapping[str, tuple[type, Callable[[Mapping[str, Any]], Mapping[str, Any]]]] = {
    "efficiency": (Efficiency, dict),
    "runtime": (Runtime, dict),
    "quantization": (Quantization, lambda raw: {key: _plain(value) for key, value in expanded(raw).items()}),
    "implementations": (Implementation, dict),
    "power": (Power, dict),
    "changes": (ChangeOrder, dict),
}
"""Data files of numbers, and the record that each fits."""


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Built) else value


def problems(directory: Path) -> Iterator[DataError]:
    """Validate all records of a data directory: entries, references between them, names that are taken twice."""
    found = False
    for error in _problems_of_files(directory):
        found = True
        yield error
    if not found:
        yield from _dangling_names(Catalog(directory))


def _problems_of_files(directory: Path) -> Iterator[DataError]:
    sections: tuple[EntryKind[Any], ...] = (DEVICES, OFFERS, MODELS, BACKENDS, ENGINES)
    known: dict[str, Records[Any]] = {}
    for section in sections:
        try:
            records = known[section.key] = Records(section, functools.partial(data_file, str(directory)))
            keys = list(records)
        except DataError as error:
            yield error
            continue
        for key in keys:
            try:
                records[key]
            except DataError as error:
                yield error
        yield from _taken_names(records)
    yield from _dangling_references(known)
    for name in TABLES:
        path = directory / f"{name}.yaml"
        if path.exists():
            document = read_yaml(path)
            yield from number_problems(name, document.data, document)


def _dangling_names(catalog: Catalog) -> Iterator[DataError]:
    """Find what engines name, and engines that backends name, that there is not."""
    for key, engine in catalog.engines.items():
        document, place = catalog.engines.place(key)
        for fault in catalog.tables.faults(engine) if document else ():
            yield DataError("bad-data", f"{document.where(place)}: {fault}", "Mend the name.")  # type: ignore[union-attr]
    for key, backend in catalog.backends.items():
        document, place = catalog.backends.place(key)
        for choice in backend.engines if document else ():
            if choice.engine not in catalog.engines:
                yield _no_such(document, (*place, "engines"), "engine", choice.engine, catalog.engines)  # type: ignore[arg-type]


def number_problems(name: str, raw: Mapping[str, Any], document: Document, place: Place = ()) -> Iterator[DataError]:
    """Check a data file of numbers, with what overlays change of it; `place` is where it stands in the document."""
    from .validation import validated

    try:
        if name != "implementations":
            record, whole = TABLES[name]
            validated(record, whole(raw), document, place)
            return
        for section in ("implementations", "kernels"):
            if not isinstance(raw[section], Mapping):
                raise TypeError(f"{section} is no mapping of names")
            for key in raw[section]:
                fields = {name: value for name, value in flattened(raw[section], key).items() if name != "families"}
                validated(Implementation, fields, document, (*place, section, key))
    except DataError as error:
        yield error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        text = f"{document.where(place or (name,))}: does not fit the catalog's numbers ({printable(error, 100)})"
        yield DataError("bad-data", text, f"Use the keys of data/{name}.yaml.")


def _taken_names(records: Records[Any]) -> Iterator[DataError]:
    owners: dict[str, str] = {}
    for key, entry in records.names():
        document, place = records.place(key)
        own = {name_key(str(name)) for name in (key, *(entry.get("aliases") or ()))}
        # What bare words stand for may be the name of a repository too: that one is found by its whole name.
        for name in own | {f"default_for {name}" for name in entry.get("default_for") or ()}:
            owner = owners.setdefault(name, key)
            if owner != key and document is not None:
                where = document.where(place)
                yield DataError(
                    "bad-data", f"{where}: the name '{printable(name, 40)}' belongs to '{owner}'", "Keep one."
                )


def _dangling_references(known: Mapping[str, Records[Any]]) -> Iterator[DataError]:
    """Find offers of devices, and bases of entries, that do not exist."""
    for records in known.values():
        section = records.section
        bases = {name: 0 for file in records.files for name in (file.data.get(section.base) or {})}
        for key, entry in records.names():
            document, place = records.place(key)
            if document is None:
                continue
            wanted = entry.get(section.base_field) if section.base_field else None
            if section.base_field and wanted not in bases and (wanted is not None or not section.completed):
                yield _no_such(document, (*place, section.base_field), section.base_field, wanted, bases)
            device = entry.get("device") if section.key == "offers" else None
            if device is not None and device not in known.get("devices", {}):
                yield _no_such(document, (*place, "device"), "device", device, known.get("devices", {}))


def _no_such(document: Document, place: Place, what: str, name: object, known: Mapping[str, Any]) -> DataError:
    near = difflib.get_close_matches(str(name), list(known), 2)
    hint = did_you_mean(near, "Add it, or mend the name.")
    return DataError("bad-data", f"{document.where(place)}: there is no {what} '{printable(name, 40)}'", hint, near)

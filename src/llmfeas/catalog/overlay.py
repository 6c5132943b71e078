"""One's own entries laid over the catalog: files of the same shape, changed or added entry by entry.

An overlay is one YAML file with any of the sections `devices`, `offers`, `models`, `backends`, `engines`,
`generations`, `families`, `measurements`, and with the files of numbers `efficiency`, `runtime`, `quantization`,
`implementations`, `power` and `changes`. An entry with an id of the catalog replaces it; with `extends: rtx-4090` it
changes fields of that entry, under its own id or, without one, in place. Mappings merge key by key. Later files win.

Where they are looked for says `places`; this module needs YAML only where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import DataError, did_you_mean
from ..record import replace
from ..text import printable
from .backend import Backend, EngineChoice
from .device import Offer
from .overlay_file import BASES, MAPPINGS, MAX_CHAIN, NOT_INHERITED, SECTIONS, WRITTEN, Overlay, bad, read_overlay
from .records import EntryKind, merged
from .store import Catalog, Records, built_in, install

if TYPE_CHECKING:
    from pathlib import Path

    from .document import Document
    from .store import ReadFile
    from .tables import Tables

R = TypeVar("R")
OF_MEMORY = ("memory_reported_mib", "memory_options_gib")
"""What a device says of its memory beside `memory_gib`, and a new size of it outdates."""
Fault = tuple[str, str, list[str]]
"""The field of an entry that names what there is not, what is wrong with it, and what may have been meant."""
Check = Callable[[Any], Iterator[Fault]]


def _sized(entry: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """An entry whose memory, where an overlay says it, is all that it has: not the most that its base is sold with."""
    size = said.get("memory_gib")
    if not isinstance(size, int | float) or size <= 0:
        return dict(entry)  # what is wrong with it is said when it is read
    whole = {name: value for name, value in entry.items() if name not in OF_MEMORY or name in said}
    several = entry.get("memory_options_gib") or entry.get("kind") == "cpu"
    return {"memory_options_gib": [size], **whole} if several else whole


class OverlaidRecords(Records[R]):
    """Entries of one kind, those of overlays laid over those of the catalog."""

    def __init__(
        self, section: EntryKind[R], read: ReadFile, overlays: Sequence[Overlay], check: Check | None = None
    ) -> None:
        super().__init__(section, read)
        self._check = check
        self._built_in = dict(super().names())
        self._from: dict[str, tuple[Overlay, int]] = {}
        self._layers: dict[str, list[tuple[Overlay, int, dict[str, Any]]]] = {}
        for overlay in overlays:
            for index, entry in overlay.entries(section.key):
                key = str(entry.get("id", entry.get("extends")))
                self._layers.setdefault(key, []).append((overlay, index, entry))
                self._from[key] = (overlay, index)
                self._raw.setdefault(key, {"id": key})
        self._defaults = [
            overlay.data[section.base] for overlay in overlays if section.base and overlay.data.get(section.base)
        ]

    def overlaid(self) -> Iterator[str]:
        """The ids that an overlay adds or changes."""
        return iter(self._layers)

    def names(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Each id with its entry as written; those of overlays resolved."""
        for key, entry in super().names():
            yield key, (self.raw(key) if key in self._layers else entry)

    def indexed(self) -> Mapping[str, Any]:
        """Nothing: the names of overlays are among them."""
        return {}

    def written(self, key: str) -> Mapping[str, Any] | None:
        """An entry as the overlays leave it, without defaults; None where there is none."""
        return self._plain(key, 0, len(self._layers.get(key, ()))) if key in self._raw else None

    def peek(self, key: str, field: str) -> object:
        """One field of an entry as the overlays leave it, or as its default; None where it has neither."""
        return self.raw(key).get(field) if key in self._layers else super().peek(key, field)

    def reader(self, field: str) -> Callable[[str], object]:
        """`peek` for one field of very many entries."""
        read, ask = super().reader(field), self.asking(field)
        return lambda key: ask(key) if key in self._layers else read(key)

    def place(self, key: str) -> tuple[Document | None, tuple[str | int, ...]]:
        """The document that an entry stands in last, and where."""
        if key not in self._from:
            return super().place(key)
        overlay, index = self._from[key]
        return overlay.document, (self.section.key, index)

    def _plain(self, key: str, depth: int, layers: int) -> dict[str, Any]:
        """An entry as the first `layers` overlays leave it, without defaults."""
        if not layers:
            return dict(self._built_in.get(key, {}))
        overlay, index, entry = self._layers[key][layers - 1]
        wanted = entry.get("extends")
        if wanted is None:
            return {**_sized(entry, entry), "id": key}
        if depth > MAX_CHAIN:
            raise bad(
                overlay.document, (self.section.key, index, "extends"), "leads back to itself", "Break the circle."
            )
        if wanted == key:
            base = self._plain(key, depth + 1, layers - 1)
        else:
            inherited = self._plain(wanted, depth + 1, len(self._layers.get(wanted, ())))
            base = {name: value for name, value in inherited.items() if name not in NOT_INHERITED}
        if not base:
            from difflib import get_close_matches

            near = get_close_matches(wanted, [known for known in self if known != key], 3)
            hint = did_you_mean(near[:1], f"See 'llmfeas {self.section.key} list'.")
            place = (self.section.key, index, "extends")
            raise bad(overlay.document, place, f"there is no '{printable(wanted)}' to extend", hint, near)
        own = {name: value for name, value in entry.items() if name != "extends"}
        return {**_sized(merged(base, own), own), "id": key}

    def _with_defaults(self, key: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        name = entry.get(self.section.base_field)
        defaults: dict[str, Any] = {}
        for layer in (*(file.data.get(self.section.base) or {} for file in self.files), *self._defaults):
            layered = layer.get(name)
            defaults = merged(defaults, layered) if isinstance(layered, Mapping) else defaults
        return merged(defaults, entry)

    def _record(self, key: str) -> R:
        if key not in self._layers:
            return super()._record(key)
        from .validation import validated

        document, place = self.place(key)
        assert document is not None
        record = validated(self.section.record, self.raw(key), document, place)
        for field, text, near in self._check(record) if self._check else ():
            hint = did_you_mean(near, "Add it, or mend it.")
            raise bad(document, (*place, field), text, hint, near)
        return record


def _no_such(what: str, name: str, known: Iterable[str]) -> tuple[str, list[str]]:
    from difflib import get_close_matches

    return f"there is no {what} '{printable(name, 40)}'", get_close_matches(name[:40], list(known), 2)


def overlaid(catalog: Catalog) -> tuple[str, ...]:
    """The devices that overlays add or change."""
    devices = catalog.devices
    return tuple(devices.overlaid()) if isinstance(devices, OverlaidRecords) else ()


class OverlaidCatalog(Catalog):
    """The catalog with overlays; its digest names them, and so does every answer."""

    def __init__(self, base: Catalog, overlays: Sequence[Overlay]) -> None:
        super().__init__(base.directory)
        self.base = base
        self.overlays = tuple(overlays)

    def _records(self, section: EntryKind[R]) -> Records[R]:
        checks: Mapping[str, Check] = {"offers": self._offer_faults, "backends": self._backend_faults}
        return OverlaidRecords(section, self._file, self.overlays, checks.get(section.key))

    def _offer_faults(self, offer: Offer) -> Iterator[Fault]:
        if offer.device not in self.devices:
            yield "device", *_no_such("device", offer.device, self.devices)

    def _backend_faults(self, backend: Backend) -> Iterator[Fault]:
        for choice in backend.engines:
            if choice.engine not in self.engines:
                yield "engines", *_no_such("engine", choice.engine, self.engines)
        if not backend.engines or replace(backend.engines[-1], engine="") != EngineChoice(engine=""):
            yield "engines", "nothing is left for what no choice fits: the last one names an engine alone", []

    def raw(self, name: str) -> Mapping[str, Any]:
        """A data file as plain data, changed by the overlays where they may."""
        data = super().raw(name)
        for overlay in self.overlays if name in MAPPINGS else ():
            changes = overlay.data.get(name)
            data = merged(data, changes) if changes else data
        return data

    @cached_property
    def digest(self) -> str:
        """The catalog's digest and the overlays: `1a2b3c4d5e6f + llmfeas.yaml@9f8e7d6c`."""
        return " + ".join((self.base.digest, *(overlay.name for overlay in self.overlays)))

    @property
    def overlay_paths(self) -> tuple[Path, ...]:
        """The files laid over the catalog, in the order in which they apply."""
        return tuple(overlay.path for overlay in self.overlays)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Which of them say anything, and that entries cannot be used: the first of those."""
        paths = (overlay.path for overlay in self.overlays if any(overlay.data.values()))
        changed = tuple(f"the catalog is changed by {printable(path, 120)}" for path in paths)
        if not self._faulty:
            return changed
        first, more = printable(self._faulty[0].message, 240), len(self._faulty) - 1
        found = f"{first}; and {more} more" if more else first
        return (*changed, f"an entry of one's own is left out: {found} (llmfeas catalog check)")

    @cached_property
    def tables(self) -> Tables:
        """What estimates look numbers up in; what overlays change of it is checked.

        Raises:
            DataError: a number or name that cannot be used, with file and line.
        """
        for problem in self._number_problems(unless=WRITTEN):
            raise problem
        return super().tables

    def _number_problems(self, unless: Mapping[str, Collection[str]] | None = None) -> Iterator[DataError]:
        """Check the data files that overlays change, but those of which they say no more than `unless`."""
        for overlay in self.overlays:
            for name in MAPPINGS:
                changes = overlay.data.get(name)
                if changes and not changes.keys() <= set((unless or {}).get(name, ())):
                    from .integrity import number_problems

                    yield from number_problems(name, self.raw(name), overlay.document, (name,))

    @cached_property
    def _faulty(self) -> tuple[DataError, ...]:
        """What is wrong with entries that overlays add or change: the first fault of each, which cannot be used."""
        return tuple(self._entry_problems())

    def _entry_problems(self) -> Iterator[DataError]:
        for records in (self.devices, self.offers, self.models, self.backends, self.engines):
            assert isinstance(records, OverlaidRecords)
            for key in records.overlaid():
                try:
                    records[key]
                except DataError as error:
                    yield error

    def problems(self) -> Iterator[DataError]:
        """Check every entry that an overlay adds or changes, and the numbers that it changes."""
        yield from self._faulty
        wrong = [*self._base_problems(), *self._number_problems()]
        yield from wrong or self._dangling_names()

    def _base_problems(self) -> Iterator[DataError]:
        """Check the defaults that overlays give, by themselves: an entry that uses them may be in another file."""
        from .validation import part_problems

        for section in SECTIONS.values():
            for overlay in self.overlays if section.base in BASES else ():
                for name, fields in (overlay.data.get(section.base) or {}).items():
                    yield from part_problems(section.record, fields, overlay.document, (section.base, name))

    def _dangling_names(self) -> Iterator[DataError]:
        assert isinstance(self.engines, OverlaidRecords)
        for key in self.engines.overlaid():
            document, place = self.engines.place(key)
            assert document is not None
            for fault in self.tables.faults(self.engines[key]):
                yield bad(document, place, fault, "Mend the name, or add what it names.")


def with_overlays(base: Catalog, paths: Sequence[Path]) -> Catalog:
    """Lay overlays over a catalog; without any it is the catalog itself.

    Raises:
        DataError: a file is missing or its outline is wrong; its entries are checked when they are asked for.
    """
    return OverlaidCatalog(base, [read_overlay(path) for path in paths]) if paths else base


def use_overlays(paths: Iterable[Path]) -> None:
    """Make the catalog with these overlays, in this order, that of the process.

    Raises:
        DataError: a file is missing or its outline is wrong.
    """
    install(with_overlays(built_in(), list(paths)))

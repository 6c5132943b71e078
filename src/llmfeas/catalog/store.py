"""The catalogs: found, read once, and built entry by entry as they are asked for.

A wheel carries its data as JSON that was validated when it was built; a working tree carries YAML, which is validated
as entries are asked for.
"""

from __future__ import annotations

import functools
import json
import os
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..errors import DataError, did_you_mean
from .architecture import Model
from .backend import Backend
from .device import Device, Offer
from .engine import Engine, completed
from .files import DataFile, Section
from .files import data_directory as data_directory
from .files import data_file as data_file
from .files import data_folder as data_folder
from .processor import with_rule
from .records import EntryKind, LikeError, built, completed_model, merged

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Protocol

    from .document import Document
    from .tables import Tables

    class ReadFile(Protocol):
        """Reads a file of the catalog by its name."""

        def __call__(self, name: str, *, needed: bool) -> DataFile:
            """The file; an empty one where it is missing and not needed."""
            ...


R = TypeVar("R")

DEVICES: Final = EntryKind(
    "hardware", "devices", Device, "generations", "generation", derived=with_rule, more=("processors",)
)
OFFERS: Final = EntryKind("offers", "offers", Offer, needed=False)
MODELS: Final = EntryKind("models", "models", Model, "families", "family", completed_model)
BACKENDS: Final = EntryKind("backends", "backends", Backend)
ENGINES: Final = EntryKind("engines", "engines", Engine, "plain", completed=completed)


class Told(dict[str, object]):
    """A field of entries by id: of those of a wheel in one go, of others as they are asked for."""

    def __init__(self, ask: Callable[[str], object]) -> None:
        self.ask = ask

    def __missing__(self, key: str) -> object:
        return self.ask(key)


class Records(Mapping[str, R]):
    """Entries of one kind by id, each built when first asked for; files after the first are read when needed."""

    def __init__(self, section: EntryKind[R], read: ReadFile) -> None:
        self.section = section
        self._read_file = read
        self._unread = list(section.files)
        self._built: dict[str, R] = {}
        self._raw: dict[str, dict[str, Any] | Section] = {}
        """As written, or the section of a wheel that has it."""
        self._file: dict[str, int] = {}
        """Which of the files read each entry stands in."""
        self._read: list[DataFile] = []
        self._bases: dict[tuple[object, int | None], Mapping[str, Any]] = {}
        """What entries of a file leave to each base, as found so far."""
        self._read_next()

    def _read_next(self) -> bool:
        if not self._unread:
            return False
        file = self._read_file(self._unread.pop(0), needed=self.section.needed and not self._read)
        self._read.append(file)
        entries = _entries(self.section, file)
        fresh = {key: entry for key, entry in entries.items() if key not in self._raw} if self._raw else entries
        self._raw.update(fresh)
        self._file.update(dict.fromkeys(fresh, len(self._read) - 1))
        self._bases.clear()
        return True

    def _has(self, key: object) -> bool:
        while key not in self._raw:
            if not self._read_next():
                return False
        return True

    def _all(self) -> Collection[str]:
        while self._read_next():
            pass
        return self._raw

    def _entry(self, key: str) -> dict[str, Any]:
        entry = self._raw[key]
        if isinstance(entry, Section):
            entry = self._raw[key] = entry[key]
        return entry

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files that the entries stand in."""
        self._all()
        return tuple(self._read)

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __getitem__(self, key: str) -> R:
        record = self._built.get(key)
        if record is None:
            record = self._built[key] = self._record(key)
        return record

    def __contains__(self, key: object) -> bool:
        return self._has(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def first(self) -> Iterator[str]:
        """Ids of the entries of the first file, and of those that stand in none; others stay unread."""
        return (key for key in tuple(self._raw) if not self._file.get(key))

    def names(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Each id with its entry as written, without building it."""
        return ((key, self._entry(key)) for key in self._all())

    def indexed(self) -> Mapping[str, Any]:
        """What its entries are called as a wheel carries it, ready to look names up in (`packing`); empty elsewhere."""
        return self._read_file(f"names/{self.section.key}", needed=False).data

    def written(self, key: str) -> Mapping[str, Any] | None:
        """An entry as written; None where there is none."""
        return self._entry(key) if self._has(key) else None

    def raw(self, key: str) -> dict[str, Any]:
        """An entry as plain data, its defaults filled in, and what follows from the rest of it.

        Raises:
            KeyError: there is no such entry.
            DataError: it is like one that does not exist, or like itself.
        """
        entry = self.written(key)
        if entry is None:
            raise KeyError(key)
        whole = self._completed(key, entry) if self.section.completed else self._with_defaults(key, entry)
        if self.section.derived is None:
            return whole
        beside: Any = (file.data for file in self._beside(key))  # read, but never written to
        return self.section.derived(whole, ChainMap(*beside))

    def _beside(self, key: str) -> Iterator[DataFile]:
        """The files whose other sections an entry may use: its own, then all that were read."""
        own = self._file.get(key)
        if own is not None:
            yield self._read[own]
        yield from (file for number, file in enumerate(self._read) if number != own)

    def _with_defaults(self, key: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        defaults = self._base_of(key)
        return merged(defaults, entry) if defaults else dict(entry)

    def _completed(self, key: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        assert self.section.completed is not None
        try:
            return self.section.completed(entry, self._read[0].data[self.section.base], self.written)
        except LikeError as error:
            document, place = self.place(key)
            where = document.where((*place, "like")) if document else f"{self.section.key}[{key}]"
            raise unlike(where, error.args[0], self) from None

    def place(self, key: str) -> tuple[Document | None, tuple[str | int, ...]]:
        """The document that an entry stands in (None: a wheel's), and where."""
        return self._read[self._file[key]].document if self._has(key) else None, (self.section.key, key)

    def peek(self, key: str, field: str) -> object:
        """One field of an entry as written or as its default, without building it; None where it has neither."""
        if not self._has(key):
            raise KeyError(key)
        entry = self._raw[key]
        if isinstance(entry, Section):
            told = entry.told(field)
            if told is not None:
                return told.get(key)
            entry = self._entry(key)
        return entry[field] if field in entry else self._base_of(key).get(field)

    def reader(self, field: str) -> Callable[[str], object]:
        """`peek` for one field of very many entries; with `?` behind its name, `tells`."""
        told = Told(self.asking(field))
        for file in reversed(self._read):
            section = file.data.get(self.section.key)
            told.update((section.told(field) or {}) if isinstance(section, Section) else {})
        return told.__getitem__

    def asking(self, field: str) -> Callable[[str], object]:
        """The same, entry by entry."""
        ask, name = (self.tells, field[:-1]) if field[-1] == "?" else (self.peek, field)
        return functools.partial(ask, field=name)

    def tells(self, key: str, field: str) -> bool:
        """Whether an entry, or its base, says anything of a field."""
        entry = self._raw.get(key)
        told = entry.told(f"{field}?") if isinstance(entry, Section) else None
        return bool(told[key] if told is not None else self.peek(key, field))

    def _base_of(self, key: str) -> Mapping[str, Any]:
        """What an entry leaves to its base, which may stand in any of the files."""
        if not self.section.base_field:
            return {}
        place = self._entry(key).get(self.section.base_field), self._file.get(key)
        found = self._bases.get(place)
        if found is None:
            found = self._bases[place] = self._found_base(key, place[0])
        return found

    def _found_base(self, key: str, name: Any) -> Mapping[str, Any]:
        for file in self._beside(key):
            bases = file.data.get(self.section.base)
            defaults = bases.get(name) if isinstance(bases, Mapping) else None
            if defaults is not None:
                return defaults if isinstance(defaults, Mapping) else {}
        return {}

    def _record(self, key: str) -> R:
        raw, document = self.raw(key), self._read[self._file[key]].document
        if document is None:
            return built(self.section.record, raw)
        from .validation import validated_entry

        record: R = validated_entry(self.section, key, raw, document)
        return record


def unlike(where: str, name: object, known: Collection[str]) -> DataError:
    """The error of an entry that is like one that does not exist, or like itself."""
    from difflib import get_close_matches

    from ..text import printable

    if str(name) in known:
        return DataError("bad-data", f"{where}: leads back to itself", "Break the circle.")
    near = get_close_matches(str(name), list(known), 2)
    hint = did_you_mean(near[:1], "Name one of the section's entries.")
    return DataError("bad-data", f"{where}: there is no '{printable(name, 40)}' to be like", hint, near)


def _entries(section: EntryKind[Any], file: DataFile) -> Mapping[str, dict[str, Any] | Section]:
    """The entries of a section by id, or that section.

    Raises:
        DataError: no list, an entry without id, or an id that occurs twice.
    """
    listed = file.data.get(section.key, [])
    if isinstance(listed, Section):
        return dict.fromkeys(listed, listed)
    entries = (
        {entry["id"]: entry for entry in listed if isinstance(entry, dict) and isinstance(entry.get("id"), str)}
        if isinstance(listed, list)
        else {}
    )
    if file.document is not None and (not isinstance(listed, list) or len(entries) != len(listed)):
        from .validation import unusable_list

        raise unusable_list(section, listed, file.document)
    return entries


class Catalog:
    """Devices, models, backends and offers by id, and the other data files as plain data."""

    def __init__(self, directory: Path | None = None) -> None:
        self.folder = data_folder() if directory is None else str(directory)
        self._files: dict[str, DataFile] = {}

    @property
    def directory(self) -> Path:
        """Where its data lie."""
        from pathlib import Path

        return Path(self.folder)

    @property
    def overlay_paths(self) -> tuple[Path, ...]:
        """The files laid over the catalog, in the order in which they apply."""
        return ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What answers say of the files laid over the catalog."""
        return ()

    def _file(self, name: str, *, needed: bool = True) -> DataFile:
        if name not in self._files:
            self._files[name] = data_file(self.folder, name, needed=needed)
        return self._files[name]

    def _records(self, section: EntryKind[R]) -> Records[R]:
        return Records(section, self._file)

    @functools.cached_property
    def devices(self) -> Records[Device]:
        """Devices by id."""
        return self._records(DEVICES)

    @functools.cached_property
    def offers(self) -> Records[Offer]:
        """Offers by id."""
        return self._records(OFFERS)

    @functools.cached_property
    def models(self) -> Records[Model]:
        """Models by id."""
        return self._records(MODELS)

    @functools.cached_property
    def backends(self) -> Records[Backend]:
        """Backends by id."""
        return self._records(BACKENDS)

    @functools.cached_property
    def engines(self) -> Records[Engine]:
        """Engines by id."""
        return self._records(ENGINES)

    def raw(self, name: str) -> Mapping[str, Any]:
        """A data file (`efficiency`, `claims`, `measurements/training`, ...) as plain data.

        Raises:
            DataError: missing or unusable.
        """
        return self._file(name).data

    @functools.cached_property
    def tables(self) -> Tables:
        """What estimates look numbers up in."""
        from .tables import tables_from

        return tables_from(self.raw, self.engines)

    @functools.cached_property
    def digest(self) -> str:
        """Short hash of all data files: the same for a working tree and for the wheel built from it."""
        stored = f"{self.folder}/digest.json"
        if not os.path.isfile(stored):
            return digest(self.directory)
        with open(stored, "rb") as file:
            return str(json.loads(file.read()))


def digest(directory: Path) -> str:
    """Hash the names and contents of a directory's YAML files; 12 hexadecimal digits."""
    import hashlib

    total = hashlib.sha256()
    for path in sorted(directory.rglob("*.yaml")):
        total.update(
            path.relative_to(directory).as_posix().encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest()
        )
    return total.hexdigest()[:12]


@functools.cache
def built_in() -> Catalog:
    """The built-in catalog; it is read once."""
    return Catalog()


_installed: list[Catalog] = []


def catalog() -> Catalog:
    """The catalog of this process: the built-in one, unless another was installed."""
    return _installed[-1] if _installed else built_in()


def install(chosen: Catalog) -> None:
    """Make a catalog that of this process, for whoever asks without naming one."""
    _installed[:] = [chosen]

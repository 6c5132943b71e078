"""Files of the catalog: found, read, and decoded entry by entry where a wheel carries them so (`packing`)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from ..record import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from .document import Document


class Section(Mapping[str, Any]):
    """Entries of a file by their name, each decoded when it is asked for; a few fields of all are told without."""

    def __init__(self, text: bytes, index: Mapping[str, Any], begin: int) -> None:
        names: Sequence[str] = index["names"]
        ends = list(accumulate(index["lengths"], initial=begin))
        self.end: int = ends[-1]
        self._text = text
        self._places = dict(zip(names, pairwise(ends), strict=True))
        self._entries: dict[str, Any] = {}
        self._columns: dict[str, Any] = index["columns"]
        """A field of all entries, in a list until it is asked for, then by their names."""

    def __getitem__(self, name: str) -> Any:
        if name not in self._entries:
            begin, end = self._places[name]
            self._entries[name] = json.loads(self._text[begin:end])
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def told(self, field: str) -> Mapping[str, Any] | None:
        """A field of every entry, or of its base, None where neither has it; None: only the entries say it."""
        column = self._columns.get(field)
        if isinstance(column, list):
            column = self._columns[field] = dict(zip(self._places, column, strict=True))
        return column


def told(entries: Mapping[str, Any], name: str, field: str) -> Any:
    """A field of an entry; None where it has none."""
    known = entries.told(field) if isinstance(entries, Section) else None
    return entries[name].get(field) if known is None else known[name]


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of the catalog: its data, and the YAML document it came from (None: validated JSON of a wheel)."""

    data: Mapping[str, Any]
    document: Document | None


def data_folder() -> str:
    """Find the data: inside the installed package, or beside `src` in a working tree. As text: pathlib takes longer to
    import than the data to find.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    inside = os.path.join(package, "data")
    return inside if os.path.isdir(inside) else os.path.join(package, "..", "..", "data")


def data_directory() -> Path:
    """The same as a path."""
    from pathlib import Path

    return Path(data_folder()).resolve()


def data_file(folder: str, name: str, *, needed: bool = True) -> DataFile:
    """Read `name`.json if the folder has it, else `name`.yaml; an empty one where it has neither and none is needed.

    Raises:
        DataError: missing, unreadable, or no mapping.
    """
    try:
        with open(f"{folder}/{name}.json", "rb") as packed:
            return DataFile(_unpacked(packed.read()), None)
    except FileNotFoundError:
        pass
    from pathlib import Path

    path = Path(folder, f"{name}.yaml")
    if not needed and not path.is_file():
        return DataFile({}, None)
    from .document import read_yaml

    document = read_yaml(path)
    if not isinstance(document.data, dict):
        raise DataError("bad-data", f"{document.name}:1: not a mapping of sections", "See the header of the file.")
    return DataFile(document.data, document)


def _unpacked(text: bytes) -> Mapping[str, Any]:
    """The sections of a packed file: the first line holds most, the second says where the entries of others stand."""
    first = text.find(b"\n")
    second = text.find(b"\n", first + 1)
    if second < 0:
        found: Mapping[str, Any] = json.loads(text)
        return found
    sections = json.loads(text[:first])
    begin = second + 1
    for name, index in json.loads(text[first:second]).items():
        sections[name] = Section(text, index, begin)
        begin = sections[name].end
    return sections  # type: ignore[no-any-return]

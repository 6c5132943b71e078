"""One file that is laid over the catalog: its outline, checked as it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataError, did_you_mean
from ..record import dataclass
from ..text import printable
from .efficiency import Own
from .places import MEASURED_FILE, user_folder
from .records import EntryKind
from .store import BACKENDS, DEVICES, ENGINES, MODELS, OFFERS
from .types import beyond_limits

if TYPE_CHECKING:
    from .document import Document

SECTIONS: Mapping[str, EntryKind[Any]] = {
    section.key: section for section in (DEVICES, OFFERS, MODELS, BACKENDS, ENGINES)
}
BASES = {"generations": "hardware", "families": "models"}
"""Sections of defaults that entries share -> the data file that they belong to."""
MAPPINGS = ("efficiency", "runtime", "quantization", "implementations", "power", "changes")
"""Whole data files that an overlay may change key by key."""
WRITTEN = {"efficiency": ("calibration",)}
"""What the program itself writes into an overlay of those."""
LISTS = ("measurements",)
"""Lists that others read: the user's own measurements (`backtest`)."""
NOT_INHERITED = ("aliases", "repositories", "default_for", "representative")
"""What a new entry does not take from the one it extends: names that would then mean two things."""
PLAIN_TEXT = ("id", "extends", "name", "backend", "kind", "device")
PLAIN_LISTS = ("aliases", "repositories", "default_for", "machines")
"""What is read of entries that nobody has asked for: searches and listings go by it."""
MAX_CHAIN = 20
LONGEST_NAME = 100
"""Characters of what searches, suggestions and listings show of an entry that nobody has asked for."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """One file of overlaid data."""

    path: Path
    document: Document

    @property
    def data(self) -> Mapping[str, Any]:
        """The file's sections."""
        sections: Mapping[str, Any] = self.document.data
        return sections

    def entries(self, key: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The entries of a section with their place in the list."""
        yield from enumerate(self.data.get(key) or ())

    @property
    def name(self) -> str:
        """The file, and what it holds in short: `llmfeas.yaml@1a2b3c4d`."""
        import hashlib

        return f"{printable(self.path, 120)}@{hashlib.sha256(self.document.text.encode()).hexdigest()[:8]}"


def read_overlay(path: Path) -> Overlay:
    """Read an overlay and check its outline: known sections, lists of entries that each have an id or extend one.

    Raises:
        DataError: with file and line.
    """
    from difflib import get_close_matches

    from .document import Document, read_yaml

    document = read_yaml(path)
    data = document.data if document.data is not None else {}
    if not isinstance(data, dict):
        raise bad(document, (), "not a mapping of sections", "Begin with 'devices:' and a list of entries.")
    document = Document(document.name, data, document.text)
    known = [*SECTIONS, *BASES, *MAPPINGS, *LISTS]
    for key, value in data.items():
        if key not in known:
            near = get_close_matches(str(key), known, 2)
            hint = did_you_mean(near[:1], f"Known sections: {', '.join(known)}.")
            raise bad(document, (key,), "unknown section", hint, near)
        if value is not None and not isinstance(value, list if key in SECTIONS or key in LISTS else dict):
            shape = "a list of entries" if key in SECTIONS or key in LISTS else "a mapping"
            raise bad(document, (key,), f"must be {shape}", "See the header of the catalog's own files.")
    for key in SECTIONS:
        _check_entries(document, key, data.get(key) or [])
    return Overlay(path, document)


def _check_entries(document: Document, key: str, entries: Iterable[Any]) -> None:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise bad(document, (key, index), "an entry must be a mapping", "Begin it with '- id: ...'.")
        for field in (*PLAIN_TEXT, SECTIONS[key].base_field):
            if field in entry and not isinstance(entry[field], str):
                raise bad(document, (key, index, field), "must be text", "Write it in quotes.")
            _check_name(document, (key, index, field), entry.get(field, ""))
        for field in PLAIN_LISTS:
            texts = entry.get(field, [])
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise bad(document, (key, index, field), "must be a list of texts", "Write it as [one, two].")
            for text in texts:
                _check_name(document, (key, index, field), text)
        name = entry.get("id", entry.get("extends"))
        if name is None:
            hint = "Begin it with '- id: ...', or with '- extends: ...' to change an entry of the catalog."
            raise bad(document, (key, index), "an entry needs an id or extends one", hint)
        if name in seen:
            raise bad(document, (key, index), f"duplicate id '{printable(name)}'", "Rename or remove one of the two.")
        seen.add(name)


def _check_name(document: Document, place: tuple[str | int, ...], name: str) -> None:
    if len(name) > LONGEST_NAME or not name.isprintable():
        text = f"must be printable text of at most {LONGEST_NAME} characters, not '{printable(name, 40)}'"
        raise bad(document, place, text, "Choose another name.")


def bad(document: Document, place: tuple[str | int, ...], text: str, hint: str, near: Sequence[str] = ()) -> DataError:
    """The error of what stands at a place in a document."""
    return DataError("bad-data", f"{document.where(place)}: {text}", hint, near)


HINT = "It is left out. Mend it, or remove it and add the measurements again."


def usable(paths: Iterable[Path]) -> tuple[list[Path], list[DataError]]:
    """Overlays without a file of own measurements that cannot be used, and what is wrong with that."""
    good, errors = [], []
    own = user_folder() / MEASURED_FILE
    for path in paths:
        fault = _fault(path) if path == own else None
        if fault is None:
            good.append(path)
        else:
            errors.append(fault)
    return good, errors


def _fault(path: Path) -> DataError | None:
    """What is wrong with a file of own measurements; None where nothing is."""
    try:
        overlay = read_overlay(path)
        calibration = (overlay.data.get("efficiency") or {}).get("calibration") or {}
        entries = [entry for kinds in calibration.values() for each in kinds.values() for entry in each.values()]
        wrong = [text for entry in entries for text in _wrong(entry)]
    except DataError as error:
        return DataError(error.code, error.message, HINT)
    except (TypeError, AttributeError, ValueError) as error:
        wrong = [f"does not fit ({printable(error, 80)})"]
    return DataError("bad-data", f"{printable(path, 120)}: calibration: {wrong[0]}", HINT) if wrong else None


def _wrong(entry: dict[str, object]) -> list[str]:
    odd = [name for name, value in entry.items() if not isinstance(value, int | float)]
    return [f"{printable(odd[0], 40)} must be a number"] if odd else list(beyond_limits(Own(**entry)))  # type: ignore[arg-type]

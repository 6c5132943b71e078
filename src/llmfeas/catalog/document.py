"""Reads YAML safely and knows where everything stands; the only place of the program that reads YAML.

Plain scalars follow YAML 1.2: `3e9` is a number, `2026-09-25`, `yes` and `012` are text. Tags, duplicate keys, a
second document, and files that grow or nest beyond bounds (alias bombs) are refused with file and line. Data is built
from the parser's events, so that depth is bounded before anything recurses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from ..errors import DataError
from ..record import dataclass
from ..text import printable

MAX_BYTES: Final = 20_000_000
MAX_VALUES: Final = 500_000
"""Values after aliases are expanded; the largest file of the catalog has about 20,000."""
MAX_DEPTH: Final = 60

Place = tuple[str | int, ...]
Marks = Mapping[Place, tuple[int, int]]
"""Line and column, both from 1, of each value by its path; of a value under a key, those of the key."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL: Final = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEAN: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_END: Final = object()


@dataclass(frozen=True, slots=True)
class Document:
    """What a YAML file says: its `data`, and its text to find lines in when something is wrong."""

    name: str
    data: Any
    text: str
    marks: Marks | None = None
    """Kept where many positions will be asked for; messages then name columns too."""

    def line(self, path: Sequence[str | int]) -> int:
        """The line (from 1) of the value that `path` leads to, or of the last part of the path that exists.

        A part is a key, an index, or in a list of entries the `id` of one.
        """
        return self.position(path)[0]

    def position(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Line and column (both from 1) of what `line` finds."""
        marks = self.marks if self.marks is not None else _marks(self.text, self.name)
        value: Any = self.data
        place: Place = ()
        spot = marks.get((), (1, 1))
        for part in path:
            value, key = _step(value, part)
            place = (*place, key)
            if place not in marks:
                break
            spot = marks[place]
        return spot

    def where(self, path: Sequence[str | int]) -> str:
        """Say where a value stands: `hardware.yaml:123: devices[rtx-4090].bandwidth_gb_per_s`."""
        line, column = self.position(path)
        spot = f"{line}:{column}" if self.marks is not None else str(line)
        return f"{self.name}:{spot}: {shown_path(path)}"


def _marks(text: str, name: str) -> Marks:
    reader = _Reader(text, name, marks={})
    reader.document()
    return reader.marks or {}


def _step(value: Any, part: str | int) -> tuple[Any, str | int]:
    if isinstance(value, dict):
        return value.get(str(part)), str(part)
    if isinstance(value, list) and isinstance(part, int):
        return (value[part], part) if 0 <= part < len(value) else (None, part)
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict) and item.get("id") == part:
                return item, index
    return None, part


def shown_path(path: Sequence[str | int]) -> str:
    """Write a path as people do, entries of a file in brackets: `devices[rtx-4090].links[0].kind`."""
    shown = ""
    for place, part in enumerate(path):
        name = printable(part, 40)
        shown += f"[{name}]" if isinstance(part, int) or place == 1 else f".{name}"
    return shown.removeprefix(".")


def read_yaml(path: Path, name: str = "", *, columns: bool = False) -> Document:
    """Read one YAML file; `name` stands for it in messages (default: its last part), `columns` are named in them too.

    Raises:
        DataError: missing, unreadable, too large, not UTF-8, not YAML, or more than data (tags, bombs, duplicate keys).
    """
    name, place = printable(name or path.name, 200), printable(path, 200)
    where = "" if name == place else f" ({place})"
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise DataError("file-missing", f"{name}: there is no such file{where}", "Check the path.") from None
    except OSError as error:
        raise DataError("file-unreadable", f"{name}: {error.strerror or 'unreadable'}{where}", "Check it.") from None
    if len(raw) > MAX_BYTES:
        raise _too_large(name)
    try:
        return parse_yaml(raw.decode("utf-8-sig"), name, columns=columns)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        spot = f"{name}:{line}:{column}" if columns else f"{name}:{line}"
        raise DataError("bad-yaml", f"{spot}: no UTF-8 text (byte {error.start})", "Save it as UTF-8.") from None


def parse_yaml(text: str, name: str, *, columns: bool = False) -> Document:
    """Read YAML text; `name` stands for the file in messages.

    Raises:
        DataError: as for `read_yaml`.
    """
    if len(text) > MAX_BYTES:
        raise _too_large(name)
    reader = _Reader(text, name, marks={} if columns else None)
    return Document(name, reader.document(), text, reader.marks)


def _mark(event: Any) -> tuple[int, int]:
    return int(event.start_mark.line) + 1, int(event.start_mark.column) + 1


def _too_large(name: str) -> DataError:
    return DataError("file-too-large", f"{name}: larger than {MAX_BYTES // 10**6} MB", "Split it.")


class _Reader:
    """Builds plain data from YAML events; counts what aliases expand to."""

    def __init__(self, text: str, name: str, marks: dict[Place, tuple[int, int]] | None = None) -> None:
        self.name = name
        self.text = text
        self.marks = marks
        self.values = 0
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.events: Iterator[Any] = iter(())

    def document(self) -> Any:
        loader = None
        try:
            loader = _LOADER(self.text)
            self.events = iter(loader.get_event, None)
            next(self.events)  # the stream begins
            if isinstance(next(self.events), yaml.StreamEndEvent):
                return None
            value = self.value((), 0)
            next(self.events)  # the document ends
            surplus = next(self.events)
            if not isinstance(surplus, yaml.StreamEndEvent):
                raise self.refusal(surplus, "a second document begins", "Keep one document to a file.")
            return value
        except yaml.YAMLError as error:
            raise self.syntax_error(error) from None
        except UnicodeError:
            raise DataError("bad-yaml", f"{self.name}: not valid Unicode text", "Save it as UTF-8.") from None
        finally:
            if loader is not None:
                loader.dispose()

    def value(self, path: Place, depth: int) -> Any:
        """The next value, or `_END` where its collection ends."""
        event = next(self.events)
        if isinstance(event, yaml.CollectionEndEvent):
            return _END
        before = self.values
        self.values += 1
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        if self.values > MAX_VALUES:
            raise self.refusal(event, "holds too many values", "Split the file.")
        if depth > MAX_DEPTH:
            raise self.refusal(event, "nests too deeply", f"Nest at most {MAX_DEPTH} levels.")
        if event.tag not in (None, "!"):
            raise self.refusal(event, f"has the tag '{printable(event.tag, 60)}'", "Write plain data without tags.")
        if self.marks is not None:
            self.marks.setdefault(path, _mark(event))
        if isinstance(event, yaml.ScalarEvent):
            built = self.scalar(event) if event.implicit[0] else event.value
        elif isinstance(event, yaml.SequenceStartEvent):
            built = self.sequence(path, depth)
        else:
            built = self.mapping(path, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = (built, self.values - before)
        return built

    def alias(self, event: Any) -> Any:
        if event.anchor not in self.anchors:
            raise self.refusal(event, f"'*{printable(event.anchor, 40)}' names nothing before it", "Spell it out.")
        built, size = self.anchors[event.anchor]
        self.values += size
        if self.values > MAX_VALUES:
            raise self.refusal(event, "expands to too many values", "Use fewer aliases (&x, *x).")
        return built

    def sequence(self, path: Place, depth: int) -> list[Any]:
        built: list[Any] = []
        while (item := self.value((*path, len(built)), depth + 1)) is not _END:
            built.append(item)
        return built

    def mapping(self, path: Place, depth: int) -> dict[str, Any]:
        built: dict[str, Any] = {}
        while not isinstance(key := next(self.events), yaml.CollectionEndEvent):
            if not isinstance(key, yaml.ScalarEvent):
                raise self.refusal(key, "a key that is no text", "Write keys as plain words.")
            if key.value in built:
                raise self.refusal(key, f"duplicate key '{printable(key.value, 60)}'", "Keep one of the two.")
            if self.marks is not None:
                self.marks[(*path, key.value)] = _mark(key)
            built[key.value] = self.value((*path, key.value), depth + 1)
        return built

    def scalar(self, event: Any) -> Any:
        text = event.value
        if text in _NULL:
            return None
        if text in _BOOLEAN:
            return _BOOLEAN[text]
        if not _FLOAT.fullmatch(text) and not _INTEGER.fullmatch(text):
            return text
        number = math.inf if len(text) > 40 else int(text) if _INTEGER.fullmatch(text) else float(text)
        if not math.isfinite(number):
            raise self.refusal(event, f"number '{printable(text, 30)}' is out of bounds", "Write less than 1e308.")
        return number

    def refusal(self, event: Any, problem: str, hint: str) -> DataError:
        return DataError("bad-yaml", f"{self.place(*_mark(event))}: {problem}", hint)

    def place(self, line: int, column: int) -> str:
        return f"{self.name}:{line}:{column}" if self.marks is not None else f"{self.name}:{line}"

    def syntax_error(self, error: yaml.YAMLError) -> DataError:
        mark = getattr(error, "problem_mark", None)
        line, column = (int(mark.line) + 1, int(mark.column) + 1) if mark else (1, 1)
        place = self.place(line, column)
        lines = self.text.splitlines()
        if 0 < line <= len(lines) and lines[line - 1].lstrip(" -").startswith("\t"):
            return DataError("bad-yaml", f"{place}: a tab where YAML wants spaces", "Indent with spaces.")
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
        if "nesting" in problem:  # newer readers have a limit of their own, which a flood of brackets meets first
            return DataError("bad-yaml", f"{place}: nests too deeply", f"Nest at most {MAX_DEPTH} levels.")
        hint = "Mend that line or the one above it."
        return DataError("bad-yaml", f"{place}: not valid YAML: {printable(problem, 120)}", hint)

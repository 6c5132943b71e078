"""Scenarios from a file or a pipe, one after the other: NDJSON, an object a line, CSV, or YAML with crossed lists."""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

from ..errors import DataError, unreadable
from ..record import dataclass
from ..text import printable
from ..units import json_integer
from .scenario_items import BLOCK_SCENARIOS, MAX_LINE_BYTES, Item, ScenarioLine

BLOCK_BYTES = 1 << 16
LINES = (".ndjson", ".jsonl")
"""Endings of files that hold one object a line."""
TABLES = (".csv", ".tsv")
"""Endings of files that are tables."""
MAX_CROSSED = 10_000_000
"""Scenarios that a YAML file may expand to."""


@dataclass(frozen=True, slots=True)
class Source:
    """Scenarios to come. `total` counts them where that is known before the start."""

    arrivals: Iterator[list[Item | ScenarioLine]]
    """Those that are there at the same time; nothing is read ahead of an answer that somebody may wait for."""
    total: int | None = None


def source(path: str) -> Source:
    """Open a file of scenarios; `-` is stdin. NDJSON begins with `{` in its first line, or a broken one and its second.

    What is called .ndjson or .jsonl is NDJSON too; what is called .csv or .tsv, or begins with names of settings, is a
    table; everything else YAML.

    Raises:
        DataError: no such file, unreadable, no YAML or none of it, or a product of more than 10,000,000 scenarios.
    """
    stream = _opened(path)
    name = "stdin" if path == "-" else printable(Path(path).name, 60)
    first = stream.readline(MAX_LINE_BYTES + 1)
    while first.strip() in (b"", b"\xef\xbb\xbf") and first:
        first = stream.readline(MAX_LINE_BYTES + 1)
    if not first or _is_object(first):
        return Source(_from_lines(first, stream))
    if path.endswith(TABLES) or _may_be_header(first):
        from .table_scenarios import from_table, is_header

        if path.endswith(TABLES) or is_header(first):
            return Source(from_table(first, stream, name))
    second = stream.readline(MAX_LINE_BYTES + 1)
    if _is_object(second) or path.endswith(LINES):
        return Source(_from_lines(first + second, stream))
    first += second
    return _crossed_source(first, stream, name)


def _may_be_header(line: bytes) -> bool:
    return any(separator in line for separator in (b",", b";", b"\t")) and b":" not in line


def _is_object(line: bytes) -> bool:
    return line.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def _opened(path: str) -> BufferedReader:
    if path == "-":
        if sys.stdin is None:
            raise DataError("file-missing", "stdin is closed.", "Name a file.")
        return cast(BufferedReader, sys.stdin.buffer)
    try:
        return Path(path).open("rb")
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def _from_lines(first: bytes, stream: BufferedReader) -> Iterator[list[Item | ScenarioLine]]:
    """Lines as they arrive: all that are there, as soon as there are any."""
    pending, number, is_cut = first, 0, False
    while True:
        *lines, pending = pending.split(b"\n")
        arrived: list[Item | ScenarioLine] = []
        for raw in lines:
            number += 1
            if is_cut or len(raw) > MAX_LINE_BYTES:
                arrived.append(_too_long(number))
            elif raw.strip():
                arrived.append(ScenarioLine(raw, number))
            is_cut = False
        if len(pending) > MAX_LINE_BYTES:
            pending, is_cut = b"", True
        if arrived:
            yield arrived
        block = stream.read1(BLOCK_BYTES)
        if not block:
            break
        pending += block
    if is_cut or pending.strip():
        yield [_too_long(number + 1) if is_cut else ScenarioLine(pending, number + 1)]


def _too_long(number: int) -> Item:
    return Item(None, number, {}, _bad_line(f"is longer than {MAX_LINE_BYTES:,} bytes"))


def item_of_line(raw: bytes, number: int) -> Item:
    """Read one line of NDJSON; a line that cannot be read becomes an item with its error."""
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        settings = _DECODER.decode(text)
    except _TwiceError as twice:
        return Item(None, number, {}, _bad_line(f"says {printable(twice, 40)!r} twice"))
    except UnicodeDecodeError:
        return Item(None, number, {}, _bad_line("is not UTF-8"))
    except (ValueError, RecursionError) as error:
        problem = error.msg if isinstance(error, json.JSONDecodeError) else "it nests too deeply or holds a huge number"
        return Item(None, number, {}, _bad_line(f"is not JSON: {problem}"))
    if not isinstance(settings, dict):
        return Item(None, number, {}, _bad_line("is not an object of settings"))
    named = settings.pop("id", number)
    if not _is_json(named):
        return Item(None, number, {}, _bad_line("has an id with a number out of bounds"))
    return Item(named, number, settings)


class _TwiceError(Exception):
    """A key that an object has twice: nobody knows which of its values was meant."""


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError(next(name for place, (name, _) in enumerate(pairs) if name in dict(pairs[:place])))
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_once_each, parse_int=json_integer)
"""Made once, not for each line."""


def _is_json(value: object) -> bool:
    """Whether JSON can say a value again: Python reads NaN and 1e999, and must not write them."""
    if value.__class__ in (str, int):
        return True
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True


def _bad_line(problem: str) -> DataError:
    hint = 'Write one object a line, such as {"id": 1, "model": "gpt2", "device": "rtx-4090"}.'
    return DataError("bad-line", f"the line {problem}.", hint)


def _crossed_source(first: bytes, stream: BufferedReader, name: str) -> Source:
    from ..catalog.document import MAX_BYTES, parse_yaml

    raw = first + stream.read(MAX_BYTES + 1 - len(first))
    try:
        document = parse_yaml(raw.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError("bad-yaml", f"{name}:{line}: no UTF-8 text.", "Save it as UTF-8.") from None
    blocks = document.data if isinstance(document.data, list) else [document.data]
    if not blocks:
        hint = "Write settings, such as 'model: [gpt2, gpt2-xl]'."
        raise DataError("bad-scenario", f"{name}:1: an empty list: no scenario is in the file.", hint)
    axes = []
    for index, block in enumerate(blocks):
        place = (index,) if isinstance(document.data, list) else ()
        if not isinstance(block, dict):
            problem = f"{name}:{document.line(place)}: no mapping of settings."
            raise DataError("bad-scenario", problem, "Write settings as in 'model: [gpt2, gpt2-xl]'.")
        empty = next((name for name, values in block.items() if values == []), None)
        if empty is not None:
            problem = f"{name}:{document.line((*place, empty))}: {printable(empty, 40)!r} is an empty list."
            raise DataError("bad-scenario", problem, "Give it values, or leave the setting out.")
        axes.append((document.line(place), _axes(block)))
    total = sum(math.prod(len(values) for values in block.values()) for _, block in axes)
    if total > MAX_CROSSED:
        problem = f"{name}: its lists cross to {total:,} scenarios, more than {MAX_CROSSED:,}."
        raise DataError("too-many-scenarios", problem, "Shorten the lists or split the file.")
    items = _crossed(axes)
    return Source(iter(lambda: list(itertools.islice(items, BLOCK_SCENARIOS)), []), total)


def _axes(block: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {name: value if isinstance(value, list) else [value] for name, value in block.items()}


def _crossed(blocks: list[tuple[int, dict[str, list[Any]]]]) -> Iterator[Item | ScenarioLine]:
    number = 0
    for line, axes in blocks:
        ids = axes.pop("id", [None])
        several = math.prod(len(values) for values in axes.values()) > 1
        for base in ids:
            for index, values in enumerate(itertools.product(*axes.values()), start=1):
                number += 1
                named = f"{base}-{index}" if several else base
                yield Item(number if base is None else named, line, dict(zip(axes, values, strict=True)))

"""Scenarios from CSV: a header of settings, then a scenario a row; an empty cell says nothing."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from io import BufferedReader

from ..errors import DataError, UsageError
from ..request import option_called
from ..text import printable
from .scenario_items import BLOCK_SCENARIOS, MAX_LINE_BYTES, Item, ScenarioLine

MOST_COLUMNS = 200


def is_header(line: bytes) -> bool:
    """Whether a first line names settings, a model or a device among them, with commas, semicolons or tabs between."""
    names = _cells(line)
    return len(names) > 1 and bool({"model", "device"} & set(names)) and all(map(_is_column, names))


def _is_column(name: str) -> bool:
    try:
        return name == "id" or bool(option_called(name))
    except UsageError:
        return False


def _separator(line: bytes) -> str:
    return next((each for each in ("\t", ";", ",") if each.encode() in line), ",")


def _cells(line: bytes) -> list[str]:
    text = line.decode("utf-8-sig", "replace").strip()
    try:
        row = next(csv.reader([text], delimiter=_separator(line)), [])
    except csv.Error:  # a line that ends in a carriage return alone, and the next one behind it
        row = [text]
    return [name.strip().lower().lstrip("-").replace("-", "_") for name in row]


def from_table(first: bytes, stream: BufferedReader, name: str) -> Iterator[list[Item | ScenarioLine]]:
    """The scenarios of a table whose first line is `first`.

    Raises:
        DataError: the header names something that is no setting, or something twice.
    """
    header = _header(first, name)
    return _rows(header, csv.reader(_lines(stream), delimiter=_separator(first)))


def _header(first: bytes, name: str) -> list[str]:
    header = _cells(first)
    for column in header:
        try:
            _ = column == "id" or option_called(column)
        except UsageError as error:
            text = f"{name}:1: {printable(column, 40)!r} is no setting."
            raise DataError("bad-table", text, error.hint, error.candidates) from None
    if len(set(header)) < len(header) or len(header) > MOST_COLUMNS:
        raise DataError("bad-table", f"{name}:1: a column stands twice.", "Name each setting once.")
    return header


def _lines(stream: BufferedReader) -> Iterator[str]:
    """Lines without what no cell can be: one that is too long ends in an error of its row."""
    while line := stream.readline(MAX_LINE_BYTES + 1):
        yield line.decode("utf-8", "replace").replace("\0", "\ufffd")


def _rows(header: Sequence[str], rows: Iterator[list[str]]) -> Iterator[list[Item | ScenarioLine]]:
    found: list[Item | ScenarioLine] = []
    number = 0
    while True:
        number += 1
        try:
            row = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            found.append(_bad(number, f"cannot be read: {error}"))
            continue
        if any(cell.strip() for cell in row):
            found.append(_item(header, row, number))
        if len(found) >= BLOCK_SCENARIOS:
            yield found
            found = []
    if found:
        yield found


def _item(header: Sequence[str], row: Sequence[str], number: int) -> Item:
    if len(row) > len(header):
        return _bad(number, f"has {len(row)} cells under {len(header)} names")
    settings: dict[str, object] = {name: cell.strip() for name, cell in zip(header, row, strict=False) if cell.strip()}
    return Item(settings.pop("id", number), number + 1, settings)


def _bad(number: int, problem: str) -> Item:
    return Item(number, number + 1, {}, DataError("bad-line", f"the row {printable(problem, 200)}.", "See its header."))

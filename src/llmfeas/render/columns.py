"""Rows under titles, for any width: side by side where there is room, one record below the other where there is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from .layout import Line, cells, line_cells, padded, wrapped
from .report import Column, Span, Table

T = TypeVar("T")

GAP = 2
FLEXIBLE = 14
"""The narrowest that a column of flexible text may become."""


def table_lines(table: Table, width: int) -> Iterator[Line]:
    """Lay a table out in lines of at most `width` columns; figures are never broken or cut."""
    table = _fitting(table, width)
    widths = _widths(table, width)
    if widths is None:
        yield from _records(table, width)
        return
    yield _joined([[Span(column.title, "strong")] for column in table.columns], table, widths)
    for row in table.rows:
        folded = [
            _folded(column, span, size) if column.flexible else [[span]]
            for column, span, size in zip(table.columns, row, widths, strict=True)
        ]
        for index in range(max(len(lines) for lines in folded)):
            yield _joined([lines[index] if index < len(lines) else [] for lines in folded], table, widths)


def _folded(column: Column, span: Span, size: int) -> list[Line]:
    """Wrap a cell; what is carried over hangs below the text, not below the sign before it."""
    if cells(span.text) <= size:
        return [[span]]
    first, *others = wrapped([span], size - column.hanging)
    return [first, *([Span(" " * column.hanging), *line] for line in others)]


def _fitting(table: Table, width: int) -> Table:
    """Leave out spare columns, the last first, until the others have room; all stay where that does not help."""
    narrower = table
    while _widths(narrower, width) is None:
        spare = [index for index, column in enumerate(narrower.columns) if column.spare]
        if not spare:
            return table
        narrower = Table(
            columns=_without(narrower.columns, spare[-1]),
            rows=tuple(_without(row, spare[-1]) for row in narrower.rows),
        )
    return narrower


def _without(items: tuple[T, ...], index: int) -> tuple[T, ...]:
    return items[:index] + items[index + 1 :]


def _joined(line_cells_: list[Line], table: Table, widths: list[int]) -> Line:
    line: Line = []
    for index, (cell, column, size) in enumerate(zip(line_cells_, table.columns, widths, strict=True)):
        line += [Span(" " * GAP)] if index else []
        line += padded(cell, size, right=column.figures)
    return line


def _widths(table: Table, width: int) -> list[int] | None:
    natural = [
        max([cells(column.title), *(cells(row[index].text) for row in table.rows)])
        for index, column in enumerate(table.columns)
    ]
    surplus = sum(natural) + GAP * (len(natural) - 1) - width
    for index, column in enumerate(table.columns):
        if surplus > 0 and column.flexible:
            cut = min(surplus, max(0, natural[index] - max(FLEXIBLE, cells(column.title))))
            natural[index] -= cut
            surplus -= cut
    return natural if surplus <= 0 else None


def _records(table: Table, width: int) -> Iterator[Line]:
    for number, row in enumerate(table.rows):
        if number:
            yield []
        if row[0].text:
            yield from wrapped([Span(row[0].text, "strong")], width)
        for column, span in zip(table.columns[1:], row[1:], strict=True):
            if span.text:
                yield from _field(column.title, span, width)


def _field(title: str, span: Span, width: int) -> Iterator[Line]:
    label = [Span(f"  {title} ", "dim")]
    indent = line_cells(label)
    for index, line in enumerate(wrapped([span], max(8, width - indent))):
        yield [*(label if index == 0 else [Span(" " * indent)]), *line]

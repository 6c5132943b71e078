"""The report of one entry of a catalog: its fields, notes and sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...text import printable
from ...units import digits
from ..report import Column, Phrase, Report, Table, Topic, glued, lines_of

NOTES = ("notes", "sources", "unverified", "doubts")
"""Fields of an entry that are prose, shown below the others."""

SILENT = (None, "", "none", False, 0)
"""Values of a field that say nothing to a person."""

MANY = 4
"""Items of a list that are shown."""


def entry(title: str, fields: Mapping[str, object], remarks: Sequence[str] = ()) -> Report:
    """One entry: every field that says something by its dotted name, then its notes and sources."""
    figures = {name: value for name, value in fields.items() if name not in NOTES}
    rows = tuple((Phrase(path, "dim"), Phrase(text)) for path, text in _fields(figures, ""))
    table = Table(columns=(Column(title="Field"), Column(title="Value", prose=True)), rows=rows)
    blocks = (*((table,) if rows else ()), *_prose(fields))
    return Report(
        title=printable(title, 100), context=tuple(printable(remark, 1000) for remark in remarks), blocks=blocks
    )


def _prose(fields: Mapping[str, object]) -> Iterator[Topic]:
    for name in NOTES:
        value = fields.get(name)
        texts = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
        if texts and texts != [""]:
            lines = lines_of(printable(text, 400) for text in texts)
            yield Topic(label=name.capitalize(), paragraphs=lines)


def _fields(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _fields(inner, f"{path}.{key}" if path else printable(key, 60))
    elif isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
        for item in value:
            yield path, "; ".join(f"{name} {text}" for name, text in _fields(item, "") if text)
    elif isinstance(value, list | tuple):
        if value:
            more = (f"and {len(value) - MANY} more (--json)",) if len(value) > MANY + 1 else ()
            shown = value[:MANY] if more else value
            yield path, ", ".join((*(_scalar(item) for item in shown), *more))
    elif value not in SILENT:
        yield path, _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return glued(digits(value, 6))
    return printable(f"{value:_}".replace("_", ",") if isinstance(value, int) and value > 9999 else value, 400)

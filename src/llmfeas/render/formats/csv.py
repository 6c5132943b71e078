"""The CSV format: one column for each dotted path of the JSON, three for a range; lists stand as JSON in one cell.

Control characters become visible escapes, as JSON writes them: a terminal may be what reads this.
"""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ...text import printable, shown
from .ndjson import rows_of

Row = Mapping[str, object]


@functools.cache
def estimate_columns() -> tuple[str, ...]:
    """The columns of every estimate, training or inference, so that rows of a sweep share one header."""
    from ..pages.schema import estimate_schema, paths

    return tuple(paths(estimate_schema()))


@functools.cache
def comparison_columns() -> tuple[str, ...]:
    """The columns of every row of a comparison, whatever is known of its devices."""
    from ...planning.compare import ComparedDevice
    from ..pages.schema import paths, record_schema

    return tuple(paths(record_schema(ComparedDevice)))


_COLUMNS: Mapping[object, Callable[[], tuple[str, ...]]] = {
    "llmfeas.estimate/1": estimate_columns,
    "llmfeas.compare/1": comparison_columns,
}
"""By schema: columns that are there in any case, so that what is unknown changes no header."""


def rendered(envelope: Row) -> str:
    """A header and the rows of a listing, or a header and one row for any other result."""
    rows = rows_of(envelope)
    columns = _COLUMNS.get(envelope.get("schema"), tuple)()
    flat = [
        {path: value for path, value in flattened(row).items() if not _stands_for_parts(path, value, columns)}
        for row in ([envelope] if rows is None else rows)
    ]
    header = list(dict.fromkeys([*columns, *(path for row in flat for path in row)]))
    # parts of one thing that only later rows have stand beside those of the first row
    order = {name: place for place, name in enumerate(dict.fromkeys(path.split(".")[0] for path in header))}
    return table(sorted(header, key=lambda path: order[path.split(".")[0]]), flat)


def _stands_for_parts(path: str, value: object, known: Sequence[str]) -> bool:
    """Whether a null stands for a whole object whose parts have columns."""
    return value is None and any(column.startswith(f"{path}.") for column in known)


def table(columns: Sequence[str], rows: Iterable[Mapping[str, object]], header: bool = True) -> str:
    """Rows of dotted paths under `columns`; a path that a row lacks is an empty cell."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    if header:
        writer.writerow([shown(column) for column in columns])
    writer.writerows([row.get(path, "") for path in columns] for row in rows)
    return sink.getvalue()


def flattened(row: Row) -> dict[str, object]:
    """The leaves of nested objects by dotted path, as a cell holds them."""
    return dict(_leaves(row, ""))


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, bool):
        yield path, "true" if value else "false"
    elif isinstance(value, list | tuple | Mapping):
        yield path, json.dumps(value, separators=(",", ":"), allow_nan=False) if value else ""
    elif isinstance(value, str) and not value.isprintable():
        yield path, "\n".join(printable(line, len(line)) for line in value.split("\n"))
    else:
        yield path, value

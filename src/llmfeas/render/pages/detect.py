"""The report of this machine: what each device of it is to the catalog, then the fields of the first one."""

from __future__ import annotations

from collections.abc import Sequence

from ..report import Json, Report
from .entry import entry

OPEN = "; write 'llmfeas detect --yaml' to a file, fill in what is null, and give it with --catalog FILE"
"""What to do with a device of which neither the catalog nor the machine tells enough."""


def report(rows: Sequence[Json], notes: Sequence[str] = ()) -> Report:
    """The devices of a machine as `llmfeas detect` matched them, the first one field by field, with notes."""
    shown = {name: value for name, value in rows[0].items() if name not in ("sources", "unverified", "notes")}
    return entry(
        f"This machine: {_counted(rows[0])}",
        shown,
        [*(_sentence(row) for row in rows), *(f"{note[:1].upper()}{note[1:]}." for note in notes)],
    )


def stranger(row: Json) -> str:
    """What is said of a device that the catalog does not know."""
    taken = f"; taken: {row['notes']}" if row["backend"] == "cpu" and row.get("notes") else ""
    return f"{row['name']} is not in the catalog{taken}"


def _counted(row: Json) -> str:
    return f"{row['count']} x {row['name']}" if row["count"] > 1 else str(row["name"])


def _sentence(row: Json) -> str:
    if row["matched"] is None:
        return f"{stranger(row)}{OPEN if row['bandwidth_gb_per_s'] is None else ''}."
    if not row["differences"]:
        return f"{_counted(row)}: as the catalog's {row['matched']}."
    unlike = ", ".join(f"{each['field']} {each['here']} instead of {each['catalog']}" for each in row["differences"])
    return f"{_counted(row)}: the catalog's {row['matched']}, but {unlike}."

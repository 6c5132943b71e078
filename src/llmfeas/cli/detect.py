"""`llmfeas detect`: this machine as devices of the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import __version__
from .output import write as written
from .parameters import Command, Grouped, Output, outputs

if TYPE_CHECKING:
    from ..importers.machine import Matched
    from ..render.report import Report

OPEN = "; write 'llmfeas detect --yaml' to a file, fill in what is null, and give it with --catalog FILE"
"""What to do with a device of which neither the catalog nor the machine tells enough."""


def run(**values: Any) -> None:
    """Say what this machine has, matched to the catalog.

    Raises:
        UsageError: nothing at all was found out.
    """
    output, as_yaml = Output.taken(values), values.pop("yaml_")
    from ..catalog.store import catalog
    from ..errors import UsageError
    from ..importers.machine import detected, matched, this_machine

    machine = this_machine()
    matches = [matched(found, catalog()) for found in machine.devices]
    if not matches:
        raise UsageError("nothing-detected", "nothing could be found out about this machine.", "Name a device.")
    if as_yaml:
        from ..render.overlay import overlay

        written(overlay("devices", _entries(matches)), output.path)
        return
    rows = [detected(match, catalog()) for match in matches]
    host = machine.processor
    result = {
        **rows[0],
        "host_memory_bytes": None if host is None else host.memory_bytes,
        "others": rows[1:],
    }
    envelope = {
        "schema": "llmfeas.detect/1",
        "llmfeas": __version__,
        "catalog": catalog().digest,
        "inputs": {},
        "result": result,
        "warnings": [_remark(row) for row in rows if row["matched"] is None],
    }
    output.write(envelope, lambda: _report(rows))


def _remark(row: Mapping[str, Any]) -> dict[str, str]:
    text = f"{row['name']} is not in the catalog"
    if row["backend"] == "cpu" and row.get("notes"):
        text += f"; taken: {row['notes']}"
    return {"code": "device-unknown", "message": text}


def _entries(matches: list[Matched]) -> list[object]:
    """Give entries for a catalog file: of a known device what differs, of a known kind all, of others with gaps."""
    from ..catalog.store import catalog
    from ..importers.machine import device_of, entry_of

    entries: list[object] = []
    for match in matches:
        device = device_of(match, catalog())
        if match.entry is not None and device is not None:
            changed = [each.field for each in match.differences if hasattr(device, each.field)]
            entries.append({"extends": match.entry.id, **{name: getattr(device, name) for name in changed}})
        else:
            entries.append(entry_of(match, catalog()) if device is None else device)
    return entries


def _report(rows: list[dict[str, Any]]) -> Report:
    from ..render.records import entry

    first = rows[0]
    count = f"{first['count']} x " if first["count"] > 1 else ""
    remarks = [_sentence(row) for row in rows]
    shown = {name: value for name, value in first.items() if name not in ("sources", "unverified", "notes")}
    return entry(f"This machine: {count}{first['name']}", shown, remarks)


def _sentence(row: Mapping[str, Any]) -> str:
    name = f"{row['count']} x {row['name']}" if row["count"] > 1 else row["name"]
    if row["matched"] is None:
        return f"{_remark(row)['message']}{OPEN if row['bandwidth_gb_per_s'] is None else ''}."
    if not row["differences"]:
        return f"{name}: as the catalog's {row['matched']}."
    unlike = ", ".join(f"{each['field']} {each['here']} instead of {each['catalog']}" for each in row["differences"])
    return f"{name}: the catalog's {row['matched']}, but {unlike}."


_YAML = Grouped(["yaml_", "--yaml"], is_flag=True, help="Write entries for a catalog file of one's own.")
command = Command(
    "detect",
    params=[_YAML, *outputs()],
    callback=run,
    help="Find out what this machine has: accelerators, processor, memory. `--device this` uses it everywhere.",
)

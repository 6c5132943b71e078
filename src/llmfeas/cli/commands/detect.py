"""`llmfeas detect`: this machine as devices of the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...contract import Note, envelope
from ..output import write as written
from ..parameters import Command, Grouped, Output, outputs

if TYPE_CHECKING:
    from ...machine import Matched


def run(**values: Any) -> None:
    """Say what this machine has, matched to the catalog.

    Raises:
        UsageError: nothing at all was found out.
    """
    output, as_yaml, measures = Output.taken(values), values.pop("yaml_"), values.pop("measure")
    from ...catalog.store import catalog
    from ...errors import UsageError
    from ...machine import detected, matched, this_machine
    from ...render.pages.detect import report, stranger

    machine = this_machine()
    if measures:
        from ...machine.measure import measured

        machine = measured(machine)
    matches = [matched(device, catalog()) for device in machine.devices]
    if not matches:
        raise UsageError("nothing-detected", "nothing could be found out about this machine.", "Name a device.")
    if as_yaml:
        from ...render.pages.overlay import overlay

        written(overlay("devices", _entries(matches)), output.path)
        return
    rows = [detected(match, catalog()) for match in matches]
    host = machine.processor
    result = {**rows[0], "host_memory_bytes": None if host is None else host.memory_bytes, "others": rows[1:]}
    warnings = [Note("device-unknown", stranger(row)) for row in rows if row["matched"] is None]
    warnings += [Note("silent-device", each) for each in machine.trouble]
    warnings += [Note("limited-device", limit) for device in machine.devices for limit in device.limits]
    said = [warning.message for warning in warnings if warning.code != "device-unknown"]
    output.write(envelope("detect", catalog().digest, {}, result, warnings), lambda: report(rows, said))


def _entries(matches: list[Matched]) -> list[object]:
    """Entries for a catalog file: of a known device what differs, of a known kind all, of others with gaps."""
    from ...catalog.store import catalog
    from ...machine import device_of, entry_of

    entries: list[object] = []
    for match in matches:
        device = device_of(match, catalog())
        if match.entry is not None and device is not None:
            changed = [each.field for each in match.differences if hasattr(device, each.field)]
            entries.append({"extends": match.entry.id, **{name: getattr(device, name) for name in changed}})
        else:
            entries.append(entry_of(match, catalog()) if device is None else device)
    return entries


_YAML = Grouped(["yaml_", "--yaml"], is_flag=True, help="Write entries for a catalog file of one's own.")
_MEASURE = Grouped(
    ["measure", "--measure"], is_flag=True, help="Measure how fast main memory is read: a second or two."
)
command = Command(
    "detect",
    params=[_YAML, _MEASURE, *outputs()],
    callback=run,
    help="Find out what this machine has: accelerators, processor, memory. `--device this` uses it everywhere.",
)

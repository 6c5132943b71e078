"""Intel GPUs by xpu-smi, Gaudi by hl-smi."""

from __future__ import annotations

import json
import re

from ..text import printable
from ..units import MIB
from .nvidia import number
from .probe import Found, Trouble, grouped, output


def intel_devices(trouble: Trouble | None = None) -> list[Found]:
    """Ask xpu-smi for its devices, then for each one's memory; empty where there is none."""
    listed = _records(output(["xpu-smi", "discovery", "-j"], trouble=trouble))
    ids = [record.get("device_id") for record in listed][:16]
    details = [output(["xpu-smi", "discovery", "-d", str(number), "-j"]) for number in ids if isinstance(number, int)]
    return parse_xpu_smi("\n".join(details)) if any(details) else _found(listed)


def parse_xpu_smi(text: str) -> list[Found]:
    """Read `xpu-smi discovery [-d N] -j`: one JSON object after another, each a device or a list of them."""
    return _found(_records(text))


def gaudi_devices(trouble: Trouble | None = None) -> list[Found]:
    """Ask hl-smi; empty where there is none."""
    command = ["hl-smi", "-Q", "name,memory.total,driver_version", "-f", "csv,noheader,nounits"]
    return parse_hl_smi(output(command, trouble=trouble))


def parse_hl_smi(text: str) -> list[Found]:
    """Read `hl-smi -Q name,memory.total -f csv,noheader,nounits`: `HL-225, 98304`."""
    devices = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < 2 or not cells[0].startswith("HL-"):
            continue
        memory = number(cells[1])
        devices.append(
            Found(
                backend="hpu",
                vendor="intel",
                name=printable(cells[0]),
                memory_bytes=None if memory is None else int(memory * MIB),
                source="hl-smi",
            )
        )
    return grouped(devices)


def _records(text: str) -> list[dict[str, object]]:
    decoder, place, records = json.JSONDecoder(), 0, []
    while match := re.compile(r"[{\[]").search(text, place):
        try:
            content, place = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            break
        rows = content.get("device_list", [content]) if isinstance(content, dict) else content
        records += [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return records


def _found(records: list[dict[str, object]]) -> list[Found]:
    devices = []
    for record in records:
        name = str(record.get("device_name") or "")
        if not name or record.get("device_function_type", "physical") != "physical":
            continue
        memory = number(record.get("memory_physical_size_byte"))
        devices.append(
            Found(
                backend="xpu",
                vendor="intel",
                name=printable(re.sub(r"\((?:R|TM)\)", "", name).strip()),
                memory_bytes=None if memory is None else int(memory),
                source="xpu-smi",
            )
        )
    return grouped(devices)

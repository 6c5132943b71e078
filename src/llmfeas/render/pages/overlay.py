"""Entries written as a catalog file of one's own: YAML, one field a line, without what is the default anyway."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping

ALWAYS = ("id", "name")


def overlay(section: str, records: Iterable[object]) -> str:
    """Records (or plain mappings, with null for what is to be filled in) as a section of a catalog file in YAML."""
    lines = [f"{section}:"]
    for record in records:
        fields = record if isinstance(record, Mapping) else plain(record)
        for place, (name, value) in enumerate(fields.items()):
            lines.append(f"{'- ' if place == 0 else '  '}{name}: {_value(value)}{_to_fill(name, value)}")
    return "\n".join(lines) + "\n"


FILL_IN = {
    "kind": "consumer, workstation, datacenter, unified, cpu, apu or edge",
    "generation": "micro-architecture: one of `generations` in data/hardware.yaml, such as ada",
    "memory_gib": "GiB",
    "memory_type": "such as GDDR6 or DDR5-5600",
    "bandwidth_gb_per_s": "10^9 bytes a second",
    "tflop_per_s": "dense peaks, 10^12 a second; fp32 at least, null where it has none",
    "power_w": "watts",
}
"""What to write where nothing is known."""


def _to_fill(name: str, value: object) -> str:
    """A comment behind a value that is to be filled in, or holds one that is."""
    empty = value is None or (isinstance(value, Mapping) and None in value.values())
    return f"  # fill in: {FILL_IN.get(name, 'or leave out')}" if empty else ""


def plain(record: object) -> dict[str, object]:
    """The fields of a record that differ from their defaults; nested records likewise."""
    if not dataclasses.is_dataclass(record):
        raise TypeError(f"{type(record).__name__} is no record")
    fields: dict[str, object] = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.name in ALWAYS or value != _default(field):
            fields[field.name] = _plain_value(value)
    return fields


def _default(field: dataclasses.Field[object]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _plain_value(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(value)
    if isinstance(value, tuple | list):
        return [_plain_value(item) for item in value]
    return value


def _value(value: object) -> str:
    # JSON is YAML, and quotes every text that YAML could take for something else.
    return json.dumps(value, ensure_ascii=True)

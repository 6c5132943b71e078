"""YAML and JSON as engines read them. PyYAML is not needed to write a mapping of plain values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_RESERVED = frozenset({"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n", "nan", "inf"})
"""Words that some reader of YAML 1.1 takes for something else than text."""


def as_json(value: object) -> str:
    """Write JSON, indented, ASCII, finite numbers only."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def as_yaml(mapping: Mapping[str, object]) -> str:
    """Write a mapping as YAML: block style, text quoted as JSON has it wherever a reader could mistake it.

    Every value is None, a bool, a number, text, or a list or mapping of such.
    """
    return "\n".join(_mapping(mapping, "")) + "\n"


def _mapping(mapping: Mapping[str, object], indent: str) -> Iterator[str]:
    for key, value in mapping.items():
        name = indent + _text(key)
        if isinstance(value, Mapping) and value:
            yield f"{name}:"
            yield from _mapping(value, indent + "  ")
        elif isinstance(value, list | tuple) and value:
            yield f"{name}:"
            yield from _list(value, indent)
        else:
            yield f"{name}: {_scalar(value)}"


def _list(values: Sequence[object], indent: str) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping) and value:
            first, *rest = _mapping(value, indent + "  ")
            yield f"{indent}- {first.lstrip()}"
            yield from rest
        else:
            yield f"{indent}- {_scalar(value)}"


def _scalar(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return _float(value)
    return json.dumps(value, allow_nan=False)


def _float(value: float) -> str:
    # YAML 1.1 takes 2e-05 for text: a number needs its point.
    digits = json.dumps(value, allow_nan=False)
    return digits if "." in digits or "e" not in digits else digits.replace("e", ".0e")


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else _escaped(c) for c in quoted)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

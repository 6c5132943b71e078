"""The NDJSON format: one JSON object a line; the rows of a listing, else the envelope itself."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ...contract import shallow

LISTS = ("rows", "expectations", "claims", "changes", "plans", "blind", "kinds")
"""Keys of a result under which its rows stand."""

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False, default=shallow)


def rendered(envelope: Mapping[str, object]) -> str:
    """One line for each row of a listing, or one line in all.

    Raises:
        ValueError: a number is not finite, which the contract rules out.
    """
    rows = rows_of(envelope)
    return "".join(line(row) for row in ([envelope] if rows is None else rows))


def rows_of(envelope: Mapping[str, object]) -> list[Mapping[str, object]] | None:
    """The rows of a result that is a list of them under one of the contract's names; None for any other."""
    result = envelope.get("result")
    lists = [result[name] for name in LISTS if name in result] if isinstance(result, Mapping) else []
    return lists[0] if lists and isinstance(lists[0], list) else None


def line(row: Mapping[str, object]) -> str:
    """One object as one line."""
    return encoded(row) + "\n"


def encoded(value: object) -> str:
    """Any value as JSON, records too, without spaces.

    Raises:
        ValueError: a number is not finite, which the contract rules out.
    """
    return repr(value) if value.__class__ is int else _ENCODER.encode(value)

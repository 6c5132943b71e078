"""The format that GitHub Actions shows beside the lines of a file: one annotation for each broken expectation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...text import printable
from ..pages.check import in_words


def rendered(envelope: Mapping[str, Any]) -> str:
    """Workflow commands: an error for each broken expectation, then the summary."""
    result = envelope["result"]
    lines = [_error(row) for row in result["expectations"] if not row["ok"]]
    summary = f"{result['passed']} passed, {result['failed']} failed"
    return "\n".join([*lines, f"::notice title=llmfeas check::{summary}"]) + "\n"


def _error(row: Mapping[str, Any]) -> str:
    place = f"file={_property(row['file'])},line={row['line']},col={row['column']}"
    return f"::error {place},title={_property(row['id'])}::{_data(in_words(row))}"


def _data(text: str) -> str:
    return printable(text, 400).replace("%", "%25")


def _property(text: object) -> str:
    return _data(str(text)).replace(":", "%3A").replace(",", "%2C")

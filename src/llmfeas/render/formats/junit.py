"""The JUnit format of a check, which continuous integration systems show as test results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from ...text import printable
from ..pages.check import in_words, where

LONGEST = 400


def rendered(envelope: Mapping[str, Any]) -> str:
    """One suite a file, one case an expectation."""
    result = envelope["result"]
    rows = result["expectations"]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(f'<testsuites name="llmfeas" tests="{len(rows)}" failures="{result["failed"]}">')
    for file in dict.fromkeys(row["file"] for row in rows):
        own = [row for row in rows if row["file"] == file]
        failed = sum(not row["ok"] for row in own)
        lines.append(f'  <testsuite name={_quoted(file)} tests="{len(own)}" failures="{failed}">')
        for row in own:
            lines += _case(row)
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _case(row: Mapping[str, Any]) -> list[str]:
    names = f"classname={_quoted(row['id'])} name={_quoted(row['expectation'])}"
    head = f'    <testcase {names} file={_quoted(row["file"])} line="{row["line"]}"'
    if row["ok"]:
        return [f"{head}/>"]
    text = printable(f"{where(row)}: {in_words(row)}", LONGEST)
    return [f"{head}>", f"      <failure message={_quoted(in_words(row))}>{escape(text)}</failure>", "    </testcase>"]


def _quoted(text: object) -> str:
    return quoteattr(printable(text, LONGEST))

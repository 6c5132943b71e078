"""`llmfeas estimate` where its words are plain: settings with values, and flags. Read without click, whose import and
options take a quarter of such an answer; all else click reads, and a test has both read the same words.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .words import COMPLETION_VARIABLE

FLAGS = {"--json": "json_", "--explain": "explain", "--check": "check", "--strict": "strict"}
UNSAID = {
    **dict.fromkeys((*FLAGS.values(), "quiet", "verbose", "no_color", "no_user_catalog"), False),
    **dict.fromkeys(("format_", "path", "picture")),
    "catalog_files": (),
}
"""What click gives for options that are not there."""


def ran(arguments: Sequence[str]) -> bool:
    """Run `estimate` if its words are plain; else nothing happens.

    Raises:
        UsageError, DataError, CheckFailedError: as the command.
    """
    values = None if os.environ.get(COMPLETION_VARIABLE) else plain_values(arguments)
    if values is None:
        return False
    from .estimated import run
    from .wanted import on_catalog

    with on_catalog(values):
        run(**values)
    return True


def plain_values(arguments: Sequence[str]) -> dict[str, Any] | None:
    """What click would make of these words; None where it has to read them: help, errors, other commands."""
    if arguments[:1] != ["estimate"]:
        return None
    from ..options import OPTIONS

    rows = [row for row in OPTIONS if row.name not in row.switches]
    names = {flag: row.name for row in rows for flag in (row.short or row.flag, *row.flags)}
    values: dict[str, Any] = {**UNSAID, **{name: None for row in OPTIONS for name in (row.name, *row.switches)}}
    words = iter(arguments[1:])
    for word in words:
        if word in FLAGS:
            values[FLAGS[word]] = True
            continue
        name, value = names.get(word), next(words, "-")
        if name is None or value[:1] == "-" or values[name] is not None:
            return None
        values[name] = value
    return values

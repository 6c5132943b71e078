"""Checkpoints and failures of a training, as a person reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...units import format_bytes, format_duration, format_percent
from ..report import Phrase, Topic, glued
from ..words import figure


def failure_topics(run: Mapping[str, Any] | None) -> list[Topic]:
    """What failures and checkpoints leave of the time, where they are counted."""
    if not run:
        return []
    total = run["total_seconds"]
    first = "never ends: devices fail faster than the work goes on" if total is None else figure(total, format_duration)
    useful = glued(f"{format_percent(run['useful_share'])} of it useful")
    writing = f"a checkpoint of {glued(format_bytes(run['checkpoint_bytes']))}"
    every = f"every {glued(format_duration(run['interval_seconds']))}"
    takes = f"({glued(format_duration(run['checkpoint_seconds']))} each)"
    failure = f"a failure every {glued(format_duration(run['failure_seconds']))}"
    lines = (
        (Phrase(first if total is None else f"{first}, {useful}"),),
        (Phrase(f"{writing} {every} {takes}, {failure} (--mtbf, --storage)"),),
    )
    return [Topic(label="Failures", paragraphs=lines, apart=False)]

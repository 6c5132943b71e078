"""The report of a launch: each file and the command as they are, then what to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...text import printable
from ..report import Report, Topic, Verbatim, lines_of
from ..words import sentence


def report(envelope: Mapping[str, Any], engine: str, model: str, device: str) -> Report:
    """The launch of an envelope under the names of engine, model and device."""
    result = envelope["result"]
    files = (Verbatim(label=printable(file["name"], 80), text=file["text"]) for file in result["files"])
    kept = ("-o DIR writes these files, and run.sh with the command, into a folder.",) if result["files"] else ()
    notes = lines_of((*map(sentence, result["notes"]), *kept))
    return Report(
        title=f"{printable(model, 80)} on {printable(device, 80)} with {engine}",
        blocks=(
            *files,
            Verbatim(label="Command", text=result["command"]),
            *((Topic(label="To do", paragraphs=notes),) if notes else ()),
        ),
    )

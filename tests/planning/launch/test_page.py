"""The page about launching lists what each engine can express, as the table of engines has it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from llmfeas.planning.expressed.expressible import Expressible
from llmfeas.planning.launch import LAUNCHERS

PAGE = Path(__file__).parents[3] / "docs" / "launch.md"
HEADING = "## What each engine can express\n\n"


def table() -> Iterator[str]:
    """Write the table of engines."""
    yield "| --engine | tasks | backends | divides by | restricted to |"
    yield "| --- | --- | --- | --- | --- |"
    for found in (each.expressed for each in LAUNCHERS.values()):
        splits = ", ".join(name for name in ("tp", "pp", "interleave", "ep", "cp") if name in found.splits)
        backends = ", ".join(sorted(found.backends))
        yield f"| {found.id} | {', '.join(found.tasks)} | {backends} | {splits} | {restrictions(found)} |"


def restrictions(found: Expressible) -> str:
    """Write the values of the settings that an engine cannot express freely."""
    parts = []
    for name, values in found.choices.items():
        words = ["as-published" if value is None else str(value) for value in values if not isinstance(value, float)]
        parts.append(f"{name}: {' '.join(words)}" if words != ["as-published"] else f"no {name}")
    if "inference" in found.tasks:
        kinds = [kind for kind in ("model", "mtp", "eagle") if kind in found.drafts]
        parts.append(f"draft: {' '.join(kinds)}" if kinds else "no draft")
        parts.append(f"disaggregate: on {' '.join(sorted(found.disaggregates))}" if found.disaggregates else "no pools")
    return "; ".join(parts)


def test_the_table_of_the_page_is_that_of_the_engines() -> None:
    """UPDATE_GOLDEN=1 writes the table."""
    text, _, shown = PAGE.read_text(encoding="utf-8").partition(HEADING)
    written = "".join(f"{line}\n" for line in table())
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(text + HEADING + written, encoding="utf-8")
        return
    assert shown == written

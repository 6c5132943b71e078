"""The summary of a sweep: how many scenarios work, and the first of them, a line each."""

from __future__ import annotations

import json
from collections import Counter

from ...text import printable
from ...units import format_bytes, format_count, format_duration, format_usd
from ..report import Column, Json, Phrase, Report, Table, Topic, glued
from ..words import judged, speed_of

MOST_ROWS = 200
"""Scenarios that are shown; all are counted."""
WORDS = {
    "feasible": "feasible",
    "tight": "tight",
    "infeasible": "infeasible",
    "unsupported": "not supported",
    "error": "not answered",
}
"""What may come of a scenario, in the order in which it is counted."""
COLUMNS = (
    Column(title="Scenario"),
    Column(title="Asked", prose=True),
    Column(title="Memory", figures=True),
    Column(title="Time or speed", figures=True),
    Column(title="Cost", figures=True, spare=True),
)


class Summary:
    """What is kept of the lines of a sweep, which may be many."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.rows: list[tuple[Phrase, ...]] = []

    def add(self, lines: str) -> None:
        """Count answers as the sweep writes them: NDJSON, whole lines."""
        for line in lines.splitlines():
            row = json.loads(line)
            status = row["result"]["verdict"]["status"] if "result" in row else "error"
            self.counts[status] += 1
            if len(self.rows) < MOST_ROWS:
                self.rows.append(_cells(row, status))

    def report(self) -> Report:
        """The counts, then the first scenarios in their order."""
        total = self.counts.total()
        said = tuple(f"{self.counts[status]:,} {words}" for status, words in WORDS.items() if self.counts[status])
        blocks: list[Topic | Table] = [Table(columns=COLUMNS, rows=tuple(self.rows))] if self.rows else []
        if total > len(self.rows):
            shown = f"The first {len(self.rows):,} of {total:,} are shown; --format ndjson or csv writes all."
            blocks.append(Topic(label="Note", paragraphs=((Phrase(shown),),)))
        return Report(title=f"Sweep of {total:,} scenarios", context=said, blocks=tuple(blocks))


def _cells(row: Json, status: str) -> tuple[Phrase, ...]:
    nameless = row["id"] is None and "line" in row
    name = f"line {row['line']}" if nameless else row["id"] if isinstance(row["id"], str) else json.dumps(row["id"])
    if status == "error":
        said = f"{row['error']['message'].rstrip('.')}. {row['error']['hint']}"
        return (
            judged("infeasible", printable(name, 60)),
            Phrase(printable(said, 300)),
            Phrase(""),
            Phrase(""),
            Phrase(""),
        )
    asked, memory = row["inputs"], row["result"]["memory"]
    count = asked["num_devices"]["value"]
    device = f"{count} x {asked['device']['value']}" if count > 1 else str(asked["device"]["value"])
    return (
        judged(status, printable(name, 60)),
        Phrase(printable(f"{asked['model']['value']} on {device}, {asked['task']['value']}", 200)),
        Phrase(glued(f"{format_bytes(memory['peak_bytes']['expected'])} of {format_bytes(memory['usable_bytes'])}")),
        Phrase(glued(_time(row["result"]))),
        Phrase(glued(_cost(row["result"]["cost"]))),
    )


def _time(result: Json) -> str:
    time = result["time"]
    if time.get("total_seconds"):
        return format_duration(time["total_seconds"]["expected"])
    return f"{format_count(speed_of(time, under_load='load' in result)['expected'])} tokens/s"


def _cost(cost: Json) -> str:
    usd, million = cost.get("usd"), cost.get("usd_per_million_tokens")
    if usd:
        return format_usd(usd["expected"])
    return f"{format_usd(million)} a million tokens" if million else ""

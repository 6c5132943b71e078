"""The report of a log: what was measured beside what is estimated, and what could not be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...text import printable
from ...units import digits, format_bytes
from ..report import Column, Phrase, Report, Table, Topic, lines_of

Row = tuple[Phrase, ...]
NAMES = {
    "tokens_per_second": "tokens/s trained",
    "decode_tokens_per_second": "tokens/s written",
    "output_tokens_per_second": "tokens/s written, with prompts",
    "prefill_tokens_per_second": "tokens/s read",
    "peak_bytes": "peak of memory",
    "kv_pool_bytes": "room of the cache",
    "kv_pool_tokens": "tokens in the cache",
    "requests_at_once": "requests at once",
}


def report(result: Mapping[str, Any], name: str) -> Report:
    """The result of `learn`."""
    columns = (
        Column(title="Run", prose=True),
        Column(title="Figure", prose=True),
        Column(title="Measured", figures=True),
        Column(title="Estimated", figures=True),
        Column(title="from – to", figures=True, spare=True),
        Column(title="Ours / it", figures=True),
        Column(title="Line", figures=True, spare=True),
    )
    rows = [row for run in result["runs"] for row in _rows(run)]
    blocks: list[Table | Topic] = [Table(columns=columns, rows=tuple(rows))] if rows else []
    ran = _ran([run for run in result["runs"] if run["figures"]])
    if ran:
        blocks.append(Topic(label="Ran", paragraphs=lines_of(ran)))
    problems = {_problem(run): None for run in result["runs"] if run["problem"]}
    if problems:
        blocks.append(Topic(label="Not compared", paragraphs=lines_of(problems)))
    skipped = [
        f"{each['what']}, {each['lines']} from line {each['line']} on: {each['why']}" for each in result["skipped"]
    ]
    if skipped:
        blocks.append(Topic(label="Left out", paragraphs=lines_of(skipped)))
    if result["cut"]:
        text = "The log goes on; what follows was not read."
        blocks.append(Topic(label="Cut", paragraphs=((Phrase(text),),)))
    return Report(title=f"What {printable(name, 60)} tells", blocks=tuple(blocks))


def _rows(run: Mapping[str, Any]) -> list[Row]:
    rows: list[Row] = []
    for index, figure in enumerate(run["figures"]):
        found, measured = figure["found"], figure["measured"]
        meaning = "feasible" if figure["inside"] else "tight"
        rows.append(
            (
                Phrase(printable(run["what"], 60) if index == 0 else "", "label"),
                Phrase(NAMES.get(figure["quantity"], figure["quantity"])),
                Phrase(_shown(figure["quantity"], measured)),
                Phrase(_shown(figure["quantity"], found["expected"])),
                Phrase(f"{_shown(figure['quantity'], found['low'])} – {_shown(figure['quantity'], found['high'])}"),
                Phrase(f"{found['expected'] / measured:.2f}", meaning, signed=True),  # type: ignore[arg-type]
                Phrase(str(run["line"]) if index == 0 else ""),
            )
        )
    return rows


def _shown(quantity: str, value: float) -> str:
    return format_bytes(value) if quantity.endswith("_bytes") else digits(value)


def _ran(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """What all runs share, then what each has besides."""
    if not runs:
        return []
    scenarios: list[dict[str, object]] = [dict(run["scenario"]) for run in runs]
    shared = {key: value for key, value in scenarios[0].items() if all(each.get(key) == value for each in scenarios)}
    own = [{key: value for key, value in each.items() if key not in shared} for each in scenarios]
    lines = {f"{run['what']}: {_scenario(each)}": None for run, each in zip(runs, own, strict=True) if each}
    return [_scenario(shared), *(printable(line, 600) for line in lines)]


def _scenario(scenario: Mapping[str, object]) -> str:
    return printable(" ".join(f"--{name.replace('_', '-')} {value}" for name, value in scenario.items()), 600)


def _problem(run: Mapping[str, Any]) -> str:
    problem = run["problem"]
    return printable(f"{run['what']} (line {run['line']}): {problem['message']} {problem['hint']}", 600)

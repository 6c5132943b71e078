"""The report of a backtest: error, bias, coverage and width by kind and backend, then the rows that are missed most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...text import printable
from ...units import digits
from ..report import Column, Phrase, Report, Table, Topic, lines_of


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %" if abs(share) >= 0.0995 else f"{100 * share:.1f} %"


def _signed(share: float | None) -> str:
    percent = 0 if share is None else round(100 * share)
    return "" if share is None else f"{percent:+d} %" if percent else "0 %"


def _cells(line: Mapping[str, Any], *, naive: bool) -> tuple[Phrase, ...]:
    whole = line["backend"] == "all"
    shown = [
        line["kind"] if whole else "",
        "" if whole else line["backend"],
        str(line["rows"]),
        str(line["groups"]),
        _percent(line["median_error"]) if line["kind"] != "fits" else "",
        _percent(line["p90_error"]) if line["kind"] != "fits" else "",
        _signed(line["bias"]),
        _percent(line["inside"]),
        "" if line["width"] is None else digits(line["width"]),
    ]
    if naive:
        shown += [_percent(line["naive_median_error"]), _percent(line["naive_p90_error"])]
    return tuple(Phrase(text, "label" if whole else "plain") for text in shown)


def _columns(*, naive: bool) -> tuple[Column, ...]:
    thumb = (Column(title="naive", figures=True), Column(title="90 %", figures=True, spare=True)) if naive else ()
    return (
        Column(title="Kind"),
        Column(title="Backend"),
        Column(title="Rows", figures=True),
        Column(title="Groups", figures=True, spare=True),
        Column(title="Error", figures=True),
        Column(title="90 %", figures=True),
        Column(title="Bias", figures=True, spare=True),
        Column(title="Inside", figures=True),
        Column(title="High/low", figures=True, spare=True),
        *thumb,
    )


def _miss(row: Mapping[str, Any]) -> tuple[Phrase, ...]:
    reason = f": {row['reason']}" if row["reason"] else ""
    ratio = f"{digits(row['found']['expected'] / row['measured'])}×" if row["kind"] != "fits" else "wrong"
    text = f"{row['id']} ({row['kind']}) {ratio}{reason}"
    return (Phrase(printable(text, 1000)),)


KINDS = ("training", "decode", "prefill", "training-memory", "inference-memory")
"""What the short table shows."""

NAMES = ("training speed", "decoding speed", "prefill speed", "training memory", "inference memory")


def summary(lines: Sequence[Mapping[str, Any]], left_out: Mapping[str, Mapping[str, float]]) -> Report:
    """The short table of the README: error, error of sources that the fit has not seen, coverage, rules of thumb.

    `left_out` is that section of data/efficiency.yaml.
    """
    whole = {line["kind"]: line for line in lines if line["backend"] == "all"}
    rows = []
    for kind, name in zip(KINDS, NAMES, strict=True):
        line, unseen = whole[kind], left_out.get(kind, {})
        shown = [name, str(line["rows"]), str(line["groups"]), _percent(line["median_error"])]
        shown += [_percent(unseen.get("median_error")), _percent(line["inside"]), _percent(line["naive_median_error"])]
        rows.append(tuple(Phrase(text) for text in shown))
    columns = (
        Column(title="What"),
        *(Column(title=title, figures=True) for title in ("rows", "groups", "error", "unseen", "in range", "naive")),
    )
    return Report(title="", blocks=(Table(columns=columns, rows=tuple(rows)),))


def _blind(scores: Sequence[Mapping[str, Any]]) -> Report:
    """How far off answers were when each source was first asked."""
    columns = (
        Column(title="Asked", spare=True),
        Column(title="What ran", prose=True),
        Column(title="Kind"),
        *(Column(title=title, figures=True) for title in ("Rows", "Error", "90 %", "Inside")),
    )
    begun = [("", ""), *((score["asked"], score["of"]) for score in scores)]
    rows = tuple(
        tuple(
            Phrase(printable(text, 120))
            for text in (
                *(("", "") if (score["asked"], score["of"]) == before else (score["asked"], score["of"])),
                score["kind"],
                str(score["rows"]),
                *(_percent(score[share]) for share in ("median_error", "p90_error", "inside")),
            )
        )
        for before, score in zip(begun, scores, strict=False)
    )
    note = (
        "Error: half of the measurements were nearer than this, 90 %: nine tenths. Inside: share within our range. "
        "Where nothing stands it was not written down. What was learned from them since is in today's figures."
    )
    title = f"{sum(score['rows'] for score in scores)} measured figures as they were first asked"
    context = ("Before anything was fitted to a source or changed for it.",)
    blocks = (Table(columns=columns, rows=rows), Topic(label="Read", paragraphs=lines_of([note])))
    return Report(title=title, context=context, blocks=blocks)


def report(result: Mapping[str, Any], *, naive: bool) -> Report:
    """The result of a backtest, with `naive` beside the rules of thumb."""
    if result.get("blind"):
        return _blind(result["blind"])
    lines: Sequence[Mapping[str, Any]] = result["kinds"]
    blocks: list[Topic | Table] = [
        Table(columns=_columns(naive=naive), rows=tuple(_cells(line, naive=naive) for line in lines))
    ]
    if result.get("worst"):
        blocks.append(Topic(label="Missed", paragraphs=tuple(_miss(row) for row in result["worst"])))
    notes = [
        "Error: half of the measurements are nearer than this, 90 %: nine tenths. Inside: share within our range, "
        "of fits the share answered rightly. High/low: median width of the range.",
    ]
    if naive:
        notes.append("naive: 6ND at 40 % MFU; bandwidth x 0.7; 18 bytes a parameter; weights and a fifth.")
    blocks.append(Topic(label="Read", paragraphs=lines_of(notes)))
    total = sum(line["rows"] for line in lines if line["backend"] == "all")
    return Report(title=f"{total} measured figures beside ours", blocks=tuple(blocks))


def calibration_report(rows: Sequence[Mapping[str, Any]], path: str) -> Report:
    """What own measurements say of each kind of run: our figure's factor, and the range before and after."""
    columns = (
        Column(title="Device"),
        Column(title="Kind"),
        Column(title="Run", prose=True),
        Column(title="Rows", figures=True),
        Column(title="Factor", figures=True),
        Column(title="Range was ×", figures=True, spare=True),
        Column(title="is ×", figures=True),
    )
    cells = tuple(
        tuple(
            Phrase(printable(text, 60))
            for text in (
                row["device"],
                row["kind"],
                row["regime"],
                str(row["rows"]),
                digits(row["factor"]),
                digits(row["width_before"]),
                digits(row["width"]),
            )
        )
        for row in rows
    )
    remark = f"Kept in {printable(path, 200)}; every estimate for these devices says that it rests on them."
    return Report(
        title="Calibrated with your own measurements", context=(remark,), blocks=(Table(columns=columns, rows=cells),)
    )

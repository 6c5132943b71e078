"""`llmfeas compare`: devices side by side."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from ...errors import CheckFailedError, UsageError
from ..parameters import DRAWN, Command, Grouped, Output, outputs, settings
from ..wanted import said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...planning.compare import Comparison
    from ...render.report import Report

EXAMPLE = "llmfeas compare --model gpt2-small --backend rocm --backend metal"
SORTS = ("time", "memory", "cost", "energy", "name")
MOST = 1000
"""Devices that one comparison takes."""
SCREEN = 24
"""Rows that a screen shows of devices that nobody named."""


def run(**values: Any) -> None:
    """Compare one or more models on chosen devices.

    Raises:
        UsageError, DataError: nothing can be compared.
        CheckFailedError: with `--check`, where no row is feasible.
    """
    from ...catalog.store import catalog
    from ...planning.compare import chosen_devices, comparison
    from ...render.words import sentence

    output = Output.taken(values)
    models, devices, backends = (apart(values.pop(name)) for name in ("models", "devices", "backends"))
    every, baseline, sort, top = values.pop("every"), values.pop("baseline"), values.pop("sort"), values.pop("top")
    check = values.pop("check")
    if not models:
        raise UsageError("missing-option", "--model is missing.", f"For example: {EXAMPLE}")
    if len(devices) * len(models) > MOST:
        raise UsageError("too-many", f"{len(devices)} devices are too many to compare.", f"Give at most {MOST}.")
    request = said(values)
    known = catalog()
    chosen = chosen_devices(known, devices, backends, every=every)
    by_hand = bool(devices or backends or every)
    if top is None and not devices and output.format == "table":
        top = SCREEN
    ranking = comparison(request, models, chosen, known, baseline=baseline, sort=sort, chosen=by_hand)
    answer = ranking.document(top) if output.format == "json" else ranking.to_dict(top)
    for warning in ranking.warnings_of_first(top):
        output.note(sentence(warning.message))
    output.write(answer, lambda: report_of(ranking, answer, sort))
    if check and not any(row.feasible for row in ranking.rows):
        raise CheckFailedError("check-failed", "the check failed: no row is feasible")


def apart(names: Sequence[str]) -> list[str]:
    """Names as options gave them, several in one behind commas; the name of a file stays whole."""
    whole = os.path.exists  # pathlib's raises where a name is too long
    return [part.strip() for name in names for part in ([name] if whole(name) else name.split(","))]


def report_of(ranking: Comparison, answer: dict[str, Any], sort: str) -> Report:
    """What a person reads of a ranking, of which `answer` is the JSON."""
    from ...render.pages.compare import report

    rows = answer["result"]["rows"]
    names = list(dict.fromkeys(row.estimate.scenario.model.name for row in ranking.rows))
    task, left_out = ranking.rows[0].estimate.scenario.task, len(ranking.rows) - len(rows)
    return report(rows, names, task, ranking.baseline, left_out, sort)


command = Command(
    "compare",
    params=[
        Grouped(
            ["models", "-m", "--model"],
            multiple=True,
            metavar="NAME",
            group="The question",
            help="Model; several behind commas, or repeated.",
        ),
        Grouped(
            ["devices", "-d", "--device"],
            multiple=True,
            metavar="NAME",
            group="The question",
            help="Device; several behind commas, or repeated.",
        ),
        Grouped(
            ["backends", "--backend"],
            multiple=True,
            metavar="NAME",
            group="The question",
            help="All devices of a backend.",
        ),
        Grouped(["every", "--all"], is_flag=True, group="The question", help="All devices of the catalog."),
        Grouped(
            ["baseline", "--baseline"],
            metavar="DEVICE",
            group="The question",
            help="Speeds are relative to it.  [the first of each model]",
        ),
        Grouped(
            ["sort", "--sort"], type=click.Choice(SORTS), default="time", group="The question", help="Order of rows."
        ),
        Grouped(
            ["top", "--top"],
            type=click.IntRange(1),
            metavar="N",
            group="The question",
            help=f"Show so many rows.  [all; a table {SCREEN} of devices not named]",
        ),
        Grouped(["check", "--check"], is_flag=True, help="Exit 4 if no row is feasible."),
        *settings(hidden=("model", "device")),
        *outputs(DRAWN),
    ],
    callback=run,
    help="Devices side by side, ranked: memory, time, cost, limits. Without a choice of devices, one well-known device "
    "of each backend and class.",
    epilog=f"For example: {EXAMPLE}",
)

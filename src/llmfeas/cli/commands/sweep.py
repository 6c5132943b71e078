"""`llmfeas sweep`: many scenarios, streamed."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any

import click

from ...errors import BugError, CheckFailedError, DataError, UsageError
from ...text import printable
from .. import output
from ..parameters import Command, Grouped, Output, outputs, paths
from ..terminal import bar

LINES = ("ndjson", "csv")
FORMATS = (*LINES, "table", "markdown", "html")
"""A line for each scenario as it is answered, or a summary of all at the end."""

GARBAGE = 20_000, 5, 2
"""When garbage is looked for: walks make thousands of objects and next to none, and a search among them takes long."""


def _extras(text: str) -> frozenset[str]:
    """Read what is wanted beside each estimate: `ladder,remedies`.

    Raises:
        UsageError: one of the words is neither.
    """
    from ..workers import EXTRAS

    words = frozenset(word.strip() for word in text.split(",") if word.strip())
    unknown = sorted(words.difference(EXTRAS))
    if unknown:
        problem = f"--with: {printable(unknown[0], 40)!r} is not one of {', '.join(EXTRAS)}."
        raise UsageError("bad-choice", problem, "Write for instance --with ladder,remedies.", EXTRAS)
    return words


@contextlib.contextmanager
def _written(wanted: Output) -> Iterator[Callable[[str], None]]:
    """Where answers go: on as they come, or into a summary that is written when all are there."""
    if wanted.format not in ("table", "markdown", "html"):
        with output.stream(wanted.path, wanted.quiet) as write:
            if wanted.format == "csv":
                from ...render.formats.csv import table
                from ..workers import csv_columns

                write(table(csv_columns(), []))
            yield write
        return
    from ...catalog.store import catalog
    from ...contract import envelope
    from ...render.pages.sweep import Summary

    summary = Summary()
    yield summary.add
    wanted.write(envelope("sweep", catalog().digest, {}, {}), summary.report)


def run(file: str, jobs: int, extras: str, check: bool, **values: Any) -> None:
    """Answer every scenario of a file in its order, each line as soon as it is known.

    Raises:
        DataError: the file cannot be used, or at the end: some of its scenarios could not be answered, or
            with `--check` there were none.
        CheckFailedError: with `--check`, where the answer to a scenario is no.
    """
    from ..scenarios import source
    from ..workers import SweepOptions, answers

    gc.set_threshold(*GARBAGE)
    gc.enable()
    wanted = Output.taken(values, default="ndjson")
    options = SweepOptions("csv" if wanted.format == "csv" else "ndjson", _extras(extras))
    scenarios = source(file)
    count = bad = bugs = refused = 0
    with (
        _written(wanted) as write,
        bar(scenarios.total, not wanted.quiet) as advance,
        contextlib.closing(answers(scenarios.arrivals, options, jobs)) as found,
    ):
        for answer in found:
            write(answer.text)
            advance(answer.count)
            count, bad, bugs = count + answer.count, bad + answer.bad, bugs + answer.bugs
            refused += answer.refused
    if bugs:
        raise BugError("bug", f"{bugs} of {count} scenarios met a bug of llmfeas.", "Please report them.")
    if bad:
        raise DataError("bad-scenarios", f"{bad} of {count} scenarios are bad.", "Their lines in the output say why.")
    if check and not count:
        raise DataError(
            "no-scenarios", "there is no scenario, so nothing was checked.", "Look at what writes the scenarios."
        )
    if check and refused:
        raise CheckFailedError("check-failed", f"the check failed: {refused} of {count} scenarios do not work")
    if wanted.verbose:
        wanted.note(f"{count} scenarios answered.")


command = Command(
    "sweep",
    params=[
        click.Argument(["file"], metavar="FILE|-", shell_complete=paths),
        Grouped(
            ["jobs", "--jobs"], type=click.IntRange(1, 256), metavar="N", default=1, help="Processes at work.  [1]"
        ),
        Grouped(["extras", "--with"], metavar="WHAT", default="", help="Beside each estimate: ladder, remedies, uses."),
        Grouped(["check", "--check"], is_flag=True, help="Exit 4 if a scenario does not work."),
        *outputs(FORMATS, "ndjson"),
    ],
    callback=run,
    help="Estimate many scenarios: NDJSON, one object of settings a line, CSV, or YAML in which lists are crossed; - "
    "reads stdin. Writes one line for each scenario, its id first, and goes on after bad ones; as a table, in Markdown "
    "or HTML a summary of all.",
    epilog='For example: echo \'{"id": 1, "model": "gpt2", "device": "rtx-4090"}\' | llmfeas sweep -',
)

"""`llmfeas check`: expectations for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..contract import envelope, given
from ..errors import CheckFailedError, UsageError
from ..text import printable
from .output import write as written
from .parameters import FORMATS, Command, Grouped, Output, outputs

EXAMPLE = "llmfeas check feasibility.yaml"


def run(files: tuple[str, ...], init: bool, **values: Any) -> None:
    """Judge every expectation of some files.

    Raises:
        UsageError: no file is named.
        DataError: a file cannot be used, or a scenario in it cannot be estimated.
        CheckFailedError: an expectation is broken.
    """
    output = Output.taken(values)
    if init:
        _write_example(files, output)
        return
    if not files:
        hint = f"For example: {EXAMPLE}; 'llmfeas check --init' writes one."
        raise UsageError("missing-argument", "no file of expectations is named.", hint)
    from ..catalog.store import catalog
    from ..check.run import findings

    result = findings(files, catalog())
    answer = envelope("check", catalog().digest, given({"files": files}), result)

    def report() -> Any:
        from ..render.check import report

        return report(answer)

    output.write(answer, report)
    if result.failed:
        raise CheckFailedError("check-failed", f"the check failed: {result.passed} passed, {result.failed} failed")


def _write_example(files: tuple[str, ...], output: Output) -> None:
    """Write the example to stdout, or to a file that does not exist yet.

    Raises:
        UsageError: there is such a file already, or several are named.
    """
    from ..check.example import EXAMPLE as TEXT

    if len(files) > 1:
        raise UsageError("contradiction", "--init writes one file.", "Name one, or none for standard output.")
    path = files[0] if files else output.path
    if path not in (None, "-") and Path(path).exists():
        name = printable(path, 80)
        raise UsageError("file-exists", f"{name} exists already.", "Name another file, or remove it first.")
    if not (output.quiet and path is None):
        written(TEXT, path)


command = Command(
    "check",
    params=[
        click.Argument(["files"], nargs=-1, metavar="FILE...|-"),
        Grouped(["init", "--init"], is_flag=True, help="Write a commented example, to FILE or to stdout."),
        *outputs((*FORMATS, "junit", "github")),
    ],
    callback=run,
    help="Hold scenarios against what is expected of them: YAML files of settings with 'expect'. Exit code 4 if an "
    "expectation is broken, 3 if a file is bad. The formats junit and github are for continuous integration.",
    epilog=f"For example: {EXAMPLE}",
)

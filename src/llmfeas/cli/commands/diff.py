"""`llmfeas diff`: what changed between two stored estimates."""

from __future__ import annotations

from typing import Any

import click

from ...contract import envelope, given
from ...errors import CheckFailedError
from ..parameters import Command, Grouped, Output, outputs, paths

EXAMPLE = "llmfeas diff before.json after.json"


def run(before: str, after: str, check: bool, **values: Any) -> None:
    """Compare two files that `llmfeas estimate --json` wrote.

    Raises:
        DataError: a file is missing or holds no estimate.
        CheckFailedError: with `--check`, where anything changed.
    """
    from ...catalog.store import catalog
    from ...check.diff import differences, stored_estimate

    output = Output.taken(values)
    result = differences(stored_estimate(before), stored_estimate(after))
    answer = envelope("diff", catalog().digest, given({"before": before, "after": after}), result)

    def report() -> Any:
        from ...render.pages.diff import report

        return report(answer, before, after)

    output.write(answer, report)
    if check and result.changes:
        raise CheckFailedError("check-failed", f"the check failed: {len(result.changes)} changes")


command = Command(
    "diff",
    params=[
        click.Argument(["before"], metavar="A.json", shell_complete=paths),
        click.Argument(["after"], metavar="B.json", shell_complete=paths),
        Grouped(["check", "--check"], is_flag=True, help="Exit 4 if anything changed."),
        *outputs(),
    ],
    callback=run,
    help="What changed between two estimates that were stored with --json: what was asked, the catalog behind it, and "
    "the figures.",
    epilog=f"For example: {EXAMPLE}",
)

"""`llmfeas diff`: what changed between two stored estimates."""

from __future__ import annotations

from typing import Any

import click

from .. import __version__
from ..errors import CheckFailedError
from .parameters import Command, Grouped, Output, outputs

EXAMPLE = "llmfeas diff before.json after.json"


def run(before: str, after: str, check: bool, **values: Any) -> None:
    """Compare two files that `llmfeas estimate --json` wrote.

    Raises:
        DataError: a file is missing or holds no estimate.
        CheckFailedError: with `--check`, where anything changed.
    """
    from ..catalog.store import catalog
    from ..check.diff import changes, stored_estimate

    output = Output.taken(values)
    changed = [change.to_dict() for change in changes(stored_estimate(before), stored_estimate(after))]
    envelope: dict[str, Any] = {
        "schema": "llmfeas.diff/1",
        "llmfeas": __version__,
        "catalog": catalog().digest,
        "inputs": {
            "before": {"value": before, "origin": "given"},
            "after": {"value": after, "origin": "given"},
        },
        "result": {"changes": changed},
        "warnings": [],
    }

    def report() -> Any:
        from ..render.diff import report

        return report(envelope, before, after)

    output.write(envelope, report)
    if check and changed:
        raise CheckFailedError("check-failed", f"the check failed: {len(changed)} changes")


command = Command(
    "diff",
    params=[
        click.Argument(["before"], metavar="A.json"),
        click.Argument(["after"], metavar="B.json"),
        Grouped(["check", "--check"], is_flag=True, help="Exit 4 if anything changed."),
        *outputs(),
    ],
    callback=run,
    help="What changed between two estimates that were stored with --json: what was asked, the catalog behind it, and "
    "the figures.",
    epilog=f"For example: {EXAMPLE}",
)

"""`llmfeas plan`: what would have to change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ...errors import CheckFailedError, UsageError
from ...request import option_called
from ..parameters import Command, Grouped, Output, outputs, settings
from ..wanted import question

if TYPE_CHECKING:
    from ...planning.plan import Plan
    from ...render.report import Report

EXAMPLE = "llmfeas plan --model llama-3-8b --device rtx-4090 --task finetune"


def run(**values: Any) -> None:
    """Search for the changes that make a request feasible.

    Raises:
        UsageError, DataError: the question cannot be answered.
        CheckFailedError: with `--check`, where nothing works.
    """
    output = Output.taken(values)
    keep, any_device = kept(values.pop("keep")), values.pop("any_device")
    check, shown = values.pop("check"), values.pop("top")
    request = question(values, EXAMPLE)
    from ...catalog.store import catalog
    from ...planning.plan import plan

    search = plan(request, catalog(), keep=keep, any_device=any_device, shown=shown)
    answer = search.to_dict()
    output.write(answer, lambda: report_of(search, answer))
    if check and not search.ways:
        raise CheckFailedError("check-failed", "the check failed: no change makes it work")


def report_of(search: Plan, answer: Mapping[str, Any]) -> Report:
    """What a person reads of a plan, of which `answer` is the JSON."""
    from ...render.pages.plan import report
    from ...render.words import counted

    scenario = search.requested.scenario
    return report(answer, scenario.model.name, counted(scenario.num_devices, scenario.device.name))


def kept(text: str | None) -> tuple[str, ...]:
    """Read `--keep precision,optimizer`.

    Raises:
        UsageError: for a name that is no setting.
    """
    names = [name.strip().lstrip("-").replace("-", "_") for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise UsageError("bad-value", "--keep names no setting.", "For example --keep precision,optimizer.")
    try:
        return tuple(option_called(name).name for name in names)
    except UsageError as error:
        raise UsageError(error.code, f"--keep: {error.message}", error.hint, error.candidates) from None


command = Command(
    "plan",
    params=[
        *settings(),
        Grouped(["keep", "--keep"], metavar="NAMES", group="The search", help="Settings not to change, with commas."),
        Grouped(["any_device", "--any-device"], is_flag=True, group="The search", help="Try other devices too."),
        Grouped(
            ["top", "--top"],
            type=click.IntRange(1),
            metavar="N",
            default=6,
            group="The search",
            help="Show so many ways.  [6]",
        ),
        Grouped(["check", "--check"], is_flag=True, help="Exit 4 if nothing works."),
        *outputs(),
    ],
    callback=run,
    help="What would have to change so that it works: the least change first, then others that are faster, cheaper or "
    "smaller, each with what one gives up.",
    epilog=f"For example: {EXAMPLE}",
)

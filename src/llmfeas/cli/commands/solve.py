"""`llmfeas solve QUESTION`: questions asked backwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ...errors import CheckFailedError
from ...planning.solve import QUESTIONS
from ..app import subgroup
from ..parameters import Command, Grouped, Output, outputs, settings
from ..wanted import said

if TYPE_CHECKING:
    from ...planning.solve.answer import Answer
    from ...render.report import Report


MEANT = {
    **dict.fromkeys(("concurrency", "concurrent", "parallel", "sessions", "streams", "clients", "user"), "max-users"),
    **dict.fromkeys(("throughput", "qps", "rps", "requests", "load", "traffic"), "max-rate"),
    **dict.fromkeys(("ctx", "seq", "seqlen", "sequence", "length", "len", "window"), "max-context"),
    **dict.fromkeys(("gpu", "gpus", "cards", "nodes", "accelerators", "tpus", "machines"), "min-devices"),
    **dict.fromkeys(("vram", "ram", "mem"), "min-memory"),
    **dict.fromkeys(("parameters", "params", "size", "largest", "biggest"), "max-model"),
    **dict.fromkeys(("cost", "price", "cheap", "budget"), "cheapest"),
    **dict.fromkeys(("time", "duration", "wall", "days", "hours"), "deadline"),
    **dict.fromkeys(("chinchilla", "compute"), "optimal"),
    **dict.fromkeys(("microbatch", "bs"), "max-batch"),
    "lora": "max-rank",
}
"""Which question a word of another name is about."""


def report_of(solution: Answer, answer: Mapping[str, Any]) -> Report:
    """What a person reads of an answer, of which `answer` is the JSON."""
    from ...render.pages.solve import report

    return report(answer, solution.at.scenario.device.name if solution.at else "")


def _question(name: str, help: str) -> click.Command:
    def run(**values: Any) -> None:
        """Answer one inverse question.

        Raises:
            UsageError, DataError: it cannot be answered.
            CheckFailedError: with `--check`, where no value works.
        """
        output, check = Output.taken(values), values.pop("check")
        from ...catalog.store import catalog
        from ...planning.solve import solved

        solution = solved(name, said(values), catalog())
        answer = solution.to_dict()
        output.write(answer, lambda: report_of(solution, answer))
        if check and solution.at is None:
            raise CheckFailedError("check-failed", "the check failed: no value works")

    params = [*settings(), Grouped(["check", "--check"], is_flag=True, help="Exit 4 if no value works."), *outputs()]
    return Command(name, params=params, callback=run, help=help)


command = subgroup(
    "solve",
    "Questions asked backwards: the largest, the fewest, how many tokens.",
    [_question(name, help) for name, (_, _, help) in QUESTIONS.items()],
    MEANT,
)

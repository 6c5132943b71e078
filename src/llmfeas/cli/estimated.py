"""What `llmfeas estimate` does with what was asked, however it was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import CheckFailedError
from .wanted import Output, question

if TYPE_CHECKING:
    from ..feasibility.result import Estimate, Verdict
    from ..render.drawing import Picture
    from ..render.report import Report

EXAMPLE = "llmfeas estimate --model gpt2-xl --device rtx-4070ti"


def run(**values: Any) -> None:
    """Answer one question and write the answer.

    Raises:
        UsageError, DataError: the question cannot be answered.
        CheckFailedError: with `--check` or `--strict`, where the answer is no.
    """
    output = Output.taken(values)
    explain, strict = values.pop("explain"), values.pop("strict")
    check = values.pop("check") or strict
    request = question(values, EXAMPLE)
    from ..planning.answer import answer as answer_to

    answer = answer_to(request, explain=explain)
    envelope = answer.to_dict()
    output.write(envelope, lambda: report_of(answer, envelope), lambda: pictures_of(answer, request))
    if check:
        checked(answer.verdict, strict)


def report_of(answer: Estimate, envelope: Mapping[str, Any]) -> Report:
    """What a person reads: the report under the names of model and device, with its derivation if asked for."""
    from ..render.pages.estimate import report

    shown = report(envelope, answer.scenario.model.name, answer.scenario.device.name)
    if "explanation" not in envelope:
        return shown
    from ..render.explain import explained

    return explained(shown, envelope["inputs"], envelope["explanation"])


def pictures_of(answer: Estimate, request: Mapping[str, object]) -> tuple[Picture, ...]:
    """Pictures for which the question is followed further."""
    from ..catalog.store import catalog
    from ..render.curves import further

    return tuple(further(request, answer, catalog()))


def checked(verdict: Verdict, strict: bool) -> None:
    """Fail where the verdict is no or a budget could not be checked, with `strict` where it is tight too.

    Raises:
        CheckFailedError: with the verdict and the reasons that break it.
    """
    from .failure import fails, failure

    if fails(verdict, strict=strict):
        raise CheckFailedError("check-failed", failure(verdict))

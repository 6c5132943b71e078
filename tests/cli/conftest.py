from __future__ import annotations

from collections.abc import Callable

import pytest
from command_line import Outcome, stored_answer, stored_line

from llmfeas.cli import main


@pytest.fixture(autouse=True)
def plain_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "LLMFEAS_DEBUG", "_LLMFEAS_COMPLETE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run the command line; whatever happens, there is no traceback, and an error leaves stdout empty."""

    def call(*arguments: str) -> Outcome:
        code = main(list(arguments))
        captured = capsys.readouterr()
        outcome = Outcome(code, captured.out, captured.err)
        assert "Traceback" not in outcome.err
        if code in (1, 2):
            assert outcome.out == ""
        return outcome

    return call


@pytest.fixture
def stored_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer from stored estimates, so that a test of the command line tests nothing else."""
    monkeypatch.setattr("llmfeas.planning.answer.answer", stored_answer)
    monkeypatch.setattr("llmfeas.planning.answer.bare_answer", stored_answer)
    monkeypatch.setattr("llmfeas.render.pages.estimate_line.estimate_line", stored_line)

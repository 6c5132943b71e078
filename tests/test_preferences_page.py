"""The page on learning from preferences: its commands run, and it names every loss."""

from __future__ import annotations

import pytest

from llmfeas.objectives import losses_of
from tests.pages import answers, commands, page

PAGE = page("preferences")
COMMANDS = commands(PAGE)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_answers(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answers(command)
    assert capsys.readouterr().out


def test_the_page_names_every_loss() -> None:
    assert all(
        f"`{loss}`" in PAGE
        for task in ("dpo", "grpo", "reward", "embed", "rerank", "distill")
        for loss in losses_of(task)
    )

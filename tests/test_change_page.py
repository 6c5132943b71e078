"""The page on plans, inverse questions and comparisons: its commands run."""

from __future__ import annotations

import shlex

import pytest

from tests.pages import answers, commands, page

PAGE = page("what-would-have-to-change")
COMMANDS = commands(PAGE)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_answers(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answers(command)
    assert capsys.readouterr().out


def test_the_page_shows_every_question() -> None:
    from llmfeas.planning.solve import QUESTIONS

    assert {shlex.split(command)[2] for command in COMMANDS if " solve " in command} == set(QUESTIONS)

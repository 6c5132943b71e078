"""The page on plans, inverse questions and comparisons: its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from llmfeas.cli import main

PAGE = (Path(__file__).parent.parent / "docs" / "what-would-have-to-change.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL) for line in block.splitlines()]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_answers(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *arguments = shlex.split(command)
    assert name == "llmfeas"
    assert main(arguments) == 0
    assert capsys.readouterr().out


def test_the_page_shows_every_question() -> None:
    from llmfeas.planning.solve import QUESTIONS

    assert {shlex.split(command)[2] for command in COMMANDS if " solve " in command} == set(QUESTIONS)

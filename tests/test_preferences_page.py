"""The page on learning from preferences: its commands run, and it names every loss."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from llmfeas.cli import main
from llmfeas.objectives import losses_of

PAGE = (Path(__file__).parent.parent / "docs" / "preferences.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL) for line in block.splitlines()]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_answers(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *arguments = shlex.split(command)
    assert name == "llmfeas"
    assert main(arguments) == 0
    assert capsys.readouterr().out


def test_the_page_names_every_loss() -> None:
    assert all(f"`{loss}`" in PAGE for task in ("dpo", "grpo") for loss in losses_of(task))

"""Pages of docs/: their commands run, and what they name is there."""

from __future__ import annotations

import re
import shlex

import pytest

from llmfeas.check.figures import FIGURES
from llmfeas.elsewhere import ELSEWHERE
from llmfeas.memory.serving_room import ServingRoom
from llmfeas.objectives import OBJECTIVES
from llmfeas.options import BY_NAME
from llmfeas.planning.solve import QUESTIONS
from llmfeas.record import fields
from tests.pages import answers, commands, page

CHANGES, PREFERENCES, SERVING = map(page, ("what-would-have-to-change", "preferences", "serving"))


@pytest.mark.parametrize("command", [*commands(CHANGES), *commands(PREFERENCES), *commands(SERVING)])
def test_a_command_of_a_page_answers(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answers(command)
    assert capsys.readouterr().out


def test_the_page_on_changes_shows_every_question() -> None:
    assert {shlex.split(command)[2] for command in commands(CHANGES) if " solve " in command} == set(QUESTIONS)


def test_the_page_on_preferences_names_every_loss() -> None:
    assert all(f"`{loss}`" in PREFERENCES for loss in OBJECTIVES)


def test_what_the_page_on_servers_names_is_there() -> None:
    table = [line for line in SERVING.splitlines() if line.startswith("| `--")]
    flags = re.findall(r"`--([a-z-]+)`", "\n".join(table))
    assert len(flags) >= 7
    assert {flag.replace("-", "_") for flag in flags} <= {*BY_NAME, *ELSEWHERE}
    assert {"kv_pool_gib", "kv_pool_tokens", "requests_at_once"} <= set(FIGURES)
    for key in ("starts", "kv_pool_bytes", "kv_pool_tokens", "requests_at_once"):
        assert f"`{key}`" in SERVING
        assert key in [each.name for each in fields(ServingRoom)]

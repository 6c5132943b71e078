"""The page on servers: its commands run, and the settings and figures that it names exist."""

from __future__ import annotations

import re

import pytest

from llmfeas.check.figures import FIGURES
from llmfeas.elsewhere import ELSEWHERE
from llmfeas.memory.serving_room import ServingRoom
from llmfeas.options import BY_NAME
from llmfeas.record import fields
from tests.pages import answers, commands, page

PAGE = page("serving")
COMMANDS = commands(PAGE)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_answers(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answers(command)
    assert capsys.readouterr().out


def test_what_the_page_names_is_there() -> None:
    table = [line for line in PAGE.splitlines() if line.startswith("| `--")]
    flags = re.findall(r"`--([a-z-]+)`", "\n".join(table))
    assert len(flags) >= 7
    assert {flag.replace("-", "_") for flag in flags} <= {*BY_NAME, *ELSEWHERE}
    assert {"kv_pool_gib", "kv_pool_tokens", "requests_at_once"} <= set(FIGURES)
    for key in ("starts", "kv_pool_bytes", "kv_pool_tokens", "requests_at_once"):
        assert f"`{key}`" in PAGE
        assert key in [each.name for each in fields(ServingRoom)]

"""Plain command lines are read without click, and as click reads them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import click
import pytest
from hypothesis import example, given, settings, strategies

from llmfeas.cli.commands.estimate import command
from llmfeas.cli.plain import FLAGS, plain_values
from llmfeas.errors import UsageError

OPTS = sorted({opt for parameter in command.params for opt in parameter.opts})
VALUES = ("gpt2-xl", "2x 3090", "8", "1e9", "-1", "", "none", "true", "json", "--", "estimate", "ärger", "a b", "-x")
WORDS = strategies.sampled_from((*OPTS, *VALUES, "-h", "--help", "--json=1", "-mgpt2", "--no-such", "-ngl"))
PAIRS = strategies.tuples(strategies.sampled_from(OPTS), strategies.sampled_from(VALUES))
LINES = strategies.lists(strategies.one_of(PAIRS, strategies.tuples(WORDS)), max_size=6).map(
    lambda found: [word for words in found for word in words]
)


def by_click(words: list[str]) -> dict[str, Any] | None:
    """What click gives the command; None where it refuses, or shows help."""
    try:
        return command.make_context("estimate", [*words]).params
    except (click.ClickException, click.exceptions.Exit, UsageError):
        return None


@settings(max_examples=400, deadline=None)
@given(LINES)
@example(["-m", "gpt2-xl", "-d", "4x h100", "-t", "lora", "--json", "--max-completion-length", "5"])
@example(["--output", "5"])
@example(["--output-tokens", "5", "--explain", "--explain"])
@example(["--model", "a", "--model", "a"])
def test_what_is_plain_is_read_as_click_reads_it(words: list[str]) -> None:
    values = plain_values(["estimate", *words])
    assert values is None or values == by_click(words)


@pytest.mark.parametrize("flag", [*FLAGS, "--seq-len 512", "-n 4"])
def test_settings_and_flags_are_plain(flag: str) -> None:
    assert plain_values(["estimate", "--model", "gpt2-xl", "-d", "rtx-4070ti", *flag.split()]) is not None


@pytest.mark.parametrize("words", [["compare", "-m", "gpt2"], [], ["estimate", "-h"], ["estimate", "--colocate"]])
def test_the_rest_is_not(words: list[str]) -> None:
    assert plain_values(words) is None


def test_a_plain_answer_needs_no_click() -> None:
    ask = ["estimate", "-m", "gpt2-xl", "-d", "rtx-4070ti", "--json"]
    program = f"import sys; from llmfeas.cli import main; main({ask}); print(*sys.modules, file=sys.stderr)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(found.stdout)["schema"] == "llmfeas.estimate/1"
    assert not set(found.stderr.split()) & {"click", "rich", "llmfeas.load", "llmfeas.planning.solve"}

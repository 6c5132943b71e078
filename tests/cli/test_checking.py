from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome

Run = Callable[..., Outcome]


def failed(run: Run, *arguments: str) -> str:
    result = run("estimate", *arguments)
    assert result.code == 4
    return result.err.removeprefix("Error: the check failed, ").strip()


def test_a_budget_that_cannot_be_checked_has_not_passed(run: Run, tmp_path: Path) -> None:
    asked = ("-m", "gpt2", "-d", "rtx-4070ti", "--budget", "1")
    assert run("estimate", *asked).code == 0
    assert "--price" in failed(run, *asked, "--check")
    assert run("estimate", *asked, "--price", "0.01", "--check").code == 0
    line = '{"model": "gpt2", "device": "rtx-4070ti", "budget": 1}\n'
    (tmp_path / "one.ndjson").write_text(line)
    assert run("sweep", str(tmp_path / "one.ndjson"), "--check", "-q") == Outcome(4, "", "")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("-m", "gpt2", "-d", "rtx-4090", "--budget", "1", "--check"), "infeasible: costs "),
        (("-m", "llama-3-8b", "-d", "8xh100-sxm", "--tokens", "15T", "--check"), "infeasible: would take "),
        (
            ("-m", "llama-3-8b", "-d", "tpu-v5e", "-t", "qlora", "--engine", "pytorch", "--check"),
            "unsupported: qlora on TPU v5e",
        ),
        (("-m", "gpt2", "-d", "rtx-4090", "--memory", "16GiB", "--micro-batch", "8", "--strict"), "tight: needs "),
    ],
)
def test_a_failed_check_says_what_broke_it_and_nothing_else(run: Run, asked: tuple[str, ...], says: str) -> None:
    text = failed(run, *asked)
    assert text.startswith(says)
    assert " of the " not in text or says == "tight: needs "


@pytest.mark.parametrize("flags", [("--deadline", "1d"), ("--budget", "5"), ("--mfu", "0.4")])
def test_limits_of_a_training_run_are_not_ignored_in_silence_when_serving(run: Run, flags: tuple[str, str]) -> None:
    result = run("estimate", "-m", "gpt2", "-d", "t4", "-t", "inference", *flags)
    assert f"{flags[0]} has no meaning for --task inference and was ignored" in result.out

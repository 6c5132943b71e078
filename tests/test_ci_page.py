"""The page on continuous integration works: its files are read, its commands run."""

from __future__ import annotations

import io
import re
import shlex
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from llmfeas.cli import main

PAGE = (Path(__file__).parent.parent / "docs" / "ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, flags=re.DOTALL)


def file(name: str) -> str:
    """The block of the page that begins with a comment naming this file."""
    (text,) = [text for _, text in BLOCKS if text.startswith(f"# {name}\n")]
    return text


def commands(value: Any) -> Iterator[str]:
    """Yield the commands that a workflow runs, wherever they stand in it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from [inner] if key == "run" else inner if key == "script" else commands(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from commands(inner)


def ours(workflow: str) -> list[list[str]]:
    found = [shlex.split(command) for command in commands(yaml.safe_load(workflow))]
    assert ["pip", "install", "llmfeas"] in found
    return [words[1:] for words in found if words[0] == "llmfeas"]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "feasibility.yaml").write_text(file("feasibility.yaml"), encoding="utf-8")
    return tmp_path


def broken(repository: Path) -> None:
    path = repository / "feasibility.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("{max: 22}", "{max: 2}"), encoding="utf-8")


def test_the_github_workflow(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (command,) = ours(file(".github/workflows/feasibility.yml"))
    assert main(command) == 0
    assert capfd.readouterr().out == "::notice title=llmfeas check::10 passed, 0 failed\n"
    broken(repository)
    assert main(command) == 4
    line = file("feasibility.yaml").splitlines().index("    peak_gib: {max: 22}") + 1
    assert capfd.readouterr().out.startswith(f"::error file=feasibility.yaml,line={line},")


def test_the_gitlab_job(repository: Path) -> None:
    workflow = file(".gitlab-ci.yml")
    (command,) = ours(workflow)
    assert main(command) == 0
    report = yaml.safe_load(workflow)["feasibility"]["artifacts"]["reports"]["junit"]
    assert ElementTree.parse(repository / report).getroot().get("failures") == "0"
    broken(repository)
    assert main(command) == 4
    assert ElementTree.parse(repository / report).getroot().get("failures") == "2"


def test_the_commands(repository: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run = []
    for line in "".join(text for language, text in BLOCKS if language == "sh").splitlines():
        before, _, command = line.rpartition(" | ")
        if before:
            stdin = io.TextIOWrapper(io.BytesIO(shlex.split(before)[1].encode()))
            monkeypatch.setattr(sys, "stdin", stdin)
        words = shlex.split(command)
        assert words[0] == "llmfeas"
        assert main(words[1:]) == 0, line
        out, err = capfd.readouterr()
        assert err == ""
        assert bool(out) == (words[1] == "diff"), line
        run.append(words[1])
    assert run == ["estimate", "compare", "plan", "sweep", "estimate", "estimate", "diff", "diff"]
    assert main(["diff", "planned.json", "now.json", "--check", "-q"]) == 4


@pytest.mark.parametrize(
    "arguments",
    [
        ["estimate", "-m", "gpt2-xl", "-d", "rtx-4070ti"],
        ["estimate", "-m", "gpt2", "-d", "rtx-4090", "--deadline", "1s"],
        ["estimate", "-m", "gpt2", "-d", "rtx-4090", "--price", "1", "--budget", "0.01"],
        ["estimate", "-m", "llama-3-8b", "-d", "8xtpu-v5e", "-t", "qlora", "--engine", "pytorch"],
        ["compare", "-m", "gpt2-xl", "-d", "rtx-4070ti", "-d", "t4"],
        ["plan", "-m", "gpt3-175b", "-d", "rtx-3050-laptop", "-t", "pretrain", "--keep", "task,num_devices"],
        ["solve", "max-batch", "-m", "gpt3-175b", "-d", "t4"],
    ],
    ids=" ".join,
)
def test_the_exit_code_alone_says_no(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--check", "--quiet"]) == 4
    assert capfd.readouterr() == ("", "")
    assert main([*arguments, "-q"]) == 0

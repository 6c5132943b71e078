"""The page on continuous integration works: its files are read, its commands run."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
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


ROOT = Path(__file__).parent.parent


def test_the_hooks_of_pre_commit_are_commands_that_fail_where_something_is_broken(
    repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    (named,) = yaml.safe_load(file(".pre-commit-config.yaml"))["repos"]
    assert {hook["id"] for hook in named["hooks"]} == set(hooks)
    check = hooks["llmfeas-check"]
    assert re.search(check["files"], "feasibility.yaml") and not re.search(check["files"], "other.yaml")
    words = shlex.split(check["entry"])[1:]
    assert main([*words, "feasibility.yaml"]) == 0
    broken(repository)
    assert main([*words, "feasibility.yaml"]) == 4
    (repository / "llmfeas.yaml").write_text("devices: [{extends: rtx-4090, memory_gib: nonsense}]\n", encoding="utf-8")
    assert main([*shlex.split(hooks["llmfeas-catalog"]["entry"])[1:], "llmfeas.yaml"]) == 3


def test_the_action_runs_what_it_is_told(repository: Path, tmp_path: Path) -> None:
    """Its last step under bash, with llmfeas from here; expressions of GitHub stand in the steps' environment alone."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    *_, last = action["runs"]["steps"]
    assert all("${{" not in step.get("run", "") for step in action["runs"]["steps"])
    steps = yaml.safe_load(file(".github/workflows/action.yml"))["jobs"]["check"]["steps"]
    (called,) = [step for step in steps if "with" in step]
    assert set(called["with"]) <= set(action["inputs"])
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "FILES": "feasibility.yaml", "ARGUMENTS": called["with"]["arguments"]}
    assert subprocess.run(["bash", "-ec", last["run"]], cwd=repository, env=environment, check=False).returncode == 0
    broken(repository)
    assert subprocess.run(["bash", "-ec", last["run"]], cwd=repository, env=environment, check=False).returncode == 4


def test_the_container_copies_what_the_wheel_is_made_of() -> None:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    copied = {word for line in text.splitlines() if line.startswith("COPY ") for word in line.split()[1:-1]}
    assert copied and all((ROOT / word).exists() for word in copied)
    assert {"pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "src", "data"} <= copied

"""What is installed from a wheel works, away from this folder; the wheel of an sdist is the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from wheel_environment import built, installed

ASK = ("estimate", "--model", "gpt2-xl", "--device", "rtx-4070ti")


@pytest.fixture(scope="module")
def from_sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that was built from an sdist."""
    sdist, wheel = reversed(built(tmp_path_factory.mktemp("sdist")))
    assert sdist.name.endswith(".tar.gz")
    return wheel


@pytest.fixture(scope="module")
def python(from_sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment in which that wheel is installed."""
    return installed(from_sdist, tmp_path_factory.mktemp("environment"))


def llmfeas(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(python.parent / "llmfeas"), *arguments]
    return subprocess.run(command, cwd=python.parent, capture_output=True, text=True, encoding="utf-8", check=False)


def test_the_wheel_of_an_sdist_is_that_of_the_source(from_sdist: Path, tmp_path: Path) -> None:
    (direct,) = built(tmp_path, "--wheel")
    with zipfile.ZipFile(direct) as one, zipfile.ZipFile(from_sdist) as other:
        assert {entry.filename: entry.CRC for entry in one.infolist()} == {
            entry.filename: entry.CRC for entry in other.infolist()
        }


def test_it_holds_the_package_and_its_data_alone(from_sdist: Path) -> None:
    with zipfile.ZipFile(from_sdist) as wheel:
        names = wheel.namelist()
        metadata = wheel.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"llmfeas"}
    assert not [name for name in names if "calibration" in name]
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra" not in line]
    assert {re.split(r"[^a-zA-Z]", line.split()[1])[0] for line in required} == {"click", "pydantic", "pyyaml", "rich"}


def test_it_runs_from_where_it_is_installed(python: Path) -> None:
    ask = "import llmfeas, pathlib; print(pathlib.Path(llmfeas.__file__).resolve())"
    found = subprocess.run([str(python), "-I", "-c", ask], capture_output=True, text=True, check=True).stdout
    assert Path(found.strip()).is_relative_to(python.parent.parent.resolve())


def test_the_main_job(python: Path) -> None:
    table, script = llmfeas(python, *ASK), llmfeas(python, *ASK, "--json")
    assert (table.returncode, table.stderr, script.returncode, script.stderr) == (0, "", 0, "")
    assert "does not fit" in table.stdout
    assert json.loads(script.stdout)["result"]["parameters"]["total"] == 1_557_611_200


LAUNCHED = ["--model", "llama-3-8b", "--tokens", "10M", "--json", "--device"]


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--help"], ["--version"], ["schema", "model"], ["devices", "list"], ["claims"], ["check", "--init"]),
        ["launch", "--engine", "accelerate", *LAUNCHED, "8xh100-sxm"],
        ["launch", "--engine", "maxtext", "--price", "4", *LAUNCHED, "8xtpu-v5p"],
    ],
)
def test_other_commands(python: Path, arguments: list[str]) -> None:
    result = llmfeas(python, *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout


HEAVY = {"pydantic", "yaml", "rich", "annotated_types", "statistics", "llmfeas.load"}


def loaded(python: Path, arguments: list[str], **environment: str) -> tuple[str, set[str]]:
    """What a command line prints, and the modules that it imports."""
    ask = f"import sys; from llmfeas.cli import main; main({arguments!r}); print(*sys.modules, file=sys.stderr)"
    variables = {**os.environ, **environment}
    result = subprocess.run([str(python), "-c", ask], capture_output=True, text=True, check=True, env=variables)
    return result.stdout, set(result.stderr.split())


def test_the_hot_path_loads_nothing_heavy(python: Path) -> None:
    out, modules = loaded(python, [*ASK, "--json"])
    assert json.loads(out)
    assert not modules & HEAVY


@pytest.mark.parametrize(("word", "found"), [("-d 8xh1", "8xh100-sxm"), ("-m llama-3-8", "llama-3-8b")])
def test_completing_a_name_builds_no_estimate(python: Path, word: str, found: str) -> None:
    asked = {"_LLMFEAS_COMPLETE": "bash_complete", "COMP_WORDS": f"llmfeas estimate {word}", "COMP_CWORD": "3"}
    out, modules = loaded(python, [], **asked)
    assert f"plain,{found}" in out.splitlines()
    assert not modules & {*HEAVY, "llmfeas.settle", "llmfeas.memory", "llmfeas.walk", "llmfeas.planning"}

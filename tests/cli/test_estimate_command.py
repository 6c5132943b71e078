"""`llmfeas estimate`: formats, checks, explanation."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import FEASIBLE, INFEASIBLE, TERM, Outcome, stored

pytestmark = pytest.mark.usefixtures("stored_answers")
Run = Callable[..., Outcome]
ASK = ("estimate", "-m", "x", "-d")
YES, NO, HARDLY = "rtx-4090", "rtx-4070ti", "rtx-3090"


def test_the_answer_is_a_table_with_names(run: Run) -> None:
    result = run(*ASK, NO)
    assert result.code == 0
    assert result.out.startswith("Some Model, 1.56 B parameters, on 1 x Some Device")
    assert result.err == ""


@pytest.mark.parametrize("ask", [["--json"], ["-f", "json"], ["--format=json"], ["--json", "-f", "json"]])
def test_json(run: Run, ask: list[str]) -> None:
    result = run(*ASK, NO, *ask)
    assert json.loads(result.out) == stored(INFEASIBLE)
    assert result.err == ""


def test_ndjson_csv_and_markdown(run: Run) -> None:
    assert json.loads(run(*ASK, NO, "-f", "ndjson").out) == stored(INFEASIBLE)
    (row,) = csv.DictReader(io.StringIO(run(*ASK, NO, "-f", "csv").out))
    assert row["result.verdict.status"] == "infeasible"
    assert run(*ASK, NO, "-f", "markdown").out.startswith("## Some Model")


def test_explain_adds_settings_and_terms(run: Run) -> None:
    plain, explained = run(*ASK, NO).out, run(*ASK, NO, "--explain").out
    assert explained.startswith(plain)
    assert re.search(r"micro-batch +1 +derived", explained)
    assert "= a × b" in explained
    assert "= 2 bytes, 2 B, 50 % of the whole" in explained


def test_explain_is_a_key_of_the_json_only_when_asked_for(run: Run) -> None:
    assert json.loads(run(*ASK, NO, "--explain", "--json").out)["explanation"] == [TERM]
    assert "explanation" not in json.loads(run(*ASK, NO, "--json").out)


@pytest.mark.parametrize(
    ("device", "flags", "code"),
    [
        (YES, ["--check"], 0),
        (YES, ["--strict"], 0),
        (NO, [], 0),
        (NO, ["--check"], 4),
        (NO, ["--strict"], 4),
        (HARDLY, ["--check"], 0),
        (HARDLY, ["--strict"], 4),
    ],
)
def test_check_is_for_ci(run: Run, device: str, flags: list[str], code: int) -> None:
    result = run(*ASK, device, *flags)
    assert result.code == code
    assert result.out
    assert bool(result.err) == (code == 4)
    if device == NO and code == 4:
        assert result.err.startswith("Error: the check failed, infeasible: needs 29.1 GiB")


def test_a_failed_check_under_json_leaves_the_answer_on_stdout(run: Run) -> None:
    result = run(*ASK, NO, "--check", "--json")
    assert json.loads(result.out)["result"]["verdict"]["status"] == "infeasible"
    assert result.error["code"] == "check-failed"


def test_quiet_says_nothing_but_the_exit_code(run: Run) -> None:
    assert run(*ASK, NO, "--check", "-q") == Outcome(4, "", "")
    assert run(*ASK, YES, "-q") == Outcome(0, "", "")


def test_quiet_writes_files_and_tells_errors(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    assert run(*ASK, YES, "-q", "--json", "-o", str(path)) == Outcome(0, "", "")
    assert json.loads(path.read_text(encoding="utf-8")) == stored(FEASIBLE)
    assert "unknown device" in run(*ASK, "nothing", "-q").err


def test_verbose_says_what_answered(run: Run) -> None:
    result = run(*ASK, YES, "-v", "--json")
    assert json.loads(result.out) == stored(FEASIBLE)
    version, files, *assumed = result.err.splitlines()
    assert version == "llmfeas 0.1.0, catalog 3f2a9c01d4e5"
    assert files.startswith("catalog files: ")
    inputs = stored(FEASIBLE)["inputs"].items()
    left_open = [name for name, entry in inputs if entry["origin"] != "given" and entry["value"] is not None]
    assert [line.split()[1] for line in assumed] == ["--" + name.replace("_", "-") for name in left_open]
    assert "assumed --optimizer adamw (default)" in assumed

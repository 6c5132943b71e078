"""`llmfeas check`: what is printed, in every format, and with which exit code."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Outcome
from test_schema_command import faults, printed

Run = Callable[..., Outcome]

GOOD = """\
- id: small
  model: gpt2
  device: [rtx-4090, rtx-3090]
  task: finetune
  micro_batch: 1
  expect:
    fits: true
    parameters: 124.44e6 +- 0.1 %
"""
BROKEN = """\
- id: large
  model: gpt2-xl
  device: rtx-4070ti
  expect:
    fits: true
    status: [infeasible, unsupported]
    peak_gib: {max: 12, at: worst}
"""


@pytest.fixture
def check(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Check files of the given texts, named checks0.yaml, checks1.yaml and so on, in their folder."""
    monkeypatch.chdir(tmp_path)

    def call(*texts: str, with_: tuple[str, ...] = ()) -> Outcome:
        names = [f"checks{index}.yaml" for index in range(len(texts))]
        for name, text in zip(names, texts, strict=True):
            Path(name).write_text(text, encoding="utf-8")
        return run("check", *names, *with_)

    return call


def rows(outcome: Outcome) -> list[dict[str, Any]]:
    return json.loads(outcome.out)["result"]["expectations"]


def test_all_pass(check: Callable[..., Outcome]) -> None:
    result = check(GOOD)
    assert (result.code, result.err) == (0, "")
    assert "4 passed, 0 failed" in result.out
    assert result.out.count("✓") == 4


def test_one_broken_expectation_fails_the_check(check: Callable[..., Outcome]) -> None:
    result = check(GOOD, BROKEN)
    assert result.code == 4
    assert "5 passed, 2 failed" in result.out
    assert "checks1.yaml:5" in result.out
    assert result.err == "Error: the check failed: 5 passed, 2 failed.\n"


def test_json_is_the_contract(check: Callable[..., Outcome], run: Run) -> None:
    result = check(BROKEN, with_=("--json",))
    assert result.code == 4
    envelope = json.loads(result.out)
    assert faults(envelope, printed(run, "check.result")) == []
    fits, status, peak = rows(result)
    assert (fits["file"], fits["line"], fits["column"]) == ("checks0.yaml", 5, 5)
    assert (fits["found"], fits["ok"]) == (False, False) and fits["margin"] < 0
    assert (status["found"], status["ok"], status["margin"]) == ("infeasible", True, None)
    assert peak["expectation"] == "peak_gib at most 12 GiB at worst"
    assert peak["found"] > 12 and not peak["ok"]
    assert peak["margin"] == pytest.approx((12 - peak["found"]) / 12)
    assert (envelope["result"]["passed"], envelope["result"]["failed"]) == (1, 2)


def test_the_pessimistic_end_is_the_one_that_hurts(check: Callable[..., Outcome], run: Run) -> None:
    """Of memory and time the high end, of speed the low one; both as the estimate gives them."""
    ask = ("-m", "gpt2", "-d", "rtx-4090", "-t", "finetune")
    estimate = json.loads(run("estimate", *ask, "--json").out)["result"]
    expect = "{at: worst, peak_gb: {min: 0}, tokens_per_second: {min: 0}, total: {value: 1h +- 1000 %, at: expected}}"
    found = rows(check(f"model: gpt2\ndevice: rtx-4090\ntask: finetune\nexpect: {expect}\n", with_=("--json",)))
    assert [row["at"] for row in found] == ["worst", "worst", "expected"]
    assert found[0]["found"] == pytest.approx(estimate["memory"]["peak_bytes"]["high"] / 1e9)
    assert found[1]["found"] == pytest.approx(estimate["time"]["tokens_per_second"]["low"])
    assert found[2]["found"] == pytest.approx(estimate["time"]["total_seconds"]["expected"])


def test_an_unknown_figure_is_not_met(check: Callable[..., Outcome]) -> None:
    result = check("model: gpt2\ndevice: rtx-4070ti\nexpect: {usd: {max: 1e9}}\n", with_=("--json",))
    (row,) = rows(result)
    assert (result.code, row["found"], row["margin"], row["ok"]) == (4, None, None, False)


def test_a_figure_far_beyond_its_bound_is_said_to_be_far(check: Callable[..., Outcome]) -> None:
    found = check("model: llama-3-70b\ndevice: rtx-4070ti\ntask: pretrain\nexpect: {fits: true, peak_gib: {max: 12}}\n")
    assert found.code == 4 and found.out.count("< -1000 %") == 2


def test_quiet_prints_nothing(check: Callable[..., Outcome]) -> None:
    assert check(BROKEN, with_=("-q",)) == Outcome(4, "", "")
    assert check(GOOD, with_=("--quiet",)) == Outcome(0, "", "")


def test_junit(check: Callable[..., Outcome]) -> None:
    result = check(BROKEN, GOOD, with_=("-f", "junit"))
    suites = ElementTree.fromstring(result.out)
    assert (suites.get("tests"), suites.get("failures")) == ("7", "2")
    assert [suite.get("name") for suite in suites] == ["checks0.yaml", "checks1.yaml"]
    cases = suites.findall(".//testcase")
    assert [case.get("line") for case in cases[:3]] == ["5", "6", "7"]
    failures = [failure.get("message") or "" for failure in suites.iter("failure")]
    assert len(failures) == 2 and failures[0].startswith("large: fits true, found false (-")


def test_junit_survives_hostile_names(check: Callable[..., Outcome]) -> None:
    result = check('id: "<&\\"\\x1b]\\u0007>"\nmodel: gpt2\ndevice: t4\nexpect: {fits: false}\n', with_=("-f", "junit"))
    (case,) = ElementTree.fromstring(result.out).findall(".//testcase")
    assert case.get("classname") == '<&"\\x1b]\\x07>'


def test_github_annotations(check: Callable[..., Outcome]) -> None:
    result = check(BROKEN, with_=("-f", "github"))
    first, second, summary = result.out.splitlines()
    assert first.startswith("::error file=checks0.yaml,line=5,col=5,title=large::large: fits true, found false (-")
    assert second.startswith("::error file=checks0.yaml,line=7,")
    assert "%25" in second and second.count("::") == 2
    assert summary == "::notice title=llmfeas check::1 passed, 2 failed"


def test_github_annotations_cannot_be_forged(check: Callable[..., Outcome]) -> None:
    result = check('id: "a,b:c\\n::error::x"\nmodel: gpt2\ndevice: t4\nexpect: {fits: false}\n', with_=("-f", "github"))
    assert len(result.out.splitlines()) == 2
    assert "title=a%2Cb%3Ac\\x0a%3A%3Aerror%3A%3Ax::" in result.out


def test_rows_as_csv_and_ndjson(check: Callable[..., Outcome]) -> None:
    table = list(csv.DictReader(io.StringIO(check(GOOD, with_=("-f", "csv")).out)))
    lines = [json.loads(line) for line in check(GOOD, with_=("-f", "ndjson")).out.splitlines()]
    assert [row["id"] for row in table] == [row["id"] for row in lines] == ["small-1", "small-1", "small-2", "small-2"]


def test_markdown(check: Callable[..., Outcome]) -> None:
    out = check(BROKEN, with_=("-f", "markdown")).out
    assert "**1 passed, 2 failed**" in out and "| ✗ large: fits true |" in out


def test_results_to_a_file_leave_the_log_readable(check: Callable[..., Outcome], tmp_path: Path) -> None:
    result = check(BROKEN, with_=("-f", "junit", "-o", "report.xml"))
    assert (result.code, result.out) == (4, "")
    assert "1 passed, 2 failed" in result.err
    assert (tmp_path / "report.xml").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize(("data", "code"), [(GOOD.encode(), 0), (BROKEN.encode(), 4), (b"a: \xff", 3), (b"- 3", 3)])
def test_stdin(run: Run, monkeypatch: pytest.MonkeyPatch, data: bytes, code: int) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    result = run("check", "-")
    assert result.code == code
    assert "stdin:" in (result.out if code != 3 else result.err)


def test_no_file_is_a_usage_error(run: Run) -> None:
    result = run("check")
    assert result.code == 2 and "--init" in result.err


def test_the_example_passes_and_fits_its_schema(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from llmfeas.catalog.document import read_yaml

    monkeypatch.chdir(tmp_path)
    assert run("check", "--init", "feasibility.yaml") == Outcome(0, "", "")
    assert run("check", "--init").out == Path("feasibility.yaml").read_text(encoding="utf-8")
    result = run("check", "feasibility.yaml")
    assert result.code == 0, result.out
    assert faults(read_yaml(Path("feasibility.yaml")).data, printed(run, "check")) == []


def test_the_example_overwrites_nothing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("precious")
    assert run("check", "--init", str(path)).code == 2
    assert path.read_text() == "precious"


@pytest.mark.parametrize(
    "wrong",
    [
        {"devize": "t4"},
        {"expect": {"peek_gib": 3}},
        {"expect": {"peak_gib": {"most": 3}}},
        {"expect": {"fits": "perhaps"}},
        {"expect": {"status": "good"}},
        {"task": 3},
    ],
)
def test_the_schema_refuses_what_the_command_refuses(run: Run, wrong: dict[str, Any]) -> None:
    block = {"model": "gpt2", "device": ["t4", "l4"], "expect": {"fits": True, "peak_gib": {"max": "16 GB"}}}
    schema = printed(run, "check")
    assert faults([block], schema) == []
    assert faults([{**block, **wrong}], schema)

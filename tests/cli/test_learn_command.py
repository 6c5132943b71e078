"""`llmfeas learn`: a log beside the estimates, kept where it is asked for."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import Outcome

Run = Callable[..., Outcome]
LOGS = Path(__file__).parent.parent / "data" / "logs"
LOG = str(LOGS / "llama-server.log")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def answer(outcome: Outcome) -> dict[str, Any]:
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)  # type: ignore[no-any-return]


def test_measured_stands_beside_estimated(run: Run) -> None:
    shown = run("learn", LOG)
    assert shown.code == 0
    assert (
        "1024 tokens read, 512 written" in shown.out and "Estimated" in shown.out and "--device rtx-3090" in shown.out
    )


def test_a_kept_run_calibrates_further_answers(run: Run) -> None:
    asked = ("estimate", "-m", "llama-3-8b", "-d", "rtx-3090", "-t", "inference", "--quant", "q4_k_m", "--json")
    before = answer(run(*asked))["result"]["time"]["decode_tokens_per_second"]
    kept = run("learn", LOG, "--keep")
    assert kept.code == 0 and "Kept 1 measurement in" in kept.err and "decode on rtx-3090" in kept.err
    after = answer(run(*asked))
    assert "calibrated" in [each["code"] for each in after["warnings"]]
    now = after["result"]["time"]["decode_tokens_per_second"]
    assert now["high"] / now["low"] < before["high"] / before["low"]
    assert answer(run("backtest", "--calibrate", "--json"))["result"]["calibration"]


def test_what_is_not_kept_changes_nothing(run: Run, tmp_path: Path) -> None:
    assert run("learn", LOG).code == 0
    assert list(tmp_path.rglob("*.yaml")) == []


def test_a_log_comes_through_a_pipe(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(Path(LOG).read_bytes())))
    found = answer(run("learn", "-", "--json"))
    assert found["result"]["runs"][0]["figures"]


def test_a_run_that_cannot_be_compared_is_named_beside_the_others(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "both.log"
    log.write_bytes(Path(LOG).read_bytes() + (LOGS / "trainer-4.log").read_bytes())
    shown = run("learn", str(log))
    assert shown.code == 0 and "Not compared" in shown.out and "--seq-len" in shown.out


@pytest.mark.parametrize(
    ("log", "code", "said"),
    [("nothing.log", 3, "there is no such file"), (".", 2, "is no file"), (str(LOGS / "README.md"), 2, "nothing in")],
)
def test_what_is_no_log_is_said(run: Run, log: str, code: int, said: str) -> None:
    outcome = run("learn", log, "--json")
    assert outcome.code == code and said in outcome.error["message"]

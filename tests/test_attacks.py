"""The attacks of `fuzz/` see what they should, and are the same whenever they are made again."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fuzz import files, hostile
from fuzz.holds import Outcome, faults
from fuzz.run import KINDS, Report, attack_of
from fuzz.words import question, words

ASK = ("estimate", "-m", "gpt2", "-d", "t4", "--json")


def seen(code: int = 0, out: str = "{}\n", err: str = "", cpu_seconds: float = 0.1) -> str:
    return "; ".join(faults(Outcome(ASK, code, out, err, cpu_seconds)))


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        ({"code": 1, "err": '{"error": {}}'}, "exit code 1"),
        ({"code": 143, "err": "{}"}, "exit code 143"),
        ({"code": 2}, "without a word"),
        ({"err": "Traceback (most recent call last)"}, "traceback"),
        ({"out": '{"a": "\x1b[31m"}\n'}, "stdout holds"),
        ({"err": "a\u202eb"}, "stderr holds"),
        ({"out": "{"}, "no JSON"),
        ({"out": '{"a": NaN}'}, "no JSON"),
        ({"cpu_seconds": 3.0}, "3.0 s of CPU"),
        ({"out": '{"mfu": 1.2}'}, ".mfu is 1.2, a share"),
        ({"out": '{"id": ' + "9" * 400 + "}"}, ".id is 999"),
        ({"out": '{"time": {"step_seconds": -1}}'}, ".time.step_seconds is -1"),
        ({"out": '{"peak_bytes": {"low": 2, "expected": 1, "high": 3}}'}, "out of order"),
    ],
)
def test_what_does_not_hold_is_seen(outcome: dict[str, object], says: str) -> None:
    assert says in seen(**outcome)  # type: ignore[arg-type]


def test_what_holds_passes() -> None:
    assert seen(out='{"result": {"mfu": {"low": 0.1, "expected": 0.2, "high": 0.3}}, "peak_bytes": 1}\n') == ""
    assert seen(code=2, err='{"error": {"code": "x"}}\n', out="") == ""


def test_a_slow_answer_is_told_but_fails_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    report.failed("settings", "settings/0/1", ["2.5 s of CPU"])
    assert (report.failures, report.slow) == ({}, ["settings/0/1"])
    report.failed("settings", "settings/0/2", ["2.5 s of CPU", "exit code 1"])
    assert list(report.failures) == ["settings/0/2"]
    assert "settings/0/2" in report.written()


def test_an_attack_is_the_same_again() -> None:
    for draw in (words, question, files.overlay, hostile.value):
        first, second = (repr(draw(Random("7/x/1"))) for _ in range(2))
        assert first == second


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_there(kind: str) -> None:
    assert callable(attack_of(kind))


@pytest.mark.parametrize("number", range(3))
def test_some_files_are_answered_or_refused(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for kind in ("config", "gguf", "safetensors", "expectations"):
        found = list(attack_of(kind)(Random(f"0/{kind}/{number}"), tmp_path))
        assert [fault for fault in found if "of CPU" not in fault] == []

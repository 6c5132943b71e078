"""`llmfeas diff`: what changed between two stored estimates."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Outcome
from test_schema_command import faults, printed

Run = Callable[..., Outcome]


@pytest.fixture
def store(run: Run, tmp_path: Path) -> Callable[..., str]:
    def stored(name: str, *ask: str) -> str:
        path = tmp_path / f"{name}.json"
        assert run("estimate", "-m", "gpt2", *ask, "--json", "-o", str(path)).code == 0
        return str(path)

    return stored


def changed(outcome: Outcome) -> dict[str, dict[str, Any]]:
    return {change["path"]: change for change in json.loads(outcome.out)["result"]["changes"]}


def test_the_same_estimate_has_no_change(run: Run, store: Callable[..., str]) -> None:
    path = store("a", "-d", "rtx-4090", "-t", "finetune")
    result = run("diff", path, path, "--check", "--json")
    assert (result.code, changed(result)) == (0, {})
    assert "no change" in run("diff", path, path).out


def test_settings_and_figures(run: Run, store: Callable[..., str]) -> None:
    ask = ("-d", "rtx-4090", "-t", "finetune", "--micro-batch", "1")
    before, after = store("a", *ask), store("b", *ask, "--optimizer", "sgd")
    result = run("diff", before, after, "--json")
    assert faults(json.loads(result.out), printed(run, "diff")) == []
    found = changed(result)
    asked = found["inputs.optimizer"]
    assert (asked["kind"], asked["before"], asked["after"], asked["relative"]) == ("input", "adamw", "sgd", None)
    assert found["inputs.optimizer.origin"]["kind"] == "origin"
    states = found["result.memory.components.optimizer_bytes"]
    assert (states["kind"], states["after"], states["relative"]) == ("figure", 0, -1)
    peaks = [json.loads(Path(path).read_text())["result"]["memory"]["peak_bytes"]["low"] for path in (before, after)]
    assert found["result.memory.peak_bytes.low"]["relative"] == pytest.approx(peaks[1] / peaks[0] - 1)
    assert "inputs.model" not in found and "result.parameters.total" not in found
    shown = run("diff", before, after)
    assert shown.code == 0 and "sgd" in shown.out and "-100" in shown.out
    assert run("diff", before, after, "--check", "-q") == Outcome(4, "", "")


def test_data_warnings_and_what_one_side_lacks(run: Run, store: Callable[..., str], tmp_path: Path) -> None:
    before = store("a", "-d", "rtx-4090", "-t", "inference")
    envelope = json.loads(Path(before).read_text())
    envelope["catalog"] = "0123456789ab"
    envelope["warnings"].append({"code": "new", "message": "something"})
    del envelope["result"]["memory"]["host_bytes"]
    envelope["result"]["cost"]["usd"] = {"low": 1, "expected": 2, "high": 3}
    after = tmp_path / "b.json"
    after.write_text(json.dumps(envelope))
    found = changed(run("diff", before, str(after), "--json"))
    assert {path: change["kind"] for path, change in found.items()} == {
        "catalog": "catalog",
        "result.memory.host_bytes": "figure",
        "result.cost.usd.low": "figure",
        "result.cost.usd.expected": "figure",
        "result.cost.usd.high": "figure",
        "warnings.new": "warning",
    }
    assert found["result.memory.host_bytes"]["after"] is None
    assert found["result.cost.usd.low"]["relative"] is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", ":1:2: not JSON"),
        ("[1]", "it has no schema"),
        ('{"schema": "llmfeas.plan/1"}', "llmfeas.plan/1"),
        ('{"schema": "llmfeas.estimate/1", "inputs": {}}', "'result' is missing"),
        ('{"schema": "llmfeas.estimate/1", "inputs": 3, "result": {}}', "'inputs' is missing"),
        ('{"schema": "llmfeas.estimate/1", "inputs": {}, "result": {"x": NaN}}', "number out of bounds"),
        ('{"schema": "llmfeas.estimate/1", "inputs": {}, "result": {"x": ' + "9" * 400 + "}}", "number out of bounds"),
        ('{"schema": "llmfeas.estimate/1", "inputs": {}, "result": {"x": [1e999]}}', "number out of bounds"),
        ("[" * 100_000, "nested too deeply"),
        ("\x00\x01", "not JSON"),
    ],
)
def test_bad_files(run: Run, store: Callable[..., str], tmp_path: Path, text: str, says: str) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(text)
    for pair in ((str(bad), store("a", "-d", "t4")), (store("a", "-d", "t4"), str(bad))):
        result = run("diff", *pair)
        assert result.code == 3 and says in result.err


def test_missing_files_and_bytes_that_are_no_text(run: Run, tmp_path: Path) -> None:
    latin = tmp_path / "latin.json"
    latin.write_bytes(b'{"a": "\xff"}')
    for path in (tmp_path / "none.json", tmp_path, latin):
        assert run("diff", str(path), str(path)).code == 3


def test_odd_but_possible_contents_do_not_crash(run: Run, tmp_path: Path) -> None:
    odd = {"schema": "llmfeas.estimate/1", "inputs": {"a": 3, "b": {"value": [1]}}, "result": {"ladder": 3, "x": [{}]}}
    for index, result in enumerate((odd, {**odd, "warnings": 7, "result": {"ladder": [3, {"label": []}], "x": {}}})):
        (tmp_path / f"{index}.json").write_text(json.dumps(result))
    result = run("diff", str(tmp_path / "0.json"), str(tmp_path / "1.json"))
    assert result.code == 0


def test_a_change_beyond_all_numbers_has_no_share(run: Run, tmp_path: Path) -> None:
    for name, value in (("a", 1e-300), ("b", 1e300)):
        estimate = {"schema": "llmfeas.estimate/1", "inputs": {}, "result": {"x": value}}
        (tmp_path / f"{name}.json").write_text(json.dumps(estimate))
    result = run("diff", str(tmp_path / "a.json"), str(tmp_path / "b.json"), "--json")
    assert changed(result)["result.x"]["relative"] is None


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_reasons_are_sentences_and_what_nobody_said_is_apart(run: Run, store: Callable[..., str], form: str) -> None:
    before, after = store("a", "-d", "rtx-4090", "-t", "inference"), store("b", "-d", "h100-sxm", "-t", "inference")
    text = run("diff", before, after, "--format", form).out
    words = " ".join(text.split())
    assert '{"code"' not in text and "tokens/s" in words and "an hour" in words and "kWh" in words
    kinds = {path: change["kind"] for path, change in changed(run("diff", before, after, "--json")).items()}
    assert (kinds["inputs.device"], kinds["inputs.price"]) == ("input", "settled")


def test_what_differs_by_less_than_is_shown_is_counted_alone(run: Run, store: Callable[..., str]) -> None:
    before = store("a", "-d", "rtx-4090", "-t", "inference")
    envelope = json.loads(Path(before).read_text())
    envelope["result"]["memory"]["usable_bytes"] *= 1.00001
    after = Path(before).with_name("b.json")
    after.write_text(json.dumps(envelope))
    shown = " ".join(run("diff", before, str(after)).out.split())
    assert "1 of them by less than is shown" in shown and "usable" not in shown


def test_counts_are_whole_and_large_numbers_separated(run: Run, store: Callable[..., str]) -> None:
    shown = run("diff", *(store(task, "-d", "rtx-4090", "-t", task) for task in ("finetune", "lora"))).out
    assert "e+" not in shown and "1.244e8" not in shown
    row = next(line for line in shown.splitlines() if line.startswith("parameters trainable"))
    assert all(len(word.split(",")) > 2 for word in row.split()[2:4])
    assert "memory peak " in shown and "memory peak bytes" not in shown

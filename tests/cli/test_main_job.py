"""The main job from end to end, on the real catalog: every task, every format, and back from what was written."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from command_line import Outcome
from test_schema_command import faults

from llmfeas.cli.commands.schema import schemas
from llmfeas.options import OPTIONS, TASKS

Run = Callable[..., Outcome]
ASKS = [
    ("gpt2-xl", "rtx-4070ti", "pretrain"),
    ("gpt2", "8xa100-sxm-80gb", "finetune"),
    ("llama-3-8b", "m2-ultra", "lora"),
    ("llama-3-8b", "2xt4", "qlora"),
    ("mixtral-8x7b", "rtx-3090", "inference"),
    ("longcat-flash", "512xh100-sxm", "pretrain"),
]


def answered(run: Run, *arguments: str) -> dict[str, Any]:
    result = run("estimate", *arguments, "--json")
    assert (result.code, result.err) == (0, "")
    return json.loads(result.out)


@pytest.mark.parametrize(("model", "device", "task"), ASKS)
def test_an_answer_fits_its_schema_and_its_screen(
    run: Run, monkeypatch: pytest.MonkeyPatch, model: str, device: str, task: str
) -> None:
    ask = ("-m", model, "-d", device, "-t", task)
    envelope = answered(run, *ask)
    assert faults(envelope, schemas()["estimate"]()) == []
    components = envelope["result"]["memory"]["components"]
    peak = envelope["result"]["memory"]["peak_bytes"]
    assert sum(components.values()) == pytest.approx(peak["expected"])
    assert peak["low"] <= peak["expected"] <= peak["high"]
    for columns in (40, 60, 80, 100, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = run("estimate", *ask, "--explain").out.splitlines()
        assert max(map(len, lines)) <= columns
        assert not any("None" in line or "…" in line for line in lines)


@pytest.mark.parametrize(("model", "device", "task"), ASKS)
def test_what_was_resolved_can_be_asked_again(run: Run, model: str, device: str, task: str) -> None:
    first = answered(run, "-m", model, "-d", device, "-t", task)
    again = answered(run, *_asked(first, {"given"}))
    # a count in the device's name is written otherwise in what would have to change
    for found in (first, again):
        found["result"].pop("remedies")
    assert again == first
    spelled_out = answered(run, *_asked(first, {"given", "default", "device", "model", "backend", "derived"}))
    for part in ("parameters", "memory"):
        assert spelled_out["result"][part] == first["result"][part]


def _asked(envelope: dict[str, Any], origins: set[str]) -> list[str]:
    """Spell out the settings of a stored answer that came from one of `origins`."""
    flags = {option.name: option.flag for option in OPTIONS}
    units = {"memory": "B", "reserve": "B", "wired_limit": "B", "host_memory": "B", "deadline": "s", "mtbf": "s"}
    words = []
    for name, entry in envelope["inputs"].items():
        value = entry["value"]
        if value is not None and entry["origin"] in origins:
            typed = f"{value!r}{units.get(name, '')}" if isinstance(value, int | float) else str(value)
            words += [flags[name], typed]
    return words


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_an_answer_on_every_backend(run: Run, task: str) -> None:
    for device in ("rtx-4090", "rx-7900-xtx", "tpu-v5e", "m2-ultra", "arc-a770-16gb", "ryzen-9-7950x", "gaudi-2"):
        taught = ("--teacher", "llama-2-7b") if task == "distill" else ()
        envelope = answered(run, "-m", "tinyllama-1.1b", "-d", device, "-t", task, *taught)
        assert envelope["result"]["verdict"]["status"] in ("feasible", "tight", "infeasible", "unsupported")
        assert envelope["inputs"]["task"]["value"] == task


def test_a_sweep_says_what_estimate_says(run: Run, tmp_path: Any) -> None:
    path = tmp_path / "in"
    path.write_text(
        "".join(json.dumps({"id": n, "model": m, "device": d, "task": t}) + "\n" for n, (m, d, t) in enumerate(ASKS)),
        encoding="utf-8",
    )
    result = run("sweep", str(path))
    assert result.code == 0
    for row, (model, device, task) in zip(map(json.loads, result.out.splitlines()), ASKS, strict=True):
        alone = answered(run, "-m", model, "-d", device, "-t", task)
        for part in ("parameters", "flops", "memory", "time", "cost", "verdict"):
            assert row["result"][part] == alone["result"][part]


def test_a_phone_is_told_what_its_system_lets_an_app_have(run: Run) -> None:
    asked = ("estimate", "-m", "smollm3-3b", "-d", "iphone 17 pro", "-t", "inference")
    answer = json.loads(run(*asked, "--json").out)
    assert answer["inputs"]["wired_limit"]["value"] is None
    assert answer["result"]["memory"]["usable_bytes"] == pytest.approx(0.7 * 12 * 2**30)
    screen = run(*asked).out
    assert "iOS lets an app have" in screen and "macOS" not in screen
    assert run(*asked, "--engine", "ollama").code == 0
    assert run(*asked, "--wired-limit", "5GiB").code == 2


def test_builds_of_pytorch_are_no_limit_of_what_runs_without_it(run: Run) -> None:
    asked = ("estimate", "-m", "qwen3-8b", "-d", "p40", "-t", "inference", "--quant", "q4_k_m", "--json")
    assert "CUDA 12.6" not in run(*asked).out
    assert "CUDA 12.6" in run("estimate", "-m", "gpt2", "-d", "p40", "--json").out

"""What moves to the host of some layers alone, or on to a drive."""

from __future__ import annotations

from typing import Any

import pytest

from llmfeas import estimate
from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.settle import resolution

ASKED: dict[str, Any] = {"model": "llama-3-8b", "device": "h100-sxm", "seq_len": 2048, "micro_batch": 4}
WAITS = {"task": "finetune", "offload": "activations", "checkpointing": "none", "precision": "bf16"}
INFINITY = {
    "model": "llama-3-70b",
    "task": "finetune",
    "engine": "deepspeed",
    "offload": "all",
    "zero": 3,
    "num_devices": 8,
}


def result(**changes: Any) -> dict[str, Any]:
    return estimate(**{**ASKED, **changes}).to_dict()["result"]


def expected(found: dict[str, Any], *path: str) -> float:
    for name in path:
        found = found[name]
    return float(found["expected"])


@pytest.mark.parametrize("asked", [WAITS, {"task": "lora", "offload": "all"}])
def test_some_layers_lie_between_none_and_all(asked: dict[str, Any]) -> None:
    none, half, whole = (
        result(**{**asked, **changes}) for changes in ({"offload": "none"}, {"offload_layers": 16}, {})
    )
    for path in (("memory", "peak_bytes"), ("time", "step_seconds")):
        low, high = sorted((expected(none, *path), expected(whole, *path)))
        assert low < expected(half, *path) < high, path
    assert half["memory"]["host_bytes"] == pytest.approx(whole["memory"]["host_bytes"] / 2)
    assert sum(half["memory"]["components"].values()) == pytest.approx(expected(half, "memory", "peak_bytes"))


def test_all_layers_are_all() -> None:
    assert result(**WAITS, offload_layers=32)["memory"] == result(**WAITS)["memory"]


def test_a_drive_spares_main_memory_and_takes_its_time() -> None:
    memory, fast, slow = result(**INFINITY), result(**INFINITY, drive=100), result(**INFINITY, drive=10)
    assert fast["memory"]["peak_bytes"] == memory["memory"]["peak_bytes"]
    assert fast["memory"]["host_bytes"] == slow["memory"]["host_bytes"] < 0.5 * memory["memory"]["host_bytes"]
    beyond = [
        expected(each, "time", "step_seconds") - expected(memory, "time", "step_seconds") for each in (slow, fast)
    ]
    assert beyond[0] == pytest.approx(10 * beyond[1], rel=1e-3)
    # fp32 weights and both moments read and written once, 16-bit weights read twice
    assert beyond[1] == pytest.approx((24 + 4) * 70.6e9 / 100e9, rel=0.1)


def test_what_lies_on_a_drive_is_named() -> None:
    notes = {note.code: note.message for note in estimate(**{**ASKED, **INFINITY, "drive": 10}).warnings}
    assert "lie on the drive of each machine" in notes["on-drive"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({**WAITS, "offload_layers": 33}, "more than the 32 layers"),
        ({"task": "finetune", "offload": "all", "offload_layers": 8}, "move all at once"),
        ({"task": "finetune", "offload": "all", "drive": 5}, "--engine pytorch lays nothing on a drive"),
        ({"task": "finetune", "drive": 0}, "--drive: '0' is below"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        resolution({**ASKED, **changes}, catalog())

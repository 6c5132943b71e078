"""Ways to keep on the device what the engine's own fit left on the host."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.contract import ABSENT
from llmfeas.planning.answer import answer, bare_answer
from llmfeas.planning.selection import GAIN
from llmfeas.workload.serving import spills

SPILLED = [
    {"model": "gemma-3-27b", "device": "rtx-4090", "context": 128_000},
    {"model": "qwen3-14b", "device": "rtx-3060-12gb", "quant": "q8_0"},
    {"model": "qwen3.6-35b-a3b", "device": "rtx-5070ti"},
    {"model": "llama-3.3-70b", "device": "rtx-3090", "num_devices": 2, "context": 32_000},
]


@pytest.mark.parametrize("asked", SPILLED, ids=lambda asked: str(asked["model"]))
def test_a_faster_way_leaves_nothing_on_the_host_and_says_what_an_estimate_says(asked: dict[str, object]) -> None:
    request = {**asked, "task": "inference"}
    found = answer(request, catalog(), ladder=False)
    assert spills(found.scenario) and found.verdict.status == "feasible"
    assert found.faster is not ABSENT and found.faster
    for way in found.faster:
        changed = bare_answer({**request, **way.changes}, catalog())
        assert not spills(changed.scenario) and changed.memory.host_bytes < found.memory.host_bytes
        assert (changed.verdict.status, changed.speed.expected) == (way.status, way.decode_tokens_per_second)
        assert changed.memory.peak_bytes.expected == way.peak_bytes
        assert way.status == "feasible" and changed.speed.expected >= GAIN * found.speed.expected


def test_the_first_way_is_the_one_that_hurts_least() -> None:
    found = answer({**SPILLED[0], "task": "inference"}, catalog(), ladder=False)
    assert found.faster is not ABSENT
    assert dict(found.faster[0].changes) == {"kv_dtype": "q8_0"}


def test_no_shorter_context_is_offered_to_who_asked_for_none() -> None:
    found = answer({"model": "llama-3.3-70b", "device": "rtx-4090", "task": "inference"}, catalog(), ladder=False)
    assert spills(found.scenario)
    assert found.faster == ()


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "qwen3-8b", "device": "rtx-4090", "task": "inference", "quant": "q4_k_m"},
        {"model": "llama-3.3-70b", "device": "rtx-4090", "task": "inference", "gpu_layers": 20},
        {"model": "gpt2-xl", "device": "rtx-4070ti", "task": "pretrain"},
    ],
    ids=["all on the device", "layers as asked", "training"],
)
def test_where_nothing_was_left_by_itself_there_are_none(asked: dict[str, object]) -> None:
    assert answer(asked, catalog(), ladder=False).faster is ABSENT


DESKS = [("ryzen-7-5800x", "q4_k_m"), ("strix-halo", "q4_k_m"), ("m4-max-40c", "mlx-4bit"), ("rtx-4090", "q4_k_m")]


@pytest.mark.parametrize(("device", "usual"), DESKS, ids=[device for device, _ in DESKS])
def test_who_names_no_format_sees_the_one_that_most_people_run_there(device: str, usual: str) -> None:
    request = {"model": "llama-3.1-8b", "device": device}
    found = answer({**request, "task": "inference"}, catalog(), ladder=False)
    assert found.verdict.status == "feasible" and found.scenario.quant == "none"
    assert found.faster is not ABSENT
    (way,) = found.faster
    asked = bare_answer({**request, "task": "inference", **way.changes}, catalog())
    assert dict(way.changes) == {"quant": usual} and asked.speed.expected == way.decode_tokens_per_second
    uses = answer(request, catalog(), ladder=False).uses
    assert uses is not ABSENT
    lighter = next(use for use in uses if use.label == "chat, 4 bits")
    assert lighter.decode_tokens_per_second == way.decode_tokens_per_second

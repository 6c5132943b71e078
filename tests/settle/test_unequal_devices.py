"""Unequal devices: layers dealt out by memory, each at its own rate; who divides evenly refuses them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.result import Estimate
from llmfeas.planning.launch.llama_cpp import dealt_layers
from llmfeas.planning.launch.llama_cpp import settings as launched
from llmfeas.settle import resolution
from llmfeas.timing.inference import InferenceTime
from llmfeas.workload.stages import stages_by_memory

CATALOG = catalog()
ASK = {"model": "llama-3.3-70b", "task": "inference", "quant": "q4_k_m", "prompt": 1000, "context": 4096}
CARDS = ("rtx-4090", "rtx-3090", "rtx-3060-12gb", "rtx-4060ti-16gb", "tesla-p40", "rtx-5090")


def answer(**more: Any) -> Estimate:
    return estimate(resolution({**ASK, **more}, CATALOG))


def speeds(found: Estimate) -> tuple[float, float]:
    assert isinstance(found.time, InferenceTime)
    return found.time.decode_tokens_per_second.expected, found.time.prefill_tokens_per_second.expected


def test_a_machine_of_two_cards_is_as_fast_as_both_take_turns() -> None:
    both, fast, slow = (speeds(answer(device=name)) for name in ("rtx-4090+rtx-3090", "2xrtx-4090", "2xrtx-3090"))
    for together, quick, lame in zip(both, fast, slow, strict=True):
        assert lame < together < quick
    assert 1 / both[0] == pytest.approx((1 / fast[0] + 1 / slow[0]) / 2, rel=0.02)


def test_the_part_that_is_too_small_decides_and_is_named() -> None:
    found = answer(device="rtx-4090+rtx-3060-12gb", quant="q3_k_m", context=12288, gpu_layers=80)
    large, small = found.memory.parts
    assert (large.device, small.device) == ("rtx-4090", "rtx-3060-12gb")
    worst = max((large, small), key=lambda part: part.peak_bytes.high / part.usable_bytes)
    assert (found.memory.usable_bytes, found.memory.peak_bytes) == (worst.usable_bytes, worst.peak_bytes)
    assert found.memory.verdict == "exceeds"
    assert any(worst.name in reason.message for reason in found.verdict.reasons)


def test_an_answer_is_asked_again_by_its_inputs() -> None:
    found = answer(device="2xrtx-3090+rtx-4090").to_dict()
    again = estimate(resolution(found["inputs"], CATALOG)).to_dict()
    assert again["result"]["memory"] == found["result"]["memory"]
    assert again["result"]["time"] == found["result"]["time"]


def test_power_and_price_are_sums_over_the_parts() -> None:
    parts = [CATALOG.devices[name] for name in ("rtx-4090", "rtx-3090")]
    scenario = answer(device="rtx-4090+rtx-3090", electricity=0.3).scenario
    assert (scenario.device.power_w or 0) * scenario.paid_devices == sum(part.power_w or 0 for part in parts)


def test_the_command_says_the_split() -> None:
    scenario = answer(device="rtx-4090+rtx-3060-12gb", quant="q2_k").scenario
    layers = dealt_layers(scenario)
    assert sum(layers) == scenario.model.architecture.layers + 1
    assert layers[0] == pytest.approx(2 * layers[1], abs=2)
    assert ["--tensor-split", ",".join(map(str, layers))] in launched(scenario)
    assert not dealt_layers(answer(device="2xrtx-4090").scenario)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"engine": "vllm"}, "vLLM gives each device an equal part"),
        ({"task": "qlora", "quant": "nf4"}, "training under"),
        ({"memory": "20GiB"}, "--memory says one size"),
        ({"tp": 2}, "take layers one after the other"),
    ],
)
def test_what_divides_evenly_is_refused_with_the_reason(more: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolution({"model": "llama-3-8b", "task": "inference", "device": "rtx-4090+rtx-3090", **more}, CATALOG)


def test_many_requests_stay_with_who_deals_out_by_memory() -> None:
    scenario = resolution({**ASK, "device": "rtx-4090+rtx-3090", "concurrency": 32}, CATALOG).scenario
    assert scenario.engine == "llama.cpp"


def test_without_a_task_they_serve() -> None:
    settled = resolution({"model": "llama-3-8b", "device": "rtx-4090+rtx-3090"}, CATALOG)
    assert settled.scenario.task == "inference"
    assert "task-implied" in {note.code for note in settled.warnings}


@given(st.integers(1, 130), st.lists(st.floats(1e9, 2e11), min_size=1, max_size=8), st.integers(0, 1))
def test_every_layer_is_dealt_once_and_by_memory(layers: int, memories: list[float], head: int) -> None:
    dealt = stages_by_memory(layers, tuple(memories), head)
    assert sum(stage.layers for stage in dealt) == layers
    assert all(stage.layers >= 0 for stage in dealt)
    assert [stage.first for stage in dealt[1:]] == [stage.end for stage in dealt[:-1]]
    assert sum(stage.heads for stage in dealt) == 1
    for stage, memory in zip(dealt, memories, strict=True):
        assert abs(stage.layers + head * stage.heads - (layers + head) * memory / sum(memories)) <= 1


@settings(deadline=None, max_examples=10)
@given(st.lists(st.sampled_from(CARDS), min_size=2, max_size=3, unique=True))
def test_two_names_of_one_machine_differ_in_order_alone(cards: list[str]) -> None:
    there, back = (answer(device="+".join(order), quant="q2_k") for order in (cards, cards[::-1]))
    assert sum(part.usable_bytes for part in there.memory.parts) == pytest.approx(
        sum(part.usable_bytes for part in back.memory.parts)
    )
    assert speeds(there)[0] == pytest.approx(speeds(back)[0], rel=0.1)

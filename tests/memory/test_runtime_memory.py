"""Peaks on real devices: tensors, and what is beyond them, against published measurements."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.feasibility.core import estimate
from llmfeas.memory.inference import inference_memory
from llmfeas.memory.peak import Memory
from llmfeas.memory.runtime import context_bytes, overheads, peak_width, runtime_memory
from llmfeas.memory.training import training_memory
from llmfeas.memory.usable import usable_bytes
from llmfeas.ranges import Range
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution
from serving_rows import serving, training

PUBLISHED = json.loads((Path(__file__).parents[1] / "data" / "inference_memory.json").read_text())
ROWS = [row for row in PUBLISHED["rows"] if not row["variant"]]


def peak(row: dict[str, Any]) -> Range:
    scenario = serving(row["scenario"], PUBLISHED["configs"])
    memory = inference_memory(scenario)
    return runtime_memory(scenario, memory.components).shifted(memory.bytes)


def measured(row: dict[str, Any]) -> float:
    found = row["measured"]
    return found.get("peak_bytes") or found["peak_total_bytes"] / row["scenario"]["num_devices"]


def beyond(scenario: Scenario, components: dict[str, float], kind: str) -> float:
    """The bytes beyond tensors that a figure of this kind holds."""
    allocated, gaps = overheads(scenario, components)
    return allocated + {"allocated": 0.0, "reserved": gaps, "device": gaps + context_bytes(scenario)}[kind]


def comparable(row: dict[str, Any]) -> float:
    scenario = serving(row["scenario"], PUBLISHED["configs"])
    memory = inference_memory(scenario)
    return memory.bytes + beyond(scenario, dict(memory.components), row["memory_kind"])


PEAKS = [row for row in ROWS if "fits" not in row["measured"]]
TRAINED = json.loads((Path(__file__).parents[1] / "data" / "finetune_memory.json").read_text())


def test_inference_peaks_are_near_the_published_ones() -> None:
    errors = [abs(comparable(row) / measured(row) - 1) for row in PEAKS]
    assert statistics.median(errors) < 0.05
    assert sorted(errors)[int(0.9 * len(errors))] < 0.15


def test_whole_peaks_are_near_the_published_ones_of_whatever_kind() -> None:
    assert statistics.median(abs(peak(row).expected / measured(row) - 1) for row in PEAKS) < 0.08


def test_ranges_hold_four_of_five_published_peaks_and_are_narrow() -> None:
    ranges = [(peak(row), measured(row)) for row in PEAKS]
    assert sum(found.low <= value <= found.high for found, value in ranges) >= 0.8 * len(ranges)
    assert statistics.median(found.high / found.low for found, _ in ranges) <= 1.35


def test_what_ran_fits_and_what_ran_out_of_memory_does_not() -> None:
    rows = [row for row in ROWS if "fits" in row["measured"]]
    right = [
        (peak(row).expected <= usable_bytes(serving(row["scenario"], PUBLISHED["configs"]))) == row["measured"]["fits"]
        for row in rows
    ]
    assert sum(right) >= 0.95 * len(right)


def test_what_a_figure_includes_adds_up() -> None:
    scenario, components = serving({"model": "llama-3-8b"}), {"weights_bytes": 16e9, "kv_cache_bytes": 1e9}
    allocated, reserved, device = (beyond(scenario, components, kind) for kind in ("allocated", "reserved", "device"))
    assert 0 < allocated < reserved < device


def test_the_range_brackets_the_expected_value() -> None:
    scenario = serving({"model": "llama-3-8b"})
    found = runtime_memory(scenario, {"weights_bytes": 16e9})
    assert found.low < found.expected < found.high
    assert peak_width(scenario) ** 2 <= 1.35


def training_peak(row: dict[str, Any]) -> Range:
    scenario = training(row["scenario"], TRAINED["configs"])
    memory = training_memory(scenario)
    return runtime_memory(scenario, memory.components).shifted(memory.bytes)


def test_fine_tuning_peaks_are_near_the_published_ones() -> None:
    errors = sorted(abs(training_peak(row).expected / measured(row) - 1) for row in TRAINED["rows"])
    assert statistics.median(errors) < 0.12
    assert errors[int(0.9 * len(errors))] < 0.45


def test_ranges_hold_four_of_five_published_memory_rows() -> None:
    found = [(peak(row), measured(row)) for row in PEAKS]
    found += [(training_peak(row), measured(row)) for row in TRAINED["rows"]]
    assert sum(one.low <= value <= one.high for one, value in found) >= 0.78 * len(found)
    assert statistics.median(one.high / one.low for one, _ in found) <= 1.35


def squeezed(share: float) -> tuple[Memory, Memory]:
    """The memory of a step with plenty of room, and with `share` of what its allocator would like to hold."""
    request = {"model": "llama-2-7b", "device": "h100-sxm", "task": "lora", "checkpointing": "none", "micro_batch": 1}
    plenty = estimate(resolution(request, catalog())).memory
    scenario = resolution(request, catalog()).scenario
    spare = overheads(scenario, tensors_of(plenty))[1]
    room = (plenty.peak_bytes.expected - (1 - share) * spare) / catalog().tables.runtime.usable["default"]
    return plenty, estimate(resolution({**request, "memory": f"{room / 2**30}GiB"}, catalog())).memory


def tensors_of(memory: Memory) -> dict[str, float]:
    return {name: size for name, size in memory.components.items() if name != "runtime_bytes"}


def test_an_allocator_gives_back_what_it_caches_before_a_step_fails() -> None:
    plenty, tight = squeezed(0.5)
    assert tight.verdict == "tight"
    assert tight.peak_bytes.expected == pytest.approx(tight.usable_bytes)
    assert tight.peak_bytes.expected < plenty.peak_bytes.expected
    assert tight.peak_bytes.high == pytest.approx(plenty.peak_bytes.high)
    assert sum(tight.components.values()) == pytest.approx(tight.peak_bytes.expected)


def test_what_exceeds_does_so_without_a_cache() -> None:
    plenty, over = squeezed(-0.01)
    assert over.verdict == "exceeds"
    assert over.usable_bytes < over.peak_bytes.expected < 1.01 * over.usable_bytes
    assert over.peak_bytes.expected < plenty.peak_bytes.expected
    assert over.peak_bytes.high == pytest.approx(plenty.peak_bytes.high)


def test_the_automatic_micro_batch_leaves_the_allocator_its_room() -> None:
    for model in ("gpt2", "gpt2-xl", "llama-3.2-1b", "qwen2.5-7b"):
        for device in ("rtx-4090", "h100-sxm", "t4"):
            found = estimate(resolution({"model": model, "device": device, "task": "finetune"}, catalog()))
            full = found.memory.peak_bytes.expected == found.memory.usable_bytes
            assert not full or found.scenario.micro_batch == 1, (model, device)


SPREAD: dict[str, Any] = {
    "model": "qwen3-30b-a3b",
    "task": "lora",
    "engine": "megatron-swift",
    "num_devices": 4,
    "tp": 1,
    "pp": 1,
    "ep": 4,
    "seq_len": 8192,
    "global_batch": 16,
    "checkpointing": "full",
}


def spread(**changes: Any) -> Memory:
    return estimate(resolution({**SPREAD, **changes}, catalog())).memory


def test_an_allocator_grows_where_experts_get_another_number_of_rows_each_time() -> None:
    """It takes a share of what is free, less than all: no run is refused for it, and more room is filled with more."""
    small, large = spread(device="a100-sxm-80gb"), spread(device="h200")
    more = large.usable_bytes - small.usable_bytes
    grown = large.peak_bytes.expected - small.peak_bytes.expected
    assert grown == pytest.approx(0.3 * more, rel=0.01)
    assert max(small.peak_bytes.high - small.usable_bytes, large.peak_bytes.high - large.usable_bytes) < 0
    assert large.peak_bytes.low == pytest.approx(small.peak_bytes.low)


@pytest.mark.parametrize("changes", [{"ep": 1, "tp": 4}, {"engine": "megatron-balanced"}])
def test_it_does_not_where_their_rows_are_as_many_each_time(changes: dict[str, Any]) -> None:
    small, large = (spread(device=device, **changes) for device in ("h100-sxm", "h200"))
    assert large.peak_bytes.expected == pytest.approx(small.peak_bytes.expected, rel=0.01)

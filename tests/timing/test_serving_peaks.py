"""No answer is written, no prompt read faster than stated bandwidths and peaks allow: none measured, none of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.laws import broken_alone
from llmfeas.catalog.store import built_in
from llmfeas.evidence.compare import ComparedFigure, compared, scenario_of
from llmfeas.evidence.measurements import read_measurements
from llmfeas.planning.answer import bare_answer
from llmfeas.timing.decode import cached_tokens, sequences_per_replica
from llmfeas.timing.inference import InferenceTime
from llmfeas.timing.prefill import prompt_tokens
from llmfeas.timing.serving_floor import least_decode_seconds, least_prompt_seconds
from llmfeas.workload.serving import readers, writers

ROWS = Path(__file__).parents[2] / "data" / "measurements"


def share(item: ComparedFigure) -> float:
    """The share of what the devices can do that a measured speed reached."""
    scenario = scenario_of(item.measurement)
    together = sequences_per_replica(scenario)
    if item.kind == "prefill":
        tokens = prompt_tokens(scenario) * together
        least = least_prompt_seconds(scenario, tokens, prompt_tokens(scenario))
        return item.measured * least / (readers(scenario) * tokens)
    least = least_decode_seconds(scenario, cached_tokens(scenario), together)
    return item.measured * least / (writers(scenario) * together * scenario.tokens_a_step)


@pytest.mark.parametrize("file", ["inference.yaml", "community.yaml"])
def test_what_was_measured_is_within_the_peaks(file: str) -> None:
    rows, _ = read_measurements([ROWS / file])
    written = [row for row in rows if row.scenario.get("task") == "inference"]
    explained = [row for row in written if row.reason]
    items = [item for row in [*written[::6], *explained[::6]] for item in compared(row)]
    shares = {item.measurement.id: share(item) for item in items if item.kind in ("decode", "prefill")}
    assert len(shares) > 10 and max(shares.values()) > 0.5, "the floor says something"
    known = {row.id for row in explained}
    assert [(name, each) for name, each in shares.items() if each > 1 and name not in known] == []


@pytest.mark.parametrize("device", list(built_in().devices)[::9])
def test_no_device_beats_its_memory(device: str) -> None:
    found = bare_answer({"model": "llama-3.2-1b", "device": device, "task": "inference", "prompt": 100, "output": 20})
    assert isinstance(found.time, InferenceTime)
    scenario, cached = found.scenario, cached_tokens(found.scenario)
    most = 1 / least_decode_seconds(scenario, cached, 1.0)
    assert 0 < found.time.tokens_per_second_per_sequence.high <= most * (1 + 1e-9)
    assert found.time.prefill_tokens_per_second.high <= 100 / least_prompt_seconds(scenario, 100.0, 100.0) * (1 + 1e-9)
    assert found.time.output_tokens_per_second.high < most
    assert broken_alone(found) == []


@pytest.mark.parametrize(
    "more",
    [
        {"concurrency": 16, "prompt": 500, "output": 100},
        {"rate": 2, "prompt": 500, "output": 100},
        {"rate": 2, "requests": 50, "prompt": 2000, "output": 1},
        {"draft": "eagle", "concurrency": 4, "prompt": 100, "output": 100},
        {"device": "4xl4", "tp": 2, "pp": 2, "concurrency": 8, "prompt": 100, "output": 100},
        {"model": "mixtral-8x7b", "device": "8xh100-sxm", "ep": 8, "concurrency": 64, "prompt": 100, "output": 100},
        {"model": "mixtral-8x7b", "n_cpu_moe": 32, "engine": "llama.cpp", "host_bandwidth": 50, "quant": "q4_k_m"},
        {"model": "llama-3-70b", "engine": "llama.cpp", "gpu_layers": 20, "quant": "q4_k_m", "host_bandwidth": 50},
        {"engine": "transformers", "precision": "fp32", "prompt": 4096},
        {
            "model": "flan-t5-xl",
            "device": "xeon-w9-3475x",
            "precision": "fp16",
            "engine": "mlx",
            "prompt": 0,
            "output": 1,
        },
    ],
)
def test_no_server_beats_its_peaks(more: dict[str, object]) -> None:
    found = bare_answer({"model": "llama-3-8b", "device": "rtx-4090", "task": "inference", **more})
    assert broken_alone(found) == []
    assert isinstance(found.time, InferenceTime)
    together = sequences_per_replica(found.scenario)
    least = least_decode_seconds(found.scenario, cached_tokens(found.scenario), together)
    assert found.time.tokens_per_second_per_sequence.high <= found.scenario.tokens_a_step / least * (1 + 1e-9)


def test_a_bandwidth_that_nobody_stated_bounds_nothing() -> None:
    ask = {"model": "llama-3-70b", "device": "rtx-4090", "task": "inference", "quant": "q4_k_m", "gpu_layers": 0}
    unknown, known = (
        bare_answer({**ask, "engine": "llama.cpp", **more}).scenario for more in ({}, {"host_bandwidth": 80})
    )
    assert least_decode_seconds(unknown, 0.0, 1.0) == 0.0
    assert least_decode_seconds(known, 0.0, 1.0) > 0.4


def test_prompts_in_wide_numbers_are_read_at_their_rate() -> None:
    ask = {"model": "llama-3-8b", "device": "h100-sxm", "task": "inference", "engine": "transformers", "prompt": 4096}
    wide, tensor, half = (bare_answer({**ask, "precision": name}).time for name in ("fp32", "tf32", "bf16"))
    assert isinstance(wide, InferenceTime) and isinstance(tensor, InferenceTime) and isinstance(half, InferenceTime)
    speeds = [each.prefill_tokens_per_second.expected for each in (wide, tensor, half)]
    assert speeds[0] < speeds[1] / 3 and speeds[1] < speeds[2]


def test_layers_that_may_have_to_stay_on_the_host_make_nothing_faster() -> None:
    ask = {"model": "nemotron-4-340b", "device": "rtx-pro-6000d", "num_devices": 8, "task": "inference"}
    found = bare_answer({**ask, "prompt": 500, "concurrency": 2, "rate": 0.5, "engine": "llama.cpp", "quant": "none"})
    assert found.scenario.spill is not None
    assert broken_alone(found) == []

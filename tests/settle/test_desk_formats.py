"""What memory decides of a served model: its format, and how many of its layers stay on the device."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.inputs import inputs
from llmfeas.feasibility.result import Estimate
from llmfeas.feasibility.verdict import why
from llmfeas.planning.answer import answer, bare_answer
from llmfeas.settle import resolution
from llmfeas.workload.serving import spills

GGUF = ("none", "q8_0", "q6_k", "q5_k_m", "q4_k_m")
MLX = ("none", "mlx-8bit", "mlx-6bit", "mlx-4bit")


def served(model: str, device: str, **more: object) -> Estimate:
    return estimate(resolution({"model": model, "device": device, "task": "inference", **more}, catalog()))


@pytest.mark.parametrize(
    ("model", "device", "quant"),
    [
        ("llama-3-8b", "rtx-4090", "none"),
        ("gemma-3-27b", "rtx-4090", "q5_k_m"),
        ("phi-4", "rtx-4090", "q8_0"),
        ("llama-3-70b", "m2-ultra", "mlx-4bit"),
        ("gemma-3-27b", "m2-ultra", "mlx-8bit"),
        ("qwen2.5-14b", "ryzen-9-7950x", "q8_0"),
    ],
)
def test_at_a_desk_the_best_usual_format_that_surely_fits_is_taken(model: str, device: str, quant: str) -> None:
    found = served(model, device)
    assert (found.scenario.quant, found.verdict.status, found.scenario.gpu_layers) == (quant, "feasible", None)


@pytest.mark.parametrize("device", ["rtx-4090", "rtx-3060", "rx-7900xtx", "m2-ultra", "m4-max-40c", "ryzen-9-7950x"])
def test_no_wider_usual_format_would_surely_fit(device: str) -> None:
    for model in ("mistral-7b", "phi-4", "gemma-3-27b", "llama-3-70b"):
        found = served(model, device)
        order = MLX if found.scenario.engine == "mlx" else GGUF
        for wider in order[: order.index(found.scenario.quant)]:
            as_said = served(model, device, quant=wider)
            helped = spills(as_said.scenario) or as_said.scenario.spill is not None
            assert helped or as_said.memory.verdict != "fits", (model, wider)


def test_what_does_not_fit_in_4_bits_leaves_as_few_layers_on_the_host_as_do() -> None:
    found = served("gemma-3-27b", "rtx-3060")
    assert (found.scenario.quant, found.verdict.status) == ("q4_k_m", "feasible")
    layers = found.scenario.gpu_layers
    assert layers is not None and 0 < layers < 62
    assert served("gemma-3-27b", "rtx-3060", quant="q4_k_m", gpu_layers=layers + 1).memory.verdict != "fits"


@pytest.mark.parametrize("said", [{"quant": "none"}, {"quant": "q8_0"}, {"gpu_layers": 62}])
def test_what_was_said_stays(said: dict[str, object]) -> None:
    found = served("gemma-3-27b", "rtx-3060", **said)
    assert all(getattr(found.scenario, name) == value for name, value in said.items())
    if "gpu_layers" in said:
        assert found.verdict.status == "infeasible"


def test_what_does_not_fit_in_the_format_that_was_said_leaves_as_few_layers_on_the_host_as_do() -> None:
    found = served("qwen2.5-32b", "rtx-4070ti", quant="q4_k_m")
    layers = found.scenario.gpu_layers
    assert found.verdict.status == "feasible" and spills(found.scenario)
    assert layers is not None and 0 < layers < found.scenario.model.architecture.layers
    again = served("qwen2.5-32b", "rtx-4070ti", quant="q4_k_m", gpu_layers=layers)
    assert again.memory == found.memory
    assert served("qwen2.5-32b", "rtx-4070ti", quant="q4_k_m", gpu_layers=layers + 1).memory.verdict != "fits"


@pytest.mark.parametrize(("model", "device"), [("qwen3.6-35b-a3b", "rtx-4090"), ("llama-2-70b", "2xrtx-3090")])
def test_what_is_expected_to_fit_stays_whole_and_the_engine_itself_moves_what_does_not(model: str, device: str) -> None:
    """As llama.cpp does, which sees the file and the free memory when it starts: that is no way to run out."""
    found = served(model, device)
    scenario, spill = found.scenario, found.scenario.spill
    assert (scenario.quant, scenario.gpu_layers, scenario.n_cpu_moe) == ("q4_k_m", None, None)
    assert found.verdict.status == "feasible" and spill is not None and 0 < spill.share < 0.5
    assert found.memory.peak_bytes.high == found.memory.usable_bytes
    assert "may-spill" in {note.code for note in found.warnings}
    whole = served(model, device, gpu_layers=scenario.model.architecture.layers)
    assert whole.verdict.status == "tight" and whole.scenario.spill is None
    left = served(model, device, quant="q4_k_m", **dict(spill.settings))
    assert left.verdict.status == "feasible"
    assert left.speed.low <= found.speed.low <= whole.speed.low
    assert found.speed.expected == whole.speed.expected


def test_no_rung_of_8_bits_is_surer_than_the_usual_4() -> None:
    rungs = {
        rung.quant: rung.status
        for rung in answer({"model": "qwen3.6-35b-a3b", "device": "rtx-4090", "task": "inference"}).ladder
    }
    assert (rungs["q8_0"], rungs["q4_k_m"]) == ("feasible", "feasible")


def test_where_main_memory_has_no_room_either_nothing_is_moved() -> None:
    found = served("llama-2-70b", "2xrtx-3090", host_memory="200MiB")
    assert (found.scenario.spill, found.verdict.status) == (None, "tight")


def test_a_host_that_is_too_small_is_what_lacks() -> None:
    found = served("qwen2.5-32b", "rtx-4070ti", quant="q4_k_m", host_memory="8GiB")
    assert found.verdict.status == "infeasible"
    assert "host-memory-exceeds" in {reason.code for reason in found.verdict.reasons}
    assert found.memory.verdict == "fits"


@pytest.mark.parametrize(
    ("model", "device", "more"),
    [
        ("gpt-oss-120b", "rtx-3090", {"host_memory": "64GiB"}),
        ("qwen3-30b-a3b", "rtx-4060ti-8gb", {}),
        ("qwen3-30b-a3b", "rtx-4090", {"quant": "q8_0"}),
    ],
)
def test_as_few_experts_of_a_mixture_stay_in_main_memory_as_leave_the_margin(
    model: str, device: str, more: dict[str, object]
) -> None:
    found = served(model, device, **more)
    kept, margin = found.scenario.n_cpu_moe, found.scenario.engine_record.serving.fit_margin_bytes
    assert found.verdict.status == "feasible" and found.scenario.gpu_layers is None
    assert kept is not None and 0 < kept < found.scenario.model.architecture.layers
    fewer = served(model, device, **{**more, "quant": found.scenario.quant}, n_cpu_moe=kept - 1).memory
    assert found.memory.peak_bytes.expected + margin <= found.memory.usable_bytes
    assert fewer.verdict != "fits" or fewer.peak_bytes.expected + margin > fewer.usable_bytes


def test_where_all_experts_are_not_enough_layers_follow() -> None:
    found = served("deepseek-v3", "rtx-3060", quant="q4_k_m", engine="llama.cpp", host_memory="512GiB")
    layers = found.scenario.model.architecture.layers
    assert found.verdict.status == "feasible" and found.scenario.n_cpu_moe == layers
    assert found.scenario.gpu_layers is not None and found.scenario.gpu_layers < layers


def test_main_memory_that_is_too_small_is_what_does_not_fit() -> None:
    found = served("gpt-oss-120b", "rtx-3090", host_memory="16GiB")
    assert found.verdict.status == "infeasible" and found.memory.verdict == "fits"


def test_servers_run_what_is_published() -> None:
    assert served("llama-3-70b", "h100-sxm").scenario.quant == "none"
    assert served("deepseek-v3", "8xh200").scenario.quant == "fp8"
    assert served("qwen2.5-7b", "h100-sxm", concurrency=2, engine="vllm").scenario.quant == "none"


@pytest.mark.parametrize("more", [{}, {"concurrency": 16}, {"max_num_seqs": 16}, {"gpu_memory_utilization": 0.85}])
def test_a_server_at_a_desk_runs_the_same_format_whatever_else_is_said(more: dict[str, object]) -> None:
    found = served("qwen2.5-7b", "rtx-4060", engine="vllm", **more)
    assert (found.scenario.quant, found.scenario.origins["quant"]) == ("awq-int4", "derived")


def test_an_engine_that_would_have_been_taken_answers_the_same_where_it_is_said() -> None:
    found = served("qwen2.5-7b", "rtx-4060", concurrency=16)
    assert found.scenario.quant == "awq-int4"
    assert (
        served("qwen2.5-7b", "rtx-4060", concurrency=16, engine="vllm").to_dict()["result"] == found.to_dict()["result"]
    )


@pytest.mark.parametrize(
    ("model", "device", "quant"),
    [("qwen3-8b", "rtx-3090", "none"), ("qwen3-14b", "rtx-3090", "fp8"), ("qwen3-8b", "rtx-4070ti", "awq-int4")],
)
def test_a_server_that_nobody_named_runs_on_a_card_of_a_desk_what_surely_fits(
    model: str, device: str, quant: str
) -> None:
    found = served(model, device, concurrency=8)
    assert (found.scenario.engine, found.scenario.quant, found.verdict.status) == ("vllm", quant, "feasible")


@pytest.mark.parametrize(
    ("model", "device", "requests", "quant", "status"),
    [
        ("gpt-oss-20b", "rtx-4090", 31, "mxfp4", "feasible"),
        ("gpt-oss-20b", "rtx-4090", 32, "mxfp4", "tight"),
        ("gpt-oss-20b", "rtx-4090", 40, "mxfp4", "infeasible"),
        ("qwen3-8b", "rtx-3090", 25, "awq-int4", "tight"),
        ("qwen3-8b", "rtx-3090", 64, "awq-int4", "infeasible"),
    ],
)
def test_where_none_surely_fits_a_server_runs_the_first_format_that_may(
    model: str, device: str, requests: int, quant: str, status: str
) -> None:
    found = served(model, device, prompt=1000, output=400, context=4096, concurrency=requests, cache_held="whole")
    assert (found.scenario.engine, found.scenario.quant, found.verdict.status) == ("vllm", quant, status)


def test_a_request_takes_room_for_its_prompt_and_answer() -> None:
    said = served("gpt-oss-20b", "rtx-4090", prompt=1000, output=400, concurrency=64)
    assert (said.scenario.context, said.scenario.origins["context"]) == (1400, "derived")
    assert (said.verdict.status, said.verdict.memory) == ("feasible", "fits")
    assert served("gpt-oss-20b", "rtx-4090", prompt=1000, concurrency=64).scenario.context == 1512
    assert served("gpt-oss-20b", "rtx-4090", output=400).scenario.context == 4096


def test_a_doubt_is_no_reason_of_a_load_that_misses_its_targets() -> None:
    asked: dict[str, object] = {"prompt": 1000, "output": 400, "context": 4096, "concurrency": 40, "quant": "awq-int4"}
    found = served("gpt-oss-20b", "rtx-4090", **asked).verdict
    assert "may run out of memory" in why(found)
    missed = served("gpt-oss-20b", "rtx-4090", **asked, tpot="5ms").verdict
    assert {reason.code for reason in missed.reasons} >= {"server-cramped", "tpot-missed"}
    assert why(missed).startswith("95 % of requests")


def test_no_format_is_taken_that_the_server_has_not_on_the_card() -> None:
    found = served("qwen3-14b", "rtx-2080ti", concurrency=8)
    support = found.scenario.engine_record.format_support
    form = found.scenario.tables.quantization.format(found.scenario.quant, found.scenario.engine_record.speaks)
    assert support(form, found.scenario.device).status != "unsupported"


def test_a_desk_runs_8_bit_models_in_formats_of_its_own() -> None:
    assert served("deepseek-v3", "m3-ultra", memory="512GiB").scenario.quant == "mlx-4bit"
    assert served("deepseek-v3", "epyc-9654", memory="768GiB").scenario.quant == "q6_k"


def test_more_requests_take_a_smaller_format() -> None:
    asked = [served("phi-4", "rtx-4090", concurrency=count, context=16384) for count in (1, 2, 3, 4)]
    places = [GGUF.index(found.scenario.quant) for found in asked]
    assert places == sorted(places)
    assert places[0] < places[-1]


@pytest.mark.parametrize("model", ["qwen3-30b-a3b", "gemma-3-27b"])
def test_a_board_whose_memory_is_that_of_its_processor_leaves_nothing_on_a_host(model: str) -> None:
    ask = {"model": model, "device": "jetson-orin-nano-4gb", "task": "inference"}
    found = bare_answer(ask)
    assert (found.scenario.gpu_layers, found.scenario.n_cpu_moe) == (None, None)
    assert found.verdict.status == "infeasible"
    again = bare_answer(inputs(found.scenario))
    assert again.memory.peak_bytes == found.memory.peak_bytes


@pytest.mark.parametrize(
    ("model", "quant", "engine"),
    [
        ("Qwen/Qwen3-8B-AWQ", "awq-int4", "vllm"),
        ("Qwen/Qwen3-8B-FP8", "fp8", "vllm"),
        ("unsloth/Qwen3-8B-bnb-4bit", "nf4", "transformers"),
        ("bartowski/Qwen3-8B-GGUF:Q6_K", "q6_k", "llama.cpp"),
        ("qwen3:8b", "q4_k_m", "llama.cpp"),
        ("Qwen/Qwen3-8B", "none", "llama.cpp"),
    ],
)
def test_a_format_in_the_models_name_is_served_at_a_desk(model: str, quant: str, engine: str) -> None:
    found = served(model, "rtx-3090").scenario
    assert (found.quant, found.engine) == (quant, engine)
    if quant != "none":
        assert found.origins["quant"] == "model"
        assert served(model, "rtx-3090", quant="q8_0").scenario.quant == "q8_0"


def test_a_format_in_the_models_name_that_does_not_run_there_gives_way_and_is_said() -> None:
    found = served("mlx-community/Qwen3-8B-4bit", "rtx-3090")
    assert found.scenario.quant == "q4_k_m"
    assert "mlx-4bit does not run there: a format that does was taken" in [note.message for note in found.warnings]

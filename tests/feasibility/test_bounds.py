"""The floor that spares searches: never above what is really needed."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import LlmfeasError
from llmfeas.feasibility.bounds import Bounds, time_limit_seconds
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.verdict import IMPRACTICAL_SECONDS
from llmfeas.memory.usable import usable_bytes
from llmfeas.settle import resolution

ASKS: tuple[dict[str, object], ...] = (
    {"task": "finetune", "micro_batch": 1},
    {"task": "finetune", "micro_batch": 1, "precision": "bf16", "optimizer": "adamw-8bit"},
    {"task": "finetune", "micro_batch": 1, "precision": "bf16", "optimizer": "adafactor"},
    {"task": "finetune", "micro_batch": 1, "precision": "bf16", "optimizer": "lion"},
    {"task": "lora", "micro_batch": 1},
    {"task": "lora", "micro_batch": 1, "precision": "fp32"},
    {"task": "lora", "micro_batch": 1, "device": "m2-ultra"},
    {"task": "qlora", "micro_batch": 1},
    {"task": "qlora", "micro_batch": 1, "precision": "fp32"},
    {"task": "finetune", "micro_batch": 1, "num_devices": 8},
    {"task": "finetune", "micro_batch": 1, "offload": "optimizer"},
    {"task": "finetune", "micro_batch": 1, "offload": "activations"},
    {"task": "finetune", "micro_batch": 1, "num_devices": 8, "engine": "megatron"},
    {"task": "finetune", "micro_batch": 1, "num_devices": 8, "engine": "llmq"},
)


FORMATS = ("none", "int8", "q8_0", "q4_k_m", "q2_k", "nf4", "mxfp4")


BOUNDED = (*ASKS, *({"task": "inference", "quant": quant} for quant in FORMATS))


@pytest.mark.parametrize(("number", "ask"), [*enumerate(BOUNDED)], ids=str)
def test_no_model_needs_less_than_the_floor(number: int, ask: dict[str, object]) -> None:
    for model in [*[*catalog().models][number :: len(BOUNDED)], "chinchilla-70b"]:
        found = estimate(resolution({"model": model, "device": "h200", **ask}, catalog()))
        assert found.memory.peak_bytes.expected >= Bounds({}, found.scenario).least_device_bytes, model


def test_frozen_weights_are_as_wide_as_the_device_at_hand_trains_them() -> None:
    scenario = resolution({"model": "llama-2-7b", "device": "gtx-1080", "task": "lora"}, catalog()).scenario
    assert scenario.precision == "fp32"
    other = Bounds({"device": "m3-ultra"}, scenario).least_device_bytes
    assert (
        Bounds({}, scenario).least_device_bytes
        == Bounds({"device": "h200", "precision": "fp32"}, scenario).least_device_bytes
        == 2 * other
    )


def test_nothing_is_known_where_weights_may_lie_on_the_host() -> None:
    scenario = resolution({"model": "llama-2-7b", "device": "rtx-4090", "task": "finetune"}, catalog()).scenario
    assert Bounds({}, scenario).least_device_bytes > 0
    assert Bounds({"offload": "all"}, scenario).least_device_bytes == 0
    assert Bounds({"task": "inference", "quant": "q4_k_m", "gpu_layers": 3}, scenario).least_device_bytes == 0


def test_the_ceiling_is_what_is_usable_of_the_device_that_is_tried() -> None:
    def usable(**asked: object) -> float:
        scenario = resolution({"model": "gpt2", **asked}, catalog()).scenario
        return usable_bytes(scenario) - scenario.tables.runtime.contexts[scenario.device.backend]

    def ceiling(**tried: object) -> float:
        return Bounds(tried, scenario, catalog()).most_device_bytes

    scenario = resolution({"model": "gpt2", "device": "m2-ultra", "memory": "64GiB"}, catalog()).scenario
    assert ceiling() == usable(device="m2-ultra", memory="64GiB")
    assert ceiling(memory="128GiB") == usable(device="m2-ultra", memory="128GiB")
    for device in ("rtx-4090", "epyc-9654", "m3-ultra-60c"):
        assert ceiling(device=device, memory="auto") == usable(device=device, reserve=0) >= usable(device=device)


@pytest.mark.parametrize(
    "ask", [{"offload": "all"}, {"offload": "optimizer"}, {"offload": "all", "task": "qlora"}], ids=str
)
def test_no_host_holds_less_than_its_floor(ask: dict[str, object]) -> None:
    for model in [*catalog().models][::17]:
        request = {"model": model, "device": "8xh200", "task": "finetune", "micro_batch": 1, **ask}
        found = estimate(resolution(request, catalog()))
        on_machine = found.memory.host_bytes * min(found.scenario.num_devices, found.scenario.devices_per_node)
        assert on_machine >= Bounds({}, found.scenario, catalog()).least_host_bytes, model


@pytest.mark.parametrize("layers", [0, 7])
@pytest.mark.parametrize("device", ["rtx-4090", "4xrtx-4090"])
@pytest.mark.parametrize("quant", ["q4_k_m", "q2_k", "q8_0"])
def test_no_machine_holds_less_than_its_floor_wherever_layers_lie(quant: str, device: str, layers: int) -> None:
    ask = {"device": device, "task": "inference", "engine": "llama.cpp", "quant": quant, "gpu_layers": layers}
    for model in [*catalog().models][::13]:
        found = estimate(resolution({"model": model, **ask}, catalog()))
        scenario, held = found.scenario, found.memory.host_bytes + found.memory.peak_bytes.expected
        least = Bounds({}, scenario, catalog()).least_machine_bytes
        assert 0 <= least <= held * scenario.num_devices, model
        assert least or scenario.quant != quant, "only of what keeps its own few bits nothing is known"
        ceiling = scenario.host_memory_bytes + scenario.num_devices * (usable_bytes(scenario) + scenario.reserve_bytes)
        assert Bounds({}, scenario, catalog()).most_machine_bytes <= ceiling, model


def test_a_machine_has_no_floor_where_all_layers_are_on_the_device() -> None:
    ask = {"model": "llama-2-7b", "device": "rtx-4090", "task": "inference", "quant": "q4_k_m"}
    scenario = resolution(ask, catalog()).scenario
    assert Bounds({}, scenario, catalog()).least_machine_bytes == 0
    assert Bounds({"gpu_layers": 3}, scenario, catalog()).least_machine_bytes > 0


def test_the_host_is_that_of_the_devices_that_are_tried() -> None:
    def host(**asked: object) -> float:
        return resolution({"model": "gpt2", "task": "finetune", **asked}, catalog()).scenario.host_memory_bytes

    scenario = resolution({"model": "llama-2-7b", "device": "rtx-4090", "task": "finetune"}, catalog()).scenario
    for name in ("rtx-4090", "h200", "epyc-9654", "m3-ultra-60c"):
        for count in (1, 2, 16):
            asked = {"device": name, "num_devices": count}
            assert Bounds(asked, scenario, catalog()).most_host_bytes == host(**asked)
    assert Bounds({"host_memory": "64GiB", "device": "h200"}, scenario, catalog()).most_host_bytes == 64 * 2**30
    said = {"model": "llama-2-7b", "device": "rtx-4090", "task": "finetune", "host_memory": "48GiB"}
    stated = resolution(said, catalog()).scenario
    assert Bounds({"device": "h200"}, stated, catalog()).most_host_bytes == 48 * 2**30
    offered = resolution({"model": "llama-2-7b", "device": "kaggle-2xt4", "task": "finetune"}, catalog()).scenario
    assert Bounds({}, offered, catalog()).most_host_bytes == offered.host_memory_bytes
    assert Bounds({"offload": "all"}, scenario, catalog()).least_host_bytes > 0
    both = Bounds({"offload": "all", "device": "h200", "num_devices": 16}, scenario, catalog()).least_host_bytes
    assert both == Bounds({"offload": "all"}, scenario, catalog()).least_host_bytes / 2


@pytest.mark.parametrize("task", ["pretrain", "finetune", "lora", "qlora"])
@pytest.mark.parametrize("device", ["rtx-4090", "8xh100-sxm", "16xb200", "m2-ultra", "tpu-v5e", "rx-6900-xt"])
def test_no_training_is_faster_than_its_floor(task: str, device: str) -> None:
    for model in [*catalog().models][::29]:
        for precision in (None, "fp8-mixed", "fp32"):
            request = {"model": model, "device": device, "task": task, "micro_batch": 1, "precision": precision}
            try:
                found = estimate(resolution(request, catalog()))
            except LlmfeasError:
                continue
            assert found.total_seconds is not None
            assert found.total_seconds.expected >= Bounds({}, found.scenario, catalog()).least_seconds > 0, model


def test_the_time_of_another_task_is_known_where_its_tokens_are() -> None:
    scenario = resolution({"model": "llama-2-7b", "device": "rtx-4090"}, catalog()).scenario
    assert Bounds({"task": "lora"}, scenario, catalog()).least_seconds == 0
    assert Bounds({"task": "lora", "tokens": 1e9}, scenario, catalog()).least_seconds > 0
    assert (
        Bounds({"num_devices": 4}, scenario, catalog()).least_seconds
        == Bounds({}, scenario, catalog()).least_seconds / 4
    )
    assert time_limit_seconds(scenario) == IMPRACTICAL_SECONDS


def test_a_format_whose_name_begins_like_auto_is_itself() -> None:
    asked = {"model": "gpt2", "device": "h100-sxm", "task": "inference", "quant": "autoround-int4"}
    scenario = resolution(asked, catalog()).scenario
    assert 0 < Bounds({}, scenario).least_device_bytes < Bounds({"quant": "none"}, scenario).least_device_bytes

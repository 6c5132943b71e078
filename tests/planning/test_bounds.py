"""The floor that spares searches: never above what is really needed."""

from __future__ import annotations

import pytest

from llmfeas.catalog.runtime import runtime
from llmfeas.catalog.store import catalog
from llmfeas.estimate.core import estimate
from llmfeas.estimate.resolve import resolution
from llmfeas.estimate.usable_memory import usable_bytes
from llmfeas.planning.bounds import least_bytes, least_host_bytes, most_bytes, most_host_bytes

ASKS: tuple[dict[str, object], ...] = (
    {"task": "finetune", "micro_batch": 1},
    {"task": "finetune", "micro_batch": 1, "precision": "bf16", "optimizer": "adamw-8bit"},
    {"task": "finetune", "micro_batch": 1, "precision": "bf16", "optimizer": "adafactor"},
    {"task": "finetune", "micro_batch": 1, "precision": "bf16", "optimizer": "lion"},
    {"task": "lora", "micro_batch": 1},
    {"task": "qlora", "micro_batch": 1},
    {"task": "finetune", "micro_batch": 1, "num_devices": 8},
    {"task": "finetune", "micro_batch": 1, "offload": "optimizer"},
    {"task": "finetune", "micro_batch": 1, "offload": "activations"},
    {"task": "finetune", "micro_batch": 1, "num_devices": 8, "engine": "megatron"},
    {"task": "finetune", "micro_batch": 1, "num_devices": 8, "engine": "llmq"},
)


FORMATS = ("none", "int8", "q8_0", "q4_k_m", "q2_k", "nf4", "mxfp4")


@pytest.mark.parametrize("ask", [*ASKS, *({"task": "inference", "quant": quant} for quant in FORMATS)], ids=str)
def test_no_model_needs_less_than_the_floor(ask: dict[str, object]) -> None:
    for model in [*[*catalog().models][:: 1 if ask["task"] == "inference" else 6], "chinchilla-70b"]:
        found = estimate(resolution({"model": model, "device": "h200", **ask}, catalog()))
        assert found.memory.peak_bytes.expected >= least_bytes({}, found.scenario), model


def test_nothing_is_known_where_weights_may_lie_on_the_host() -> None:
    scenario = resolution({"model": "llama-2-7b", "device": "rtx-4090", "task": "finetune"}, catalog()).scenario
    assert least_bytes({}, scenario) > 0
    assert least_bytes({"offload": "all"}, scenario) == 0
    assert least_bytes({"task": "inference", "quant": "q4_k_m", "gpu_layers": 3}, scenario) == 0


def test_the_ceiling_is_what_is_usable_of_the_device_that_is_tried() -> None:
    def usable(**asked: object) -> float:
        scenario = resolution({"model": "gpt2", **asked}, catalog()).scenario
        return usable_bytes(scenario) - runtime().contexts[scenario.device.backend]

    scenario = resolution({"model": "gpt2", "device": "m2-ultra", "memory": "64GiB"}, catalog()).scenario
    assert most_bytes({}, scenario, catalog()) == usable(device="m2-ultra", memory="64GiB")
    assert most_bytes({"memory": "128GiB"}, scenario, catalog()) == usable(device="m2-ultra", memory="128GiB")
    for device in ("rtx-4090", "epyc-9654", "m3-ultra-60c"):
        assert most_bytes({"device": device, "memory": "auto"}, scenario, catalog()) == usable(device=device)


@pytest.mark.parametrize(
    "ask", [{"offload": "all"}, {"offload": "optimizer"}, {"offload": "all", "task": "qlora"}], ids=str
)
def test_no_host_holds_less_than_its_floor(ask: dict[str, object]) -> None:
    for model in [*catalog().models][::6]:
        request = {"model": model, "device": "8xh200", "task": "finetune", "micro_batch": 1, **ask}
        found = estimate(resolution(request, catalog()))
        on_machine = found.memory.host_bytes * min(found.scenario.num_devices, found.scenario.devices_per_node)
        assert on_machine >= least_host_bytes({}, found.scenario), model


def test_the_host_of_another_device_is_not_judged() -> None:
    scenario = resolution({"model": "llama-2-7b", "device": "rtx-4090", "task": "finetune"}, catalog()).scenario
    assert least_host_bytes({"offload": "all"}, scenario) > 0
    assert least_host_bytes({"offload": "all", "device": "h200"}, scenario) == 0
    assert most_host_bytes({}, scenario) == 32 * 2**30
    assert most_host_bytes({"host_memory": "64GiB"}, scenario) == 64 * 2**30

"""Properties of jobs on many devices."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmfeas.catalog.store import catalog
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.result import Estimate
from llmfeas.memory.peak import memory
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution
from llmfeas.timing.training import TrainingTime, training_time

MODELS = st.sampled_from(
    ("gpt2-xl", "llama-2-7b", "llama-3-8b", "mistral-7b", "qwen2.5-7b", "mixtral-8x7b", "pythia-6.9b")
)
TASKS = st.sampled_from(("pretrain", "finetune", "lora", "qlora"))
POWERS = st.sampled_from((1, 2, 4, 8))


def settled(**request: object) -> Scenario:
    asked = {"device": "h100-sxm", "micro_batch": 1, "global_batch": 4096, "seq_len": 1024, **request}
    return resolution(asked, catalog()).scenario


def found(**request: object) -> Estimate:
    asked = {"device": "h100-sxm", "micro_batch": 1, "global_batch": 4096, "seq_len": 1024, **request}
    return estimate(resolution(asked, catalog()))


@settings(max_examples=60)
@given(MODELS, TASKS, st.integers(1, 10), st.integers(1, 10))
def test_more_devices_never_need_more_memory_each_under_zero_3(model: str, task: str, a: int, b: int) -> None:
    few, many = sorted((2**a, 2**b))
    common = {"model": model, "task": task, "zero": 3, "tp": 1, "pp": 1, "ep": 1, "checkpointing": "full"}
    small = memory(settled(**common, num_devices=few)).memory.peak_bytes.expected
    large = memory(settled(**common, num_devices=many)).memory.peak_bytes.expected
    assert large <= small * (1 + 1e-9)


@settings(max_examples=60)
@given(MODELS, POWERS, POWERS, POWERS, st.sampled_from((1, 2)))
def test_axes_multiply_to_the_devices(model: str, tp: int, pp: int, dp: int, cp: int) -> None:
    if catalog().models[model].architecture.heads % tp:
        tp = 1
    scenario = settled(model=model, num_devices=tp * pp * dp * cp, tp=tp, pp=pp, cp=cp, task="finetune")
    assert scenario.tp * scenario.pp * scenario.cp * scenario.dp == scenario.num_devices


@given(MODELS, TASKS)
def test_one_device_does_not_communicate(model: str, task: str) -> None:
    parts = training_time(settled(model=model, task=task, num_devices=1)).parts
    for name in ("tensor_parallel", "expert_parallel", "zero", "gradient_sync", "bubble"):
        assert parts.get(name, 0.0) == 0.0


@given(MODELS, st.sampled_from((2, 4, 8)))
def test_many_micro_batches_fill_the_pipeline(model: str, pp: int) -> None:
    def bubble(batch: int) -> float:
        parts = training_time(settled(model=model, task="finetune", num_devices=pp, pp=pp, global_batch=batch)).parts
        return parts["bubble"] / sum(parts.values())

    assert bubble(4 * pp) > bubble(64 * pp) > bubble(4096 * pp)
    assert bubble(4096 * pp) < 0.01


@given(MODELS, TASKS)
def test_every_axis_at_one_is_the_single_device(model: str, task: str) -> None:
    plain = found(model=model, task=task)
    axes = {"num_devices": 1, "tp": 1, "pp": 1, "ep": 1, "cp": 1, "interleave": 1}
    spelled = found(model=model, task=task, **axes)
    assert spelled.result() == plain.result()


@given(st.sampled_from(("gpt2-xl", "llama-2-7b", "qwen2.5-7b")), st.sampled_from((2, 8, 64)))
def test_shards_of_all_ranks_make_the_whole(model: str, ranks: int) -> None:
    """ZeRO 3 divides states and fp32 weights evenly."""
    common = {"model": model, "task": "finetune", "tp": 1, "pp": 1, "zero": 3}
    sharded = memory(settled(**common, num_devices=ranks)).memory.components
    total = found(model=model, task="finetune").parameters.total
    assert sharded["optimizer_bytes"] * ranks == pytest.approx(8 * total, rel=0.02)
    assert sharded["weights_bytes"] * ranks == pytest.approx(4 * total, rel=0.02)


@given(st.sampled_from(("llama-2-7b", "llama-3-8b")), st.sampled_from((2, 4, 8)))
def test_tensor_parallel_divides_weights_and_work(model: str, tp: int) -> None:
    """With one data-parallel rank."""
    common = {"model": model, "task": "finetune", "pp": 1, "zero": 0, "engine": "megatron"}
    whole, part = (memory(settled(**common, num_devices=n, tp=n)).memory.components for n in (1, tp))
    assert part["weights_bytes"] * tp == pytest.approx(whole["weights_bytes"], rel=0.05)
    assert part["optimizer_bytes"] * tp == pytest.approx(whole["optimizer_bytes"], rel=0.05)


def test_published_gpt3_on_1024_a100() -> None:
    """Narayanan 2021, table 2: tensor parallel 8, 16 stages, batch 1536: 30.8 s an iteration."""
    request = {
        "model": "gpt3-175b",
        "device": "1024xa100-sxm-80gb",
        "tp": 8,
        "pp": 16,
        "global_batch": 1536,
        "seq_len": 2048,
    }
    answer = found(**request, engine="megatron", checkpointing="full", precision="fp16-mixed")
    assert isinstance(answer.time, TrainingTime)
    assert answer.time.step_seconds.low <= 30.8 <= answer.time.step_seconds.high
    assert answer.memory.verdict != "exceeds"


@pytest.mark.parametrize(("tp", "ep"), [(8, 8), (4, 8), (8, 1), (2, 4), (1, 8)])
@pytest.mark.parametrize("task", ["finetune", "lora", "qlora", "inference"])
def test_devices_together_never_hold_less_than_the_model(task: str, tp: int, ep: int) -> None:
    """Experts that take the ranks of tensor parallelism are whole there; frozen ones are divided just once."""
    answer = found(model="mixtral-8x7b", num_devices=8, task=task, tp=tp, pp=1, ep=ep)
    held = 8 * answer.memory.components["weights_bytes"]
    least = {"finetune": 2.0, "lora": 1.0, "qlora": 0.25, "inference": 1.0}[task]
    assert held >= least * answer.memory.weights_file_bytes * 0.999


def test_layers_on_the_host_are_there_once_however_many_devices() -> None:
    asked = {"model": "llama-3-70b", "task": "inference", "gpu_layers": 5, "engine": "llama.cpp"}
    one, eight = (found(**asked, num_devices=n).memory.host_bytes * n for n in (1, 8))
    assert eight == pytest.approx(one, rel=0.01)

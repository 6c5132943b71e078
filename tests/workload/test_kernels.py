"""Whose kernels a training step runs, and what follows for its memory."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.evidence.measurements import measurement_files, read_measurements, settings_of
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.explain import explanation
from llmfeas.memory.peak import memory
from llmfeas.memory.training import training_memory
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution
from llmfeas.workload.kernels import runs_compiled, runs_fused, runs_patched, traits_of
from training_scenarios import scenario

LIGER = "pytorch-liger"
MPT = {"model": "mpt-7b", "device": "h100-sxm", "micro_batch": 2, "seq_len": 2048}


@pytest.mark.parametrize("engine", ["megatron", "nemo", "maxtext", "llm.c"])
def test_engines_with_kernels_bring_them_to_every_job(engine: str) -> None:
    assert runs_fused(scenario(engine=engine, num_devices=1))
    assert runs_fused(scenario(engine=engine, num_devices=8, task="finetune"))


@pytest.mark.parametrize("task", ["pretrain", "finetune", "lora"])
def test_a_compiled_job_runs_the_public_code_compiled(task: str) -> None:
    compiled = scenario(engine="pytorch-compile", task=task, num_devices=1)
    assert runs_compiled(compiled)
    assert not runs_fused(compiled)
    assert traits_of(scenario(**MPT, engine="pytorch-compile")).eager_only


@pytest.mark.parametrize("num_devices", [1, 8])
def test_a_librarys_kernels_lie_in_the_public_code(num_devices: int) -> None:
    asked = scenario(model="llama-3.1-8b", engine="pytorch-liger", task="finetune", num_devices=num_devices)
    assert runs_patched(asked)
    assert not runs_fused(asked)
    assert not runs_compiled(asked)
    assert traits_of(asked).norm == "cast-scale"


def test_a_family_that_the_library_does_not_know_is_computed_as_public_code_and_that_is_said() -> None:
    asked = {"model": "gpt2", "device": "rtx-4090", "task": "finetune", "micro_batch": 1}
    found = {engine: estimate(resolution({**asked, "engine": engine}, catalog())) for engine in ("pytorch", LIGER)}
    assert found[LIGER].memory.peak_bytes.expected == found["pytorch"].memory.peak_bytes.expected
    assert any("no code of the engine" in warning.message for warning in found[LIGER].warnings)


def test_published_runs_with_ligers_kernels_are_not_refused_and_their_peaks_are_met() -> None:
    measured = read_measurements(measurement_files())[0]
    rows = [row for row in measured if row.scenario.get("engine") == LIGER and row.measured.fits is not False]
    rows = [row for row in rows if row.framework != "axolotl"]  # with a loss of its own (Cut Cross Entropy)
    assert len(rows) >= 40
    for row in rows:
        asked = resolution(settings_of(row), catalog()).scenario
        found = memory(asked).memory
        assert found.verdict != "exceeds", row.id
        expected = training_memory(asked).bytes if row.memory_kind == "allocated" else found.peak_bytes.expected
        if row.measured.peak_bytes:
            assert expected == pytest.approx(row.measured.peak_bytes, rel=0.125), row.id


def test_blocks_inputs_lie_on_the_host_under_an_engine_that_streams_them() -> None:
    asked = {"model": "llama-3.1-8b", "task": "qlora", "quant": "nf4", "checkpointing": "full", "seq_len": 8192}
    one, many = (training_memory(scenario(**asked, engine="unsloth", micro_batch=batch)) for batch in (1, 2))
    assert one.host_bytes == 32 * 2 * 4096 * 8192
    assert many.host_bytes == 2 * one.host_bytes
    plain = training_memory(scenario(**asked, engine="pytorch"))
    assert plain.host_bytes == 0
    assert one.bytes < plain.bytes / 2


def test_where_the_host_has_no_memory_of_its_own_nothing_is_streamed() -> None:
    asked = {"model": "llama-3.1-8b", "task": "qlora", "engine": "unsloth", "seq_len": 8192, "micro_batch": 1}
    card, board = (resolution({**asked, "device": name}, catalog()).scenario for name in ("rtx-4090", "dgx-spark"))
    assert training_memory(board).host_bytes == 0
    assert training_memory(board).bytes > training_memory(card).bytes


def test_a_framework_for_adapters_trains_16_bit_weights_in_full() -> None:
    asked = {"model": "llama-3.1-8b", "task": "finetune", "precision": "bf16-mixed", "seq_len": 512, "micro_batch": 1}
    held = training_memory(scenario(**asked, engine="unsloth", checkpointing="full")).components
    assert held["weights_bytes"] == pytest.approx(2 * 8.03e9, rel=0.01)
    assert held["optimizer_bytes"] == pytest.approx(4 * 8.03e9, rel=0.01)


def test_compiling_spares_most_activations_and_logits() -> None:
    public, compiled = (
        training_memory(
            scenario(model="gpt2", device="rtx-4090", micro_batch=16, seq_len=1024, engine=engine)
        ).components
        for engine in ("pytorch", "pytorch-compile")
    )
    held = ("activations_bytes", "logits_bytes")
    assert sum(compiled[name] for name in held) < sum(public[name] for name in held) / 2


def test_a_compiled_backward_holds_two_sets_of_gradients_where_they_accumulate() -> None:
    asked = {"model": "gpt2-xl", "micro_batch": 1, "global_batch": 2, "seq_len": 256}
    one = 4 * 1.5576e9
    for engine, sets in (("pytorch", 1), ("pytorch-compile", 2)):
        held = training_memory(scenario(**asked, engine=engine)).components["gradients_bytes"]
        assert held == pytest.approx(sets * one, rel=0.06)


@pytest.mark.parametrize("task", ["finetune", "lora", "qlora"])
def test_fine_tuning_in_pytorch_runs_public_code(task: str) -> None:
    assert not runs_fused(scenario(task=task, num_devices=8, zero=3))


def test_pre_training_in_pytorch_runs_in_a_framework_once_it_is_divided() -> None:
    assert not runs_fused(scenario(num_devices=1))
    assert not runs_fused(scenario(num_devices=8, zero=0, tp=1, pp=1))
    assert runs_fused(scenario(num_devices=8, zero=3))
    assert runs_fused(scenario(num_devices=8, zero=0, tp=8))


def test_an_engine_that_nobody_described_is_a_framework() -> None:
    assert runs_fused(scenario(engine="my-trainer", num_devices=8, zero=3))
    assert not runs_fused(scenario(engine="my-trainer", num_devices=1))


def test_code_without_fused_attention_gets_it_from_a_framework() -> None:
    alone, divided = scenario(**MPT, num_devices=1), scenario(**MPT, num_devices=8, zero=3)
    assert traits_of(alone).eager_only
    assert not traits_of(divided).eager_only
    held = ("activations_bytes", "logits_bytes")
    public, fused = (training_memory(each).components for each in (alone, divided))
    assert sum(fused[name] for name in held) < sum(public[name] for name in held) / 2


def settled(**asked: object) -> Scenario:
    return resolution({"model": "gpt2-xl", "task": "pretrain", "num_devices": 8, **asked}, catalog()).scenario


def test_the_largest_batches_that_published_runs_found_are_not_refused() -> None:
    """LLM Foundry looked for the largest micro-batch that fits its cards of 40 or 80 GB, for every size and length."""
    rows, errors = read_measurements([file for file in measurement_files() if file.stem == "training"])
    ran = [row for row in rows if "foundry" in row.group]
    refused = [
        row.id for row in ran if memory(resolution(settings_of(row), catalog()).scenario).memory.verdict == "exceeds"
    ]
    assert not errors
    assert len(ran) > 100
    assert refused == []


def test_flash_kernels_of_frameworks_need_bf16_units() -> None:
    assert settled(engine="megatron", device="v100-sxm2-32gb").attention == "eager"
    assert settled(engine="megatron", device="a100-sxm-80gb").attention == "flash"
    assert settled(engine="pytorch", device="v100-sxm2-32gb").attention == "flash"


def test_the_derivation_says_whose_kernels_run() -> None:
    asked = {"model": "llama-2-7b", "device": "h100-sxm", "num_devices": 8}
    terms = explanation(estimate(resolution(asked, catalog())))
    peak = next(term for term in terms if term.quantity == "memory.peak_bytes")
    assert "kernels: fused" in peak.text

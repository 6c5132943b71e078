"""What public code moves and launches beside its products: adapters, merged stacks, a loss in parts, attention."""

from __future__ import annotations

import re
import statistics
from dataclasses import replace
from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.evidence.compare import published_tokens_per_second
from llmfeas.evidence.measurements import measurement_files, read_measurements
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution
from llmfeas.timing.launches import launches_of
from llmfeas.timing.rates import flash_of
from llmfeas.timing.step import host_seconds, sharpness, step_parts
from llmfeas.timing.training import training_time
from llmfeas.timing.work import work_of
from llmfeas.workload.kernels import widens_experts
from llmfeas.workload.parameters import adapted_widths

LORA: dict[str, Any] = {"model": "llama-3.1-8b", "device": "h200", "task": "lora", "seq_len": 2048, "micro_batch": 1}


def settled(**asked: Any) -> Scenario:
    return resolution({**LORA, **asked}, catalog()).scenario


def parts(**asked: Any) -> dict[str, float]:
    return step_parts(settled(**asked))


def test_adapters_of_public_code_read_copies_of_their_input_and_scale_their_output() -> None:
    widths = adapted_widths(settled())
    assert widths.matrices == 7 * 32
    assert widths.inputs == 32 * (6 * 4096 + 14336)
    assert widths.outputs == 32 * (2 * 4096 + 2 * 1024 + 2 * 14336 + 4096)
    whole, attention = parts()["adapters"], parts(lora_targets="attention")["adapters"]
    assert 0 < attention < whole / 2
    assert parts(micro_batch=4)["adapters"] == pytest.approx(4 * whole)
    assert parts(lora_kind="dora")["adapters"] > 1.5 * whole


def test_a_base_in_few_bits_and_a_framework_take_no_copies() -> None:
    assert parts(task="qlora")["adapters"] < 0.7 * parts()["adapters"]
    for engine in ("unsloth", "nemo"):
        assert parts(engine=engine)["adapters"] == 0
    assert parts(task="finetune")["adapters"] == 0


def host(scenario: Scenario) -> float:
    return host_seconds(scenario, work_of(scenario))


def test_every_kernel_keeps_the_host_busy_those_of_adapters_and_of_passes_that_are_run_again_too() -> None:
    plain, adapted, again = (
        settled(task=task, checkpointing=kind)
        for task, kind in (("finetune", "none"), ("lora", "none"), ("lora", "full"))
    )
    each = plain.tables.efficiency.value("training.host.launch")
    for scenario in (plain, adapted, again):
        assert host(scenario) == pytest.approx(each * launches_of(scenario))
    assert 1.3 < launches_of(adapted) / launches_of(plain) < 2.5
    assert 1.2 < launches_of(again) / launches_of(adapted) < 1.5
    columns = settled(model="bge-large-en-v1.5", task="embed", seq_len=512)
    assert launches_of(columns) == pytest.approx(
        2 * launches_of(replace(columns, loss=None, task="finetune")), rel=0.02
    )


def test_the_walk_makes_a_tensor_for_each_kernel_that_a_profile_shows() -> None:
    """But for those that sort tokens to experts, and of loops, a tenth to a fifth fewer."""
    named = [path for path in measurement_files() if path.name.startswith("own_")]
    ratios: dict[str, float] = {}
    for row in read_measurements(named)[0]:
        kernels = re.search(r"(\d+) kernels of", row.notes or "")
        settings = {**row.scenario, "model": str(row.folder / str(row.scenario["model"]))}
        settings = settings if str(row.scenario["model"]).endswith(".json") else row.scenario
        scenario = resolution(settings, catalog()).scenario
        sums = work_of(scenario).sums
        if kernels and not row.variant and not sums.experts and not sums.loop_tokens and not scenario.response_length:
            ratios[row.id] = launches_of(scenario) / int(kernels[1])
    assert len(ratios) > 15
    assert 0.8 < statistics.median(ratios.values()) < 0.95
    assert {name: ratio for name, ratio in ratios.items() if not 0.55 < ratio < 1.05} == {}


def test_stacks_are_copied_twice_in_each_forward_pass_where_adapters_are_merged_into_them() -> None:
    olmoe: dict[str, Any] = {"model": "olmoe-1b-7b", "seq_len": 1024}
    again, once = (parts(checkpointing=kind, **olmoe)["merging"] for kind in ("full", "none"))
    assert once < again < 2 * once
    assert again > 0.05


def test_a_loss_in_parts_reads_a_large_vocabulary_again_and_again_whatever_the_tokens() -> None:
    small: dict[str, Any] = {"model": "qwen2.5-1.5b", "task": "finetune", "seq_len": 1024, "engine": "pytorch-liger"}
    one, two, four = (parts(micro_batch=batch, **small)["streaming"] for batch in (1, 2, 4))
    assert four - two == pytest.approx(2 * (two - one))
    fixed = 2 * one - two
    assert 0.05 < fixed < 0.15
    scenario = settled(**{**small, "engine": "pytorch"})
    assert work_of(scenario).head_bytes == 0


def test_public_code_of_today_runs_the_maker_s_attention_where_it_prefers_that() -> None:
    assert flash_of(settled()) == "vendor"
    assert flash_of(settled(transformers="4")) != "vendor"
    assert flash_of(settled(device="b200")) == "vendor"
    assert flash_of(settled(task="pretrain")) != "vendor"
    assert flash_of(settled(engine="unsloth")) != "vendor"
    assert flash_of(settled(engine="torchtitan", task="pretrain", device="b200")) == "vendor"
    assert flash_of(settled(engine="torchtitan-2024", task="pretrain")) != "vendor"


def test_a_host_that_reads_no_counts_of_tokens_runs_beside_the_kernels_of_experts() -> None:
    """One whose experts run one after the other, or lie on other devices, waits for them."""

    def exponent(**asked: Any) -> float:
        found = settled(**{"model": "qwen3-30b-a3b", "lora_targets": "attention", "micro_batch": 4, **asked})
        return sharpness(found, work_of(found))

    dense = exponent(model="llama-3.1-8b")
    assert exponent(transformers="5") == dense
    loops, sent = exponent(transformers="4"), exponent(num_devices=8, engine="megatron", tp=1, pp=1, ep=8)
    assert loops == sent < dense


def test_a_kernel_with_sinks_is_the_maker_s() -> None:
    asked = {"model": "gpt-oss-20b", "transformers": "5", "device": "a100-sxm-80gb"}
    assert flash_of(settled(**asked, attention="flash")) == "vendor" != flash_of(settled(**asked))


def test_a_step_of_pairs_has_the_tokens_of_both() -> None:
    rows, _ = read_measurements([path for path in measurement_files() if path.name == "own_h200.yaml"])
    row = next(row for row in rows if "dpo" in row.id)
    settings = {**row.scenario, "model": str(row.folder / str(row.scenario["model"]))}
    scenario = resolution(settings, catalog()).scenario
    time, speed = training_time(scenario), published_tokens_per_second(row, scenario)
    assert speed is not None and row.measured.step_seconds is not None
    assert time.step_seconds.expected * time.tokens_per_second.expected == pytest.approx(
        speed * row.measured.step_seconds
    )


def test_recurrences_that_are_written_out_launch_a_loop_over_the_sequence() -> None:
    """LoRA of Qwen3.5 4B over 2048 tokens took 2.4 s a step on an H100, 75,543 kernels (own_h100.yaml)."""
    asked: dict[str, Any] = {"model": "qwen3.5-4b", "device": "h100-sxm"}
    work = work_of(settled(**asked))
    assert work.turns == 2048 / 64
    assert work.turns * 3 * work.sums.loop_launches * 4 / 3 == pytest.approx(64_000, rel=0.02)
    assert work_of(settled(**asked, seq_len=8192)).turns == 4 * work.turns
    assert work_of(settled(**asked, engine="unsloth")).turns == 0
    assert work_of(settled(model="qwen3-4b")).turns == 0
    assert 1.5 < sum(parts(**asked).values()) < 3.5


def test_grouped_products_take_no_part_in_autocast() -> None:
    """A step of Granite 3.0 1B-A400M in bf16-mixed ran its experts in fp32 on an H100, one of OLMoE in bf16 did not."""
    granite: dict[str, Any] = {
        "model": "granite-3.0-1b-a400m",
        "device": "h100-sxm",
        "task": "finetune",
        "seq_len": 1024,
    }
    mixed, narrow = (settled(**granite, precision=kind) for kind in ("bf16-mixed", "bf16"))
    assert widens_experts(mixed)
    assert not widens_experts(narrow)
    assert not widens_experts(settled(**{**granite, "task": "lora"})), "adapters leave the base in 16 bits"
    assert not widens_experts(settled(**granite, precision="bf16-mixed", transformers="4")), (
        "each was a product of its own"
    )
    divided = settled(**granite, precision="bf16-mixed", num_devices=2, zero=3)
    assert not widens_experts(divided), "FSDP gathers 16 bits"
    assert step_parts(mixed)["matrix"] > 3 * step_parts(narrow)["matrix"]


def test_a_compiled_model_is_not_launched_layer_by_layer() -> None:
    """Qwen2.5 1.5B with 4 x 1024 tokens took 0.127 s compiled and 0.168 s as it is, on an H100."""
    asked: dict[str, Any] = {"model": "qwen2.5-1.5b", "device": "h100-sxm", "task": "finetune", "seq_len": 1024}
    plain, compiled = (
        sum(parts(**asked, micro_batch=4, engine=name).values()) for name in ("pytorch", "pytorch-compile")
    )
    assert 0.6 * plain < compiled < 0.9 * plain


def test_frameworks_launch_their_layers_from_python_unless_graphs_record_them() -> None:
    asked = {"model": "qwen3-8b", "task": "finetune", "num_devices": 4, "tp": 4, "pp": 1, "micro_batch": 1}
    plain, tuned = (host(settled(**asked, engine=engine)) for engine in ("megatron", "nemo-tuned"))
    assert plain > 4 * tuned > 0


def test_magnitudes_launch_more_than_pairs() -> None:
    asked: dict[str, Any] = {"model": "qwen2.5-1.5b", "device": "h100-sxm", "seq_len": 1024}
    pairs, magnitudes = (sum(parts(**asked, lora_kind=kind).values()) for kind in ("lora", "dora"))
    assert 1.5 * pairs < magnitudes < 4 * pairs


def added(**asked: Any) -> float:
    scenario = settled(model="gpt-oss-20b", device="8xh100-sxm", transformers="5", **asked)
    return work_of(scenario).added_biases


def test_gradients_of_biases_that_rows_picked_are_added_one_after_the_other() -> None:
    """24 layers, four experts a token, whose biases are as wide as two halves and the stream, 2880 each."""
    assert added(task="finetune") == 24 * 4 * 3 * 2880
    assert added(task="lora") == 0, "frozen"
    assert added(task="finetune", engine="nemo") == 0, "a framework adds them in its products"
    looped = settled(model="gpt-oss-20b", device="8xh100-sxm", task="finetune", transformers="4")
    assert work_of(looped).added_biases == 0, "each expert adds up its own"


def test_a_stream_that_nothing_casts_is_multiplied_in_fp32() -> None:
    """A SmolLM2 360M in NF4 took 2.4 times as long on a T4 as in fp16 with 4096 tokens, 1.3 times with 512."""

    def slower(precision: str, length: int) -> float:
        ask = {"model": "smollm2-360m", "device": "t4", "task": "qlora", "seq_len": length, "precision": precision}
        prepared, plain = (sum(parts(**ask, engine=engine).values()) for engine in ("pytorch-kbit", "pytorch"))
        return prepared / plain

    assert slower("fp16", 4096) > 1.5 > slower("fp16-mixed", 4096)
    assert slower("fp16", 4096) > slower("fp16", 512)


def test_each_factor_is_a_unit_of_fsdp_in_the_trainer_of_release_4() -> None:
    def host(release: str, **asked: Any) -> float:
        scenario = settled(**{"device": "2xa100-sxm-80gb", "zero": 3, "transformers": release, **asked})
        return host_seconds(scenario, work_of(scenario))

    def added(**asked: Any) -> float:
        return host("4", **asked) - host("5", **asked)

    assert added() > added(lora_targets="attention") > 0.5
    assert added(device="a100-sxm-80gb", zero=0) == pytest.approx(0, abs=0.1)

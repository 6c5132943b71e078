"""What public code moves and launches beside its products: adapters, merged stacks, a loss in parts, attention."""

from __future__ import annotations

from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.evidence.compare import published_tokens_per_second
from llmfeas.evidence.measurements import measurement_files, read_measurements
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution
from llmfeas.timing.rates import flash_of, rates_of
from llmfeas.timing.step import host_seconds, step_parts
from llmfeas.timing.training import training_time
from llmfeas.timing.work import work_of
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


def test_every_adapted_projection_keeps_the_host_busy_and_so_does_a_forward_pass_that_is_run_again() -> None:
    def host(**asked: Any) -> float:
        scenario = settled(**asked)
        rates = rates_of(scenario)
        return host_seconds(scenario, rates, work_of(scenario, rates.tuned), sharded=False)

    none = host(task="finetune", checkpointing="none")
    assert host(checkpointing="none") == pytest.approx((1 + 7 * 0.09) * none)
    assert host(checkpointing="full") == pytest.approx(4 / 3 * host(checkpointing="none"))


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
    assert work_of(scenario, False).head_bytes == 0


def test_public_code_of_today_runs_the_maker_s_attention_where_it_prefers_that() -> None:
    assert flash_of(settled()) == "vendor"
    assert flash_of(settled(transformers="4")) != "vendor"
    assert flash_of(settled(device="b200")) != "vendor"
    assert flash_of(settled(task="pretrain")) != "vendor"
    assert flash_of(settled(engine="unsloth")) != "vendor"


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

"""Memory on several devices: what sharding, engines, pipelines and offloading leave on a rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmfeas import estimate
from llmfeas.feasibility.long_run import checkpoint_bytes
from llmfeas.memory.training import TensorMemory, fullest_rank, training_memory, training_plan
from llmfeas.memory.training_layout import packed_bytes
from llmfeas.scenario import Scenario
from llmfeas.timing.step import asked_of, device_links_of, zero_seconds
from llmfeas.workload.parameters import parameters
from training_scenarios import parts, scenario

GB = 1e9
LLAMA: dict[str, Any] = {"model": "llama-2-7b", "micro_batch": 1, "global_batch": 64, "seq_len": 4096, "num_devices": 8}
N = 6_738_415_616


def found(**changes: Any) -> TensorMemory:
    return training_memory(scenario(**{**LLAMA, **changes}))


@pytest.mark.parametrize("engine", ["pytorch", "deepspeed", "megatron"])
def test_each_stage_of_sharding_leaves_less(engine: str) -> None:
    peaks = [found(zero=zero, engine=engine).bytes for zero in range(4)]
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[0] > peaks[1]


def test_full_sharding_leaves_a_share_of_sixteen_bytes_a_parameter() -> None:
    parts_of = found(zero=3).components
    held = parts_of["weights_bytes"] + parts_of["gradients_bytes"] + parts_of["optimizer_bytes"]
    assert held == pytest.approx(16 * N / 8, rel=0.01)


def test_megatron_shards_the_optimizer_and_the_master_weights_only() -> None:
    components = found(zero=1, engine="megatron").components
    assert components["weights_bytes"] == pytest.approx(2 * N, rel=0.01)
    assert components["gradients_bytes"] == pytest.approx(4 * N, rel=0.01)
    assert components["optimizer_bytes"] == pytest.approx(12 * N / 8, rel=0.01)


def test_sequence_parallelism_divides_what_tensor_parallelism_leaves_whole() -> None:
    whole = found(tp=4, zero=1, engine="pytorch", precision="bf16").components["activations_bytes"]
    spread = found(tp=4, zero=1, engine="megatron").components["activations_bytes"]
    alone = found(zero=1, engine="megatron").components["activations_bytes"]
    assert spread == pytest.approx(alone / 4, rel=0.02)
    assert alone / 4 < whole < alone


def test_sequence_parallelism_divides_what_is_kept_to_run_layers_again() -> None:
    """Megatron-LM takes both together; Megatron-DeepSpeed was forked before there was any."""

    def kept(engine: str, tp: int) -> float:
        layers = (
            found(checkpointing="full", zero=1, engine=engine, tp=tp, seq_len=length).components["activations_bytes"]
            for length in (4096, 8192)
        )
        less, more = layers
        return more - less

    assert kept("megatron", 4) < kept("megatron", 1) / 3
    assert kept("megatron-deepspeed", 4) > kept("megatron-deepspeed", 1) / 2


ADAPTED: dict[str, Any] = {"task": "lora", "lora_rank": 16, "checkpointing": "none", "zero": 1}


def test_tuned_recipes_store_what_adapters_leave_frozen_in_one_byte_beside_8_bit_products() -> None:
    weights = {
        (engine, precision): found(**ADAPTED, engine=engine, precision=precision).components["weights_bytes"]
        for engine in ("nemo", "nemo-tuned")
        for precision in ("bf16-mixed", "fp8-mixed")
    }
    tables = 2 * 32000 * 4096
    assert weights.pop(("nemo-tuned", "fp8-mixed")) == pytest.approx(N + tables, rel=0.02)
    assert list(weights.values()) == pytest.approx([2 * N] * 3, rel=0.02)


def test_adapters_that_are_part_of_the_model_train_as_it_does() -> None:
    few, many = (
        found(**{**ADAPTED, "lora_rank": rank}, num_devices=1, engine="megatron", precision="bf16-mixed").components
        for rank in (16, 32)
    )
    added = {name: many[name] - few[name] for name in ("weights_bytes", "optimizer_bytes")}
    assert added["optimizer_bytes"] == pytest.approx(6 * added["weights_bytes"], rel=1e-6)


def test_sequence_parallelism_reaches_adapters_that_are_part_of_the_model() -> None:
    own, beside = (
        found(**ADAPTED, tp=4, engine=engine, precision="bf16").components["activations_bytes"]
        for engine in ("megatron", "maxtext")
    )
    assert own < beside


def test_tuned_recipes_reduce_gradients_in_16_bits() -> None:
    default, tuned = (found(zero=1, engine=engine).components for engine in ("nemo", "nemo-tuned"))
    assert tuned["gradients_bytes"] == pytest.approx(default["gradients_bytes"] / 2, rel=1e-6)
    assert tuned["activations_bytes"] == default["activations_bytes"]


@pytest.mark.parametrize("task", ["pretrain", "lora"])
def test_activations_keep_their_inputs_in_8_bits_where_products_run_in_them(task: str) -> None:
    for precision, least in (("fp8-mixed", 0.05), ("bf16-mixed", 0.0)):
        asked = {**ADAPTED, "task": task, "precision": precision}
        whole, narrow = (
            found(**asked, engine=engine).components["activations_bytes"]
            for engine in ("nemo-tuned", "nemo-fp8-activations")
        )
        assert narrow < (1 - least) * whole if least else narrow == whole


def test_transformer_engine_keeps_fp32_weights_with_8_bit_copies_and_8_bit_inputs() -> None:
    one = {"num_devices": 1, "micro_batch": 8, "global_batch": 8}
    components, wide = (
        found(**one, engine="transformer-engine", precision=precision).components
        for precision in ("fp8-mixed", "bf16-mixed")
    )
    assert components["weights_bytes"] == pytest.approx((4 + 2) * N, rel=0.01)
    assert components["optimizer_bytes"] == pytest.approx(8 * N, rel=0.01)
    assert components["activations_bytes"] < 0.9 * wide["activations_bytes"]
    public = found(**one, engine="pytorch", precision="fp8-mixed").components
    assert components["activations_bytes"] < 0.7 * public["activations_bytes"]


def test_the_first_stage_of_a_pipeline_keeps_its_micro_batches_in_flight() -> None:
    deep = found(pp=4, tp=2, zero=1, engine="megatron")
    shallow = found(pp=4, tp=2, zero=1, engine="megatron", global_batch=1)
    interleaved = found(pp=4, tp=2, zero=1, engine="megatron", interleave=2)
    assert deep.components["activations_bytes"] > 2.5 * shallow.components["activations_bytes"]
    assert interleaved.components["activations_bytes"] > deep.components["activations_bytes"]


def test_a_sharded_stage_of_a_pipeline_is_gathered_once_a_step_and_its_gradients_add_up_whole() -> None:
    stage = found(pp=4, zero=3, engine="torchtitan").components
    assert 2 * N / 4 <= stage["workspace_bytes"] < 1.4 * 2 * N / 4
    assert stage["gradients_bytes"] == pytest.approx(4 * N / 4, rel=0.1)
    assert stage["weights_bytes"] == pytest.approx(4 * N / 8, rel=0.1)


def test_context_parallelism_divides_tokens() -> None:
    whole, half = found(zero=3, micro_batch=8), found(zero=3, micro_batch=8, cp=2)
    for name in ("activations_bytes", "logits_bytes"):
        assert half.components[name] == pytest.approx(whole.components[name] / 2, rel=0.02)


def test_experts_divide_over_their_ranks() -> None:
    spread = found(model="mixtral-8x7b", ep=8, zero=1).components["weights_bytes"]
    whole = found(model="mixtral-8x7b", zero=1).components["weights_bytes"]
    assert spread < whole / 4


def test_offloading_moves_bytes_to_the_host() -> None:
    device, host, all_of_it = (found(num_devices=1, offload=where) for where in ("none", "optimizer", "all"))
    assert device.host_bytes == 0
    assert host.components["optimizer_bytes"] == 0
    assert host.host_bytes == pytest.approx(12 * N, rel=0.01)
    assert all_of_it.bytes < host.bytes < device.bytes
    assert all_of_it.host_bytes == pytest.approx(16 * N, rel=0.01)


def test_a_four_bit_base_takes_about_half_a_byte_a_parameter() -> None:
    found_in_four_bits = found(task="qlora", quant="nf4", num_devices=1, checkpointing="full")
    in_sixteen = found(task="lora", num_devices=1, checkpointing="full")
    assert 3.4 * GB < found_in_four_bits.components["weights_bytes"] < 4.4 * GB
    assert found_in_four_bits.bytes < in_sixteen.bytes


def test_checkpointing_costs_least_in_full_and_less_in_part() -> None:
    none, selective, full = (found(zero=3, checkpointing=kind).bytes for kind in ("none", "selective", "full"))
    assert full < selective < none


SCENARIOS = st.builds(
    lambda **changes: scenario(**{**LLAMA, "global_batch": 64 * changes["micro_batch"], **changes}),
    model=st.sampled_from(["gpt2", "llama-3.2-1b", "qwen3-30b-a3b", "gemma-2-2b", "deepseek-v2-lite"]),
    micro_batch=st.integers(1, 32),
    seq_len=st.sampled_from([128, 512, 1024]),
    precision=st.sampled_from(["fp32", "tf32", "bf16-mixed", "fp16-mixed", "bf16", "fp8-mixed"]),
    task=st.sampled_from(["pretrain", "finetune", "lora", "qlora"]),
    quant=st.just("nf4"),
    optimizer=st.sampled_from(["adamw", "adamw-foreach", "adamw-8bit", "adafactor", "sgd", "lion", "muon"]),
    checkpointing=st.sampled_from(["none", "selective", "full"]),
    attention=st.sampled_from(["flash", "eager"]),
    engine=st.sampled_from(["pytorch", "megatron", "deepspeed", "mlx"]),
    zero=st.integers(0, 3),
    tp=st.sampled_from([1, 2]),
    pp=st.sampled_from([1, 2]),
    cp=st.sampled_from([1, 2]),
    offload=st.sampled_from(["none", "optimizer", "all"]),
)


@settings(max_examples=60, deadline=None)
@given(SCENARIOS)
def test_components_are_never_negative_and_add_up(asked: Scenario) -> None:
    memory = training_memory(asked)
    assert parts(memory) == pytest.approx(memory.bytes, rel=1e-9)
    assert min(memory.components.values()) >= 0
    assert memory.moment != memory.runner_up


@settings(max_examples=40, deadline=None)
@given(SCENARIOS)
def test_a_larger_batch_or_a_longer_sequence_never_takes_less(asked: Scenario) -> None:
    here = training_memory(asked).bytes
    batch = replace(asked, micro_batch=asked.micro_batch + 1, global_batch=64 * (asked.micro_batch + 1))
    if asked.micro_batch > 1:
        assert training_memory(batch).bytes >= here
    assert training_memory(replace(asked, seq_len=asked.seq_len + 64)).bytes >= here


@pytest.mark.parametrize(
    ("quant", "per_weight"), [("nf4", 0.516), ("int8", 1.0), ("gptq-int4", 0.52), ("awq-int4", 0.52)]
)
def test_a_frozen_base_is_gathered_as_it_is_stored(quant: str, per_weight: float) -> None:
    """Two layers, and the same over the link, in the format's own size."""
    asked = {**LLAMA, "task": "qlora", "quant": quant, "checkpointing": "full", "lora_rank": 1, "devices_per_node": 8}
    whole, divided = (scenario(**asked, zero=zero) for zero in (2, 3))
    assert packed_bytes(divided) == pytest.approx(per_weight, rel=0.01)
    held, inventory = training_plan(divided).ranks[0].held, training_plan(divided).ranks[0].moments.inventory
    outside = 2.0 * inventory.outside_elements
    assert held.gathered == pytest.approx(2 * inventory.layer_elements * per_weight + outside, rel=0.01)
    assert training_plan(whole).ranks[0].held.gathered == 0
    links, shard = replace(device_links_of(divided), hop_seconds=0.0), 1e9
    moved = zero_seconds(divided, replace(asked_of(divided), gathered=shard), links) * links.ring(8)
    assert moved == pytest.approx(2 * shard * 7 / 8 * per_weight, rel=0.01)


@pytest.mark.parametrize(("engine", "pp"), [("megatron", 8), ("pytorch", 40)])
def test_a_stage_of_a_pipeline_may_train_nothing(engine: str, pp: int) -> None:
    """Adapters of the attention alone, in a model of few such layers: a stage of recurrences runs no step back."""
    asked = {"num_devices": 8 * pp, "task": "lora", "lora_targets": "attention", "engine": engine, "zero": 0}
    hybrid = scenario(**{**LLAMA, **asked, "model": "granite-4.0-h-small", "pp": pp})
    whole = scenario(**{**LLAMA, **asked, "model": "granite-4.0-h-small", "pp": 1})
    assert 0 < training_memory(hybrid).bytes < training_memory(whole).bytes
    assert checkpoint_bytes(hybrid) == pytest.approx(checkpoint_bytes(whole), rel=0.01)


def test_a_base_in_few_bits_is_in_the_format_that_the_engine_has() -> None:
    """MLX knows no nf4: 4.5 bits a weight, the token table and the head too, as mlx_lm.convert writes them."""
    asked = {"model": "llama-3.1-8b", "task": "qlora", "device": "m4-max-40c", "seq_len": 512, "micro_batch": 1}
    found = estimate(**asked, engine="mlx")
    assert found.memory.components["weights_bytes"] == pytest.approx(4.5 / 8 * 8.03e9, rel=0.05)
    assert not any("own 4-bit format" in note.message for note in found.verdict.reasons)
    assert found.verdict.software == "supported"


def test_a_stage_of_experts_behind_dense_layers_can_be_the_fullest() -> None:
    """DeepSeek V3 begins with three dense layers, so that the first two of 32 stages have no experts."""
    deep = scenario(
        model="deepseek-v3", device="b200", num_devices=64, engine="megatron", tp=2, pp=32, zero=1, seq_len=512
    )
    stage = fullest_rank(deep).stage
    assert (stage.first, stage.layers) == (3, 2)
    of_experts = 3 * 7168 * 2048 * 257 * stage.layers
    assert training_memory(deep).bytes > 18 * of_experts / 2


@pytest.mark.parametrize("model", ["deepseek-v3", "glm-4.5", "jamba-large-1.6", "llama-4-maverick", "gpt-oss-120b"])
@pytest.mark.parametrize(("tp", "pp", "ep"), [(2, 16, 1), (1, 16, 4), (4, 8, 4)])
def test_the_fullest_stage_holds_at_least_what_all_devices_hold_on_average(
    model: str, tp: int, pp: int, ep: int
) -> None:
    """16-bit weights, fp32 masters and moments of AdamW, whatever is behind which stage."""
    asked = {"model": model, "device": "b300", "num_devices": 512, "engine": "megatron", "tp": tp, "pp": pp, "ep": ep}
    divided = scenario(**asked, zero=1, seq_len=512, micro_batch=1)
    held = max(peak.weights + peak.optimizer for peak in (rank.peak(1, 512) for rank in training_plan(divided).ranks))
    assert held >= 14 * parameters(divided.model.architecture).total / 512

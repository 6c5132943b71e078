"""Layouts that nobody gave."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.memory.peak import memory, peak_bytes
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution
from llmfeas.walk.fold import walked_layers


def settled(model: str, device: str, **asked: object) -> Scenario:
    return resolution({"model": model, "device": device, **asked}, catalog()).scenario


@pytest.mark.parametrize("model", ["longcat-flash", "deepseek-v3"])
def test_a_count_that_is_no_power_of_two_finds_stages_that_divide_it(model: str) -> None:
    found = settled(model, "10000xh100-sxm")
    assert found.num_devices % (found.tp * found.pp) == 0
    assert found.pp & (found.pp - 1), "stages in powers of two alone do not fit"
    assert peak_bytes(found).expected <= 80 * 2**30


PIPED = {"engine": "megatron", "micro_batch": 1, "global_batch": 256, "tp": 4, "pp": 8}


def test_a_stage_is_cut_into_more_chunks_only_where_they_fit() -> None:
    assert settled("llama-3-70b", "64xh100-sxm", **PIPED, seq_len=2048).interleave == 5
    assert settled("llama-3-70b", "40xh100-sxm", **{**PIPED, "pp": 5}, seq_len=2048).interleave == 8
    kept = {**PIPED, "checkpointing": "none"}
    assert settled("llama-3-70b", "64xh100-sxm", **kept, seq_len=16384).interleave == 1
    assert settled("llama-3-70b", "64xh100-sxm", **kept, seq_len=16384, interleave=2).interleave == 2


def test_embedding_and_head_may_stand_where_a_layer_would_in_a_pipeline() -> None:
    piped = {"engine": "megatron", "pp": 32, "task": "pretrain"}
    assert settled("qwen3-235b-a22b", "256xh100-sxm", **piped, interleave=3).interleave == 3
    with pytest.raises(UsageError, match="the embedding and the head"):
        settled("qwen3-235b-a22b", "256xh100-sxm", **piped, interleave=4)


def test_a_plain_pipeline_cuts_a_local_batch_itself() -> None:
    piped = {"tp": 1, "pp": 4, "zero": 3, "seq_len": 8192, "task": "pretrain"}
    assert settled("llama-3-70b", "128xh100-sxm", engine="torchtitan", micro_batch=4, **piped).micro_steps == 1
    assert settled("llama-3-70b", "128xh100-sxm", engine="torchtitan", micro_batch=1, **piped).micro_steps == 16
    assert settled("llama-3-70b", "128xh100-sxm", engine="megatron", micro_batch=4, **piped).micro_steps == 16


@pytest.mark.parametrize(("said", "tp", "pp"), [({"cp": 2}, 4, 1), ({"ep": 8}, 8, 1), ({}, 8, 1)])
def test_serving_leaves_room_for_the_axes_that_were_given(said: dict[str, int], tp: int, pp: int) -> None:
    found = settled("mixtral-8x7b", "8xh100-sxm", task="inference", **said)
    assert (found.tp, found.pp) == (tp, pp)


def test_adapters_on_public_code_are_not_spread_by_tensors() -> None:
    ask = {"model": "llama-3-70b", "device": "8xrtx-4090"}
    for task in ("lora", "qlora"):
        assert resolution({**ask, "task": task}, catalog()).scenario.tp == 1
        assert resolution({**ask, "task": task, "tp": 2}, catalog()).scenario.tp == 2
    long = {**ask, "task": "lora", "engine": "megatron", "seq_len": 4096, "checkpointing": "none"}
    assert resolution(long, catalog()).scenario.tp > 1


@pytest.mark.parametrize(
    ("model", "device", "task"),
    [
        ("deepseek-v3", "2048xh800-sxm", "pretrain"),
        ("llama-3-70b", "512xh100-sxm", "pretrain"),
        ("qwen3-235b-a22b", "256xh100-sxm", "pretrain"),
        ("gpt-3-175b", "1024xa100-sxm-80gb", "pretrain"),
        # Fastest with several sequences at once, which the fastest with one leaves no room for.
        ("llama-3-70b", "2048xh100-sxm", "finetune"),
    ],
)
def test_no_simple_layout_that_fits_is_much_faster_than_the_one_chosen(model: str, device: str, task: str) -> None:
    ask = {"model": model, "device": device, "task": task, "engine": "megatron"}

    def speed(**layout: int) -> float:
        found = estimate(resolution({**ask, **layout}, catalog()))
        fits = found.memory.verdict != "exceeds"
        return found.speed.expected if fits else 0.0

    chosen = speed()
    assert chosen > 0
    for tp, pp in ((1, 1), (8, 1), (1, 16), (2, 4), (4, 4), (8, 8)):
        assert speed(tp=tp, pp=pp) < 1.06 * chosen, (tp, pp)


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_public_code_is_divided_no_more_than_memory_asks_for(zero: int) -> None:
    small = settled("gpt2", "8xmi300x", zero=zero, micro_batch=64)
    assert (small.tp, small.pp) == (1, 1)


@pytest.mark.parametrize("engine", ["llm.c", "llmq", "unsloth", "mlx"])
def test_who_divides_batches_alone_divides_no_layer(engine: str) -> None:
    ask = {"task": "finetune", "engine": engine}
    whole = settled("mixtral-8x7b", "8xh100-sxm", **ask)
    assert (whole.tp, whole.pp, whole.cp, whole.ep, whole.dp) == (1, 1, 1, 1, 8)
    assert memory(whole).memory.verdict == "exceeds"
    with pytest.raises(UsageError, match=f"--tp 2 --ep 4: {engine} divides batches"):
        settled("mixtral-8x7b", "8xh100-sxm", tp=2, ep=4, **ask)
    assert settled("mixtral-8x7b", "8xh100-sxm", tp=1, **ask).dp == 8


def test_a_layout_that_surely_fits_comes_before_a_tight_one_of_the_same_speed() -> None:
    ask = {"task": "lora", "engine": "megatron", "checkpointing": "full"}
    chosen = settled("llama-3-70b", "64xh100-sxm", **ask)
    assert memory(chosen).memory.verdict == "fits"
    tight = settled("llama-3-70b", "64xh100-sxm", tp=2, pp=1, **ask)
    assert memory(tight).memory.verdict == "tight"


@pytest.mark.parametrize(("task", "ep"), [("pretrain", 8), ("finetune", 1), ("lora", 1), ("qlora", 1)])
def test_fine_tuned_public_code_does_not_spread_experts(task: str, ep: int) -> None:
    assert settled("mixtral-8x7b", "8xh100-sxm", task=task).ep == ep
    assert settled("mixtral-8x7b", "8xh100-sxm", task=task, ep=2).ep == 2


@pytest.mark.parametrize(
    ("asked", "stage"),
    [
        ({"model": "gpt2", "device": "8xa100-sxm-80gb", "task": "pretrain"}, 0),
        ({"model": "gpt2-xl", "device": "8xa100-sxm-80gb", "task": "pretrain"}, 3),
        ({"model": "llama-3.1-8b", "device": "8xh100-sxm", "task": "lora"}, 0),
        ({"model": "llama-3.1-8b", "device": "8xh100-sxm", "task": "lora", "engine": "pytorch-liger"}, 0),
        ({"model": "llama-3.1-8b", "device": "8xh100-sxm", "task": "lora", "engine": "torchtune"}, 3),
        ({"model": "llama-3.1-8b", "device": "8xh100-sxm", "task": "finetune"}, 3),
        ({"model": "llama-3-70b", "device": "8xh100-sxm", "task": "lora"}, 3),
        ({"model": "llama-3.1-8b", "device": "8xh100-sxm", "task": "pretrain", "engine": "megatron"}, 1),
        ({"model": "llama-3.1-8b", "device": "2xrtx-3090", "task": "qlora"}, 0),
        ({"model": "llama-3.1-8b", "device": "2xrtx-3090", "task": "qlora", "offload": "all"}, 3),
        ({"model": "llama-3.1-405b", "device": "8xh100-sxm", "task": "qlora"}, 3),
        ({"model": "nemotron-nano-9b-v2", "device": "2xepyc-7351", "task": "qlora"}, 0),
        # what no launcher of these divides: bases of 8 bits, those of trl's objectives, copies on several processors
        ({"model": "olmo-2-13b", "device": "3xpro-w6800", "task": "qlora", "quant": "int8"}, 0),
        ({"model": "qwen3-32b", "device": "2xrtx-3090", "task": "dpo", "adapters": "qlora"}, 0),
        ({"model": "qwen2.5-1.5b", "device": "16xxeon-platinum-8370c", "task": "reward"}, 3),
    ],
)
def test_public_code_divides_where_it_must_or_where_weights_lie_in_main_memory(
    asked: dict[str, str], stage: int
) -> None:
    assert settled(**asked).zero == stage


def test_a_layout_that_cannot_run_is_refused_before_anything_is_walked() -> None:
    before = walked_layers.cache_info().misses
    with pytest.raises(UsageError, match="more stages than the 16 layers"):
        settled("pythia-1b", "h100-sxm", num_devices=1024, task="pretrain", pp=64)
    assert walked_layers.cache_info().misses == before


def test_a_sequence_is_spread_over_devices_where_it_is_too_long_for_one() -> None:
    long = {"task": "pretrain", "seq_len": 131072}
    found = settled("llama-3.1-405b", "16384xh100-sxm", **long)
    assert found.cp > 1 and found.num_devices % (found.tp * found.pp * found.cp) == 0
    assert peak_bytes(found).expected <= 80 * 2**30
    said = {"cp": found.cp // 2, "checkpointing": found.checkpointing}
    assert peak_bytes(settled("llama-3.1-405b", "16384xh100-sxm", **long, **said)).expected > 80 * 2**30


def test_a_sequence_stays_whole_where_it_fits_or_where_somebody_said_so() -> None:
    assert settled("llama-3.1-8b", "64xh100-sxm", task="pretrain", seq_len=8192).cp == 1
    assert settled("llama-3.1-405b", "16384xh100-sxm", task="pretrain", seq_len=131072, cp=1).cp == 1
    assert settled("llama-3.1-8b", "64xh100-sxm", task="finetune", seq_len=131072).cp == 1, "public code spreads none"


def speed_of(model: str, device: str, **asked: object) -> float:
    return estimate(resolution({"model": model, "device": device, **asked}, catalog())).speed.expected


def test_all_is_recomputed_where_that_spares_splitting_and_is_faster() -> None:
    asked = {"model": "llama-3.1-70b", "device": "64xh100-sxm", "task": "pretrain", "seq_len": 2048}
    found = settled(**asked)
    assert (found.tp, found.checkpointing, found.origins["checkpointing"]) == (1, "full", "derived")
    assert speed_of(**asked) > 1.05 * speed_of(**asked, checkpointing="none")
    assert settled(**{**asked, "model": "llama-3.1-8b"}).checkpointing == "none"
    assert settled(**{**asked, "task": "finetune"}).checkpointing == "none"


def test_experts_stay_in_a_node_where_that_is_faster() -> None:
    asked = {"model": "qwen3-235b-a22b", "device": "256xb200", "task": "pretrain", "seq_len": 4096}
    asked |= {"engine": "nemo-tuned", "global_batch": 8192}
    assert settled(**asked).ep == 8
    assert speed_of(**asked) > 1.2 * speed_of(**asked, ep=32)

"""Models that run one set of weights several times: counted once, run as often as their code runs them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hf_files import read_architecture as read

from llmfeas.catalog.store import catalog
from llmfeas.errors import DataError
from llmfeas.memory.training import training_memory
from llmfeas.model.sums import architecture_sums
from llmfeas.settle import resolution
from llmfeas.workload.cache import kv_cache_bytes
from llmfeas.workload.flops import step_flop
from llmfeas.workload.parameters import parameters
from llmfeas.workload.weights import weight_bytes

ROWS: dict[str, Any] = json.loads((Path(__file__).parent.parent / "data" / "looped.json").read_text())
OURO = {"model_type": "ouro", "total_ut_steps": 4}


@pytest.mark.parametrize("row", ROWS["counts"], ids=lambda row: f"{row['config']['model_type']}-{row['parameters']}")
def test_what_layers_share_counts_once(tmp_path: Path, row: dict[str, Any]) -> None:
    assert parameters(read(tmp_path, row["config"])).total == row["parameters"]


@pytest.mark.parametrize("row", ROWS["flops"], ids=lambda row: row["config"]["model_type"])
def test_each_run_of_a_shared_block_adds_the_work_that_a_counter_finds(tmp_path: Path, row: dict[str, Any]) -> None:
    kinds = (row["config"]["layers_block_type"], row["without"])
    whole, without = (
        step_flop(
            read(tmp_path, {**row["config"], "layers_block_type": kind}), row["batch"], row["seq_len"], kernel="eager"
        )
        for kind in kinds
    )
    assert whole.forward - without.forward == row["forward"]
    assert whole.backward - without.backward == row["backward"]


@pytest.mark.parametrize("row", ROWS["memory"]["rows"], ids=lambda row: json.dumps(row["ask"])[10:50])
def test_a_step_of_loops_takes_what_was_tracked(tmp_path: Path, row: dict[str, Any]) -> None:
    config = {**ROWS["memory"]["config"], "skip_loop_final_norm": not row["norm_between"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    tokens = {} if row["ask"]["task"] == "lora" else {"tokens": "1M"}
    ask = {**row["ask"], **tokens, "model": str(tmp_path), "device": "h100-sxm", "engine": "pytorch"}
    found = training_memory(resolution(ask, catalog()).scenario)
    assert found.bytes == row["peak_tensor_bytes"]
    assert found.moment == row["moment"]


def test_loops_share_weights_and_have_caches_and_work_of_their_own(tmp_path: Path) -> None:
    looped = read(tmp_path, OURO)
    once = replace(looped, layers=24, held_layers=0, loop_norm=False)
    assert looped.layers == 96
    assert parameters(looped) == parameters(once)
    assert parameters(looped, 16).trainable == parameters(once, 16).trainable
    assert kv_cache_bytes(looped, 1000) == 4 * kv_cache_bytes(once, 1000)
    four, one = architecture_sums(looped), architecture_sums(once)
    assert (four.dense_weights - one.dense_weights, four.parameters) == (four.again, one.parameters)
    assert four.again == 3 * 24 * (4 * 2048**2 + 3 * 2048 * 5632)


@pytest.mark.parametrize("quant", ["none", "q4_k_m", "nf4"])
def test_weights_are_stored_once_and_read_in_each_loop(tmp_path: Path, quant: str) -> None:
    table, looped = catalog().tables.quantization, read(tmp_path, OURO)
    once = replace(looped, layers=24, held_layers=0, loop_norm=False)
    four, one = (weight_bytes(table, each, quant) for each in (looped, once))
    layers = sum(layer.total for layer in one.layers)
    assert four.total == pytest.approx(one.total)
    assert four.read - one.read == pytest.approx(3 * layers)


@pytest.mark.parametrize("row", ROWS["adapters"], ids=lambda row: f"{row['config']['model_type']}-{row['all-linear']}")
@pytest.mark.parametrize("targets", ["all-linear", "attention"])
def test_each_use_of_a_shared_block_has_adapters_of_its_own(
    tmp_path: Path, row: dict[str, Any], targets: Literal["all-linear", "attention"]
) -> None:
    """As peft 0.21 makes them for the copies with tied weights."""
    model = read(tmp_path, row["config"])
    traits = catalog().tables.implementations.public(model.implementation)
    assert parameters(model, row["rank"], targets, traits=traits).trainable == row[targets]


def test_a_step_holds_the_optimizer_states_of_every_use_s_adapters(tmp_path: Path) -> None:
    model = read(tmp_path, ROWS["adapters"][0]["config"])
    ask = {"task": "lora", "precision": "bf16", "seq_len": 128, "micro_batch": 1, "lora_rank": 16}
    scenario = resolution({"device": "h100-sxm", "model": str(tmp_path), **ask}, catalog()).scenario
    traits = catalog().tables.implementations.public(model.implementation)
    trained = parameters(model, 16, traits=traits).trainable
    mixers, uses = 6, 3
    factors = 2 * (2 * mixers + (4 + 3 + 1) * uses)
    # two moments in fp32, and a counter of steps for each factor, in a block of 512 bytes
    assert training_memory(scenario).components["optimizer_bytes"] == 8 * trained + 512 * factors


def test_a_stage_of_its_own_holds_what_it_runs(tmp_path: Path) -> None:
    held = weight_bytes(catalog().tables.quantization, read(tmp_path, OURO))
    layers = sum(layer.total for layer in held.layers)
    again = [sum(part.total for part in held.held_again(*span)) for span in ((0, 48), (48, 96), (90, 96))]
    assert again == [0, layers, layers / 4]


def test_two_stages_hold_a_shared_set_twice() -> None:
    ask = {"model": "ouro-1.4b", "task": "pretrain", "tokens": "1M", "device": "h100-sxm", "num_devices": 2}
    shared = {**ask, "precision": "bf16", "seq_len": 512, "micro_batch": 1, "engine": "megatron"}
    one, two = (
        training_memory(resolution({**shared, **layout}, catalog()).scenario).components["weights_bytes"]
        for layout in ({"pp": 1}, {"pp": 2})
    )
    assert two > 0.9 * one


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({**OURO, "total_ut_steps": 10**6}, "total_ut_steps"),
        ({**OURO, "num_hidden_layers": 9000}, "total_ut_steps"),
        ({"model_type": "albert", "inner_group_num": 2}, "inner_group_num"),
        ({"model_type": "nanbeige", "num_loops": 2, "enable_double_loop_split": True}, "enable_double_loop_split"),
        ({"model_type": "zamba2", "layers_block_type": ["mamba", "spiral"]}, "layers_block_type"),
    ],
)
def test_what_is_not_supported_names_its_key(tmp_path: Path, changed: dict[str, Any], key: str) -> None:
    with pytest.raises(DataError, match=key):
        read(tmp_path, changed)


DORY = {
    "model_type": "dory",
    "vocab_size": 1000,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "n_input_layers": 2,
    "n_output_layers": 2,
    "n_recurrent_loops": 3,
    "sliding_window": 4096,
}


def test_layers_in_the_middle_run_again(tmp_path: Path) -> None:
    """Parameters and FLOPs as the class of transformers 5.24 and PyTorch's counter have them; a cache for each run."""
    dory = read(tmp_path, DORY)
    found = step_flop(dory, 2, 64, kernel="eager")
    assert (dory.layers, parameters(dory).total) == (16, 2102248)
    assert (found.forward, found.backward) == (1106509824, 2213019648)
    assert kv_cache_bytes(dory, 2048) == 16 * 2 * 128 * 2048 * 2 + 12 * 8


def test_files_that_list_feed_forwards_as_layers_are_read_alike(tmp_path: Path) -> None:
    kinds = [kind for index in range(8) for kind in (("full" if index % 4 == 3 else "sliding") + "_attention", "mlp")]
    listed = {"layer_types": kinds, "num_hidden_layers": 16, "n_input_layers": 4, "n_output_layers": 4}
    assert read(tmp_path, {**DORY, **listed}) == read(tmp_path, DORY)


@pytest.mark.parametrize("changed", [{"n_input_layers": 7}, {"n_recurrent_loops": 9000}])
def test_loops_of_no_layers_are_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="n_recurrent_loops"):
        read(tmp_path, {**DORY, **changed})

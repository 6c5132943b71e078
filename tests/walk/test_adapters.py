"""Steps of adapters without low-rank pairs, against tracked steps of peft's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmfeas import estimate
from llmfeas.adapters import ADAPTERS
from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.memory.training import training_memory, training_plan
from llmfeas.settle import resolution
from llmfeas.workload.parameters import bare_layers, parameters_of

DATA = json.loads((Path(__file__).parents[1] / "data" / "adapter_memory.json").read_text())
ASKED = {"device": "h100-sxm", "task": "lora", "engine": "pytorch"}
PAIRLESS = [name for name, kind in ADAPTERS.items() if not kind.pairs]


def label(row: dict[str, Any]) -> str:
    return "-".join([row["model"], *map(str, row["scenario"].values())])


@pytest.mark.parametrize("row", DATA["rows"], ids=label)
def test_a_tracked_peak_is_met(row: dict[str, Any], described_models: dict[str, str]) -> None:
    scenario = resolution({**ASKED, **row["scenario"], "model": described_models[row["model"]]}, catalog()).scenario
    # learned keys and values take no room in the tensors that hold those of the text too
    close = 0.011 if scenario.lora_kind == "prefix" else 0.002
    assert training_memory(scenario).bytes == pytest.approx(row["peak_bytes"], rel=close)
    assert parameters_of(scenario).trainable == row["trainable"]


@pytest.mark.parametrize(
    "model", ["llama-3-8b", "qwen3-30b-a3b", "falcon-h1-7b", "gemma-3-4b", "deepseek-v2-lite", "nanbeige4.2-3b"]
)
@pytest.mark.parametrize("layers", [1, 9])
def test_what_trains_on_the_last_layers_is_what_memory_holds(model: str, layers: int) -> None:
    scenario = resolution({**ASKED, "model": model, "lora_layers": layers}, catalog()).scenario
    (rank,) = training_plan(scenario).ranks
    assert rank.moments.inventory.trained == parameters_of(scenario).trainable > 0


def test_mlx_adapts_its_sixteen_last_layers_and_runs_no_backward_below_them() -> None:
    def answer(**changes: Any) -> dict[str, Any]:
        return estimate(model="llama-3-8b", device="m2-ultra", task="lora", **changes).to_dict()

    usual, whole, few = answer(), answer(lora_layers="all"), answer(lora_layers=4)
    assert usual["inputs"]["lora_layers"] == {"value": 16, "origin": "backend"}
    speeds = [each["result"]["time"]["tokens_per_second"]["expected"] for each in (whole, usual, few)]
    assert speeds[0] * 1.3 < speeds[1] < speeds[2] / 1.3
    assert usual["result"]["parameters"]["trainable"] * 2 == whole["result"]["parameters"]["trainable"]
    again = estimate(**whole["inputs"]).to_dict()
    assert again["inputs"]["lora_layers"]["value"] == 32
    assert again["result"]["parameters"] == whole["result"]["parameters"]


def test_a_base_in_fp32_is_larger_and_slower() -> None:
    def answer(**changes: Any) -> dict[str, Any]:
        return estimate(**ASKED, model="llama-3-8b", **changes).to_dict()["result"]

    usual, wide = answer(), answer(base_dtype="fp32")
    more = wide["memory"]["peak_bytes"]["expected"] - usual["memory"]["peak_bytes"]["expected"]
    assert more > 1.9 * usual["parameters"]["total"]
    assert wide["time"]["tokens_per_second"]["expected"] < usual["time"]["tokens_per_second"]["expected"]


def test_no_layer_has_adapters_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="beyond the 32 layers"):
        resolution({**ASKED, "model": "llama-3-8b", "lora_layers": 33}, catalog())
    assert bare_layers(resolution({**ASKED, "model": "llama-3-8b", "lora_layers": 32}, catalog()).scenario) == 0
    with pytest.raises(UsageError, match="an encoder and a decoder"):
        resolution({**ASKED, "model": "flan-t5-xl", "lora_layers": 2}, catalog())


@pytest.mark.parametrize("kind", PAIRLESS)
@pytest.mark.parametrize("model", ["llama-3-8b", "gpt2", "qwen3-30b-a3b", "falcon-h1-7b"])
def test_what_trains_is_what_memory_holds(model: str, kind: str) -> None:
    scenario = resolution({**ASKED, "model": model, "lora_kind": kind}, catalog()).scenario
    (rank,) = training_plan(scenario).ranks
    assert rank.moments.inventory.trained == parameters_of(scenario).trainable > 0


def test_learned_tokens_take_time_and_memory_as_tokens_do() -> None:
    def answer(**changes: Any) -> dict[str, Any]:
        asked = {**ASKED, "model": "llama-3-8b", "seq_len": 512, "micro_batch": 4, "lora_kind": "prompt", **changes}
        return estimate(**asked).to_dict()["result"]

    few, many = answer(virtual_tokens=1), answer(virtual_tokens=512)
    assert many["time"]["tokens_per_second"]["expected"] < 2 / 3 * few["time"]["tokens_per_second"]["expected"]
    assert many["memory"]["peak_bytes"]["expected"] > few["memory"]["peak_bytes"]["expected"]
    assert many["parameters"]["trainable"] == 512 * 4096


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"base_dtype": "fp32", "precision": "bf16"}, "contradicts --precision bf16"),
        ({"base_dtype": "bf16", "precision": "fp32"}, "contradicts --precision fp32"),
        ({"base_dtype": "fp32", "engine": "unsloth"}, "in 16 bits beside adapters"),
        ({"lora_kind": "ia3", "engine": "unsloth"}, "has no --lora-kind ia3"),
        ({"lora_kind": "prefix", "checkpointing": "full"}, "peft refuses both"),
        ({"lora_kind": "prefix", "model": "deepseek-v2-lite"}, "keeps latents"),
        ({"lora_kind": "prefix", "model": "flan-t5-xl"}, "counted for decoders alone"),
        ({"lora_kind": "prefix", "model": "mamba-2.8b"}, "trains nothing"),
        ({"lora_kind": "ia3", "model": "mamba-2.8b"}, "trains nothing"),
        ({"lora_layers": 1, "lora_targets": "attention", "model": "zamba-7b"}, "trains nothing"),
    ],
)
def test_what_software_cannot_do_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        resolution({**ASKED, "model": "llama-3-8b", **changes}, catalog())


def test_settings_of_other_kinds_are_named_as_unused() -> None:
    found = resolution(
        {**ASKED, "model": "llama-3-8b", "lora_kind": "ia3", "lora_rank": 8, "virtual_tokens": 5}, catalog()
    )
    assert [note.message for note in found.warnings if note.code == "option-unused"] == [
        "--lora-kind ia3 learns no tokens: --virtual-tokens was ignored",
        "--lora-kind ia3 has no low-rank pairs: --lora-rank was ignored",
    ]


def test_a_rank_beyond_some_matrices_is_named() -> None:
    found = resolution({**ASKED, "model": "qwen2.5-0.5b", "lora_rank": 500}, catalog())
    assert "which are 128 wide" in {note.code: note.message for note in found.warnings}["rank-beyond-some"]

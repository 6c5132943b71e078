"""Encoders hold as many parameters as their classes on the meta device, cache nothing and write nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hf_files import read

import llmfeas
from llmfeas.catalog.architecture import Model
from llmfeas.catalog.store import catalog
from llmfeas.errors import DataError, UsageError
from llmfeas.importers.hf.families import family, table
from llmfeas.memory.training import training_memory
from llmfeas.planning.answer import answer
from llmfeas.scenario import Scenario
from llmfeas.workload.cache import kv_cache_bytes
from llmfeas.workload.flops import inference_flop
from llmfeas.workload.parameters import parameters
from training_scenarios import CARD

COUNTS = json.loads((Path(__file__).parent.parent / "data" / "encoder_counts.json").read_text())
PUBLISHED = {
    "all-minilm-l6-v2": 22_713_216,
    "bge-m3": 567_754_752,
    "multilingual-e5-small": 117_653_760,
    "multilingual-e5-base": 278_043_648,
    "all-mpnet-base-v2": 109_486_464,
    "roberta-large": 355_359_744,
}


@pytest.mark.parametrize(
    "row", COUNTS["rows"], ids=lambda row: f"{row['config']['architectures'][0]}-{row['parameters']}"
)
def test_counts_equal_those_of_the_class(tmp_path: Path, row: dict[str, Any]) -> None:
    assert parameters(read(tmp_path, row["config"])).total == row["parameters"]


def test_every_type_is_counted() -> None:
    encoders = {kind for kind in table()["families"] if (record := family(kind)) and record.fixed.get("encoder")}
    assert encoders - {"albert"} == {row["config"]["model_type"] for row in COUNTS["rows"]}


@pytest.mark.parametrize("model", PUBLISHED)
def test_counts_of_the_catalog_equal_the_published_files(models: dict[str, Model], model: str) -> None:
    assert parameters(models[model]).total == PUBLISHED[model]


@pytest.mark.parametrize("row", COUNTS["flops"], ids=lambda row: str(row.get("config", row)["model_type"]))
def test_work_of_a_text_equals_that_of_the_counter(tmp_path: Path, row: dict[str, Any]) -> None:
    asked = row.get("config") or {key: row[key] for key in ("model_type", "num_hidden_layers") if key in row}
    architecture = read(tmp_path, asked).architecture
    assert inference_flop(architecture, row["tokens"], 0).model == row["forward_flop"]


def step(row: dict[str, Any]) -> str:
    keys = ("precision", "attention", "checkpointing", "micro_batch", "seq_len")
    return "-".join((row["config"]["model_type"], *(str(row[key]) for key in keys)))


@pytest.mark.parametrize("row", COUNTS["memory"], ids=step)
def test_tracked_training_steps_are_met(tmp_path: Path, row: dict[str, Any]) -> None:
    """With labels for each token; what fills the last window counts, too."""
    settings = {key: value for key, value in row.items() if key not in ("config", "peak_tensor_bytes")}
    asked = Scenario(
        model=read(tmp_path, row["config"]),
        device=CARD,
        tables=catalog().tables,
        memory_bytes=80e9,
        host_memory_bytes=256e9,
        task="finetune",
        global_batch=row["micro_batch"],
        **settings,
    )
    assert training_memory(asked).bytes == pytest.approx(row["peak_tensor_bytes"], rel=0.008)


def test_nothing_is_cached(models: dict[str, Model]) -> None:
    for name in ("bge-m3", "modernbert-base"):
        assert kv_cache_bytes(models[name].architecture, 512) == 0


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"model_type": "roformer", "rotary_value": True}, "rotary_value"),
        ({"model_type": "rembert", "input_embedding_size": 1152}, "input_embedding_size"),
        ({"model_type": "electra", "is_decoder": True}, "is_decoder"),
    ],
)
def test_what_is_not_supported_names_its_key(tmp_path: Path, changed: dict[str, Any], key: str) -> None:
    with pytest.raises(DataError, match=key):
        read(tmp_path, changed)


def test_positions_by_distance_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="position_embedding_type"):
        read(tmp_path, {"model_type": "bert", "position_embedding_type": "alibi"})


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp"])
def test_an_encoder_reads_and_writes_nothing(engine: str) -> None:
    asked = {"model": "bge-m3", "device": "rtx-4090", "task": "inference", "engine": engine, "concurrency": 32}
    result = llmfeas.estimate(**asked).to_dict()["result"]
    assert result["time"]["decode_tokens_per_second"]["expected"] == 0
    assert result["time"]["prefill_tokens_per_second"]["expected"] > 0
    assert result["memory"]["kv_cache_bytes"] == 0
    assert result.get("load") is None and result.get("serving") is None


def test_a_long_text_takes_longer() -> None:
    short, long = (
        llmfeas.estimate(model="bge-m3", device="rtx-4090", task="inference", prompt=n).time for n in (128, 8192)
    )
    assert long.time_to_first_token_seconds.expected > 8 * short.time_to_first_token_seconds.expected


@pytest.mark.parametrize(("name", "value"), [("output", 100), ("rate", 3.0), ("tpot", "50ms")])
def test_settings_of_written_text_are_refused(name: str, value: object) -> None:
    with pytest.raises(UsageError, match="writes none"):
        llmfeas.estimate(**{"model": "bge-m3", "device": "rtx-4090", "task": "inference", name: value})


@pytest.mark.parametrize("task", ["dpo", "grpo"])
def test_what_writes_no_answers_learns_from_none(task: Any) -> None:
    with pytest.raises(UsageError, match="no answers to learn from"):
        llmfeas.estimate(model="bert-large", device="epyc-9654", task=task)


@pytest.mark.parametrize("task", ["finetune", "lora"])
def test_training_holds_no_logits_of_a_vocabulary(task: str) -> None:
    found = llmfeas.estimate(model="bge-m3", device="a100-80gb", task=task, micro_batch=8, seq_len=512)
    assert found.memory.components.get("logits_bytes", 0.0) < 1e6


def test_chat_is_not_offered() -> None:
    found = answer({"model": "all-minilm-l6-v2", "device": "rtx-4090"}, ladder=False, remedies=False)
    assert isinstance(found.uses, tuple)
    assert [use.label for use in found.uses] == ["embedding", "LoRA", "full fine-tuning", "pre-training"]


def test_a_file_that_spells_its_sizes_as_gpt_2_does_has_its_own_context(tmp_path: Path) -> None:
    assert read(tmp_path, {"model_type": "nomic_bert", "n_positions": 8192}).context == 8192


def test_every_other_layer_of_nomics_mixture_holds_experts_with_one_bias_behind_them(tmp_path: Path) -> None:
    mixed = {"moe_every_n_layers": 2, "num_experts": 8, "moe_top_k": 2, "activation_function": "gelu"}
    sizes = {"n_layer": 12, "n_embd": 768, "n_head": 12, "n_inner": 3072, "vocab_size": 250048, "type_vocab_size": 1}
    biases = {"qkv_proj_bias": True, "mlp_fc1_bias": True}
    found = parameters(read(tmp_path, {"model_type": "nomic_bert", **mixed, **sizes, **biases}))
    assert (found.total, found.active) == (475_292_928, 305_423_616)  # published: 475M, 305M active
    assert parameters(catalog().models["nomic-embed-text-v2-moe"]).total == found.total

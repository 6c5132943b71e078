from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.catalog.architecture import Architecture, Model
from llmfeas.importers.hf.config import model_from_config
from llmfeas.model.sums import architecture_sums
from llmfeas.workload.flops import Lora, inference_flop, step_flop, training_flop
from llmfeas.workload.parameters import parameters

DATA = Path(__file__).parent.parent / "data"
ROWS = json.loads((DATA / "flops.json").read_text())["rows"]
FAMILIES = json.loads((DATA / "flops_families.json").read_text())["rows"]
LORA = json.loads((DATA / "flops_lora.json").read_text())["rows"]
SMALL = Architecture(layers=2, hidden=64, heads=4, kv_heads=2, vocab=100, ffn=128)


def named(models: dict[str, Model], name: str) -> Architecture:
    return next(model.architecture for model in models.values() if name in (model.id, *model.aliases))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(str(value) for value in list(row.values())[:5]))
def test_equal_to_the_counter_of_pytorch(models: dict[str, Model], row: dict[str, Any]) -> None:
    found = step_flop(
        named(models, row["model"]),
        row["micro_batch"],
        row["seq_len"],
        kernel=row["attention"],
        checkpointing=row["checkpointing"],
        dropout=0.0,
    )
    assert found.forward == row["forward_flop"]
    assert found.backward + found.replayed == row["backward_flop"]


def row_id(row: dict[str, Any]) -> str:
    return "-".join(str(row.get(key, "")) for key in ("lora_targets", "attention", "checkpointing"))


def imported(config: dict[str, Any], folder: Path) -> Architecture:
    (folder / "config.json").write_text(json.dumps(config))
    return model_from_config(folder).architecture


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: row["config"]["model_type"] + row_id(row))
def test_every_family_equals_the_counter_of_pytorch(tmp_path: Path, row: dict[str, Any]) -> None:
    found = step_flop(
        imported(row["config"], tmp_path),
        row["micro_batch"],
        row["seq_len"],
        kernel=row["attention"],
        checkpointing=row["checkpointing"],
        dropout=0.0,
    )
    assert found.forward == row["forward_flop"]
    assert found.backward + found.replayed == row["backward_flop"]


@pytest.mark.parametrize("row", LORA, ids=lambda row: row["config"]["model_type"] + row_id(row))
def test_lora_equals_the_counter_of_pytorch(tmp_path: Path, row: dict[str, Any]) -> None:
    architecture = imported(row["config"], tmp_path)
    bare = architecture.layers - row.get("lora_layers", architecture.layers)
    found = step_flop(
        architecture,
        row["micro_batch"],
        row["seq_len"],
        kernel=row["attention"],
        checkpointing=row["checkpointing"],
        dropout=0.0,
        lora=Lora(row["lora_rank"], row["lora_targets"], bare),
    )
    trained = parameters(architecture, row["lora_rank"], row["lora_targets"], bare_layers=bare).trainable
    assert trained == row["trainable"]
    assert found.forward == row["forward_flop"]
    assert found.backward + found.replayed == row["backward_flop"]


def test_model_flop_is_three_times_forward_and_beside_it_stands_the_rule(models: dict[str, Model]) -> None:
    model = models["llama-2-7b"]
    found = training_flop(model.architecture, 1e9, 4096)
    assert found.model == pytest.approx(3e9 * found.forward_per_token)
    assert found.rule_of_thumb == 6e9 * parameters(model).active
    assert found.hardware > found.model


def test_active_experts_alone_compute(models: dict[str, Model]) -> None:
    architecture = models["mixtral-8x7b"].architecture
    sums = architecture_sums(architecture)
    assert (sums.active + sums.head_weights) * 2 * 8 < step_flop(architecture, 1, 8).forward
    assert step_flop(architecture, 1, 8).forward < 2 * 8 * parameters(architecture).active * 1.01


def test_dropout_behind_the_last_product_makes_it_run_again(models: dict[str, Model]) -> None:
    architecture = models["gpt2"].architecture
    without = step_flop(architecture, 1, 256, checkpointing="full", dropout=0.0)
    published = step_flop(architecture, 1, 256, checkpointing="full")
    assert published.replayed - without.replayed == 12 * 2 * 256 * 768 * 3072


def test_a_frozen_base_needs_no_weight_gradients() -> None:
    whole, lora = step_flop(SMALL, 1, 32, kernel="eager"), step_flop(SMALL, 1, 32, kernel="eager", lora=Lora(4))
    assert lora.forward > whole.forward
    assert lora.backward < whole.backward * 0.8


def test_selective_checkpointing_replays_less_than_full() -> None:
    full, selective = (step_flop(SMALL, 1, 32, checkpointing=c).replayed for c in ("full", "selective"))
    assert 0 < selective < full


def test_generated_tokens_see_what_is_cached() -> None:
    prompt_only = inference_flop(SMALL, 100, 0)
    one_more = inference_flop(SMALL, 100, 1)
    scores = 2 * 4 * 4 * 16 * 101
    assert one_more.model - prompt_only.model == 2 * (architecture_sums(SMALL).dense_weights) + scores


@given(prompt=st.integers(0, 300), generated=st.integers(1, 300), window=st.integers(1, 400))
def test_decoding_sums_token_by_token(prompt: int, generated: int, window: int) -> None:
    from llmfeas.catalog.architecture import Window

    architecture = Architecture(layers=1, hidden=8, heads=1, vocab=10, ffn=8, window=Window(size=window))
    work = inference_flop(architecture, prompt, generated).model
    seen = sum(min(prompt + i + 1, window) for i in range(generated))
    products = 2 * architecture_sums(architecture).dense_weights * (prompt + generated) + 2 * 80 * generated
    assert work == pytest.approx(products + 2 * 8 * 2 * (prompt**2 + seen))


@given(sequences=st.integers(1, 64), tokens=st.integers(1, 4096))
def test_sequences_add_up(sequences: int, tokens: int) -> None:
    assert step_flop(SMALL, sequences, tokens).forward == sequences * step_flop(SMALL, 1, tokens).forward


@given(tokens=st.integers(1, 2048))
def test_longer_sequences_cost_more_a_token(tokens: int) -> None:
    assert step_flop(SMALL, 1, tokens + 1).forward / (tokens + 1) > step_flop(SMALL, 1, tokens).forward / tokens

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.catalog.architecture import Architecture, Model
from llmfeas.catalog.parts import Window
from llmfeas.importers.hf.config import model_from_config
from llmfeas.model.sums import architecture_sums
from llmfeas.workload.cache import kv_cache_bytes

DATA = Path(__file__).parent.parent / "data"
ROWS = json.loads((DATA / "kv_cache.json").read_text())["rows"]
FAMILIES = json.loads((DATA / "kv_cache_families.json").read_text())["rows"]
COUNTS = json.loads((DATA / "param_counts.json").read_text())["rows"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']}-{row['sequences']}-{row['tokens']}")
def test_equal_to_the_measured_cache(models: dict[str, Model], row: dict[str, Any]) -> None:
    architecture = next(m.architecture for m in models.values() if row["model"] in (m.id, *m.aliases))
    assert kv_cache_bytes(architecture, row["tokens"], row["sequences"]) == row["bytes"]
    assert kv_cache_bytes(architecture, row["tokens"] + 1, row["sequences"]) == row["bytes_after_one_more"]


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: f"{row['config']['model_type']}-{row['tokens']}")
def test_every_family_equals_the_measured_cache(tmp_path: Path, row: dict[str, Any]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(row["config"]))
    architecture = model_from_config(tmp_path).architecture
    assert kv_cache_bytes(architecture, row["tokens"], row["sequences"]) == row["bytes"]
    assert kv_cache_bytes(architecture, row["tokens"] + 1, row["sequences"]) == row["bytes_after_one_more"]


@pytest.mark.parametrize("row", COUNTS, ids=lambda row: str(row["id"]))
def test_values_of_one_token(models: dict[str, Model], row: dict[str, Any]) -> None:
    architecture = models[row["id"]].architecture
    # the rows leave out an indexer's keys, of which each layer has one
    keys = architecture.layers * architecture.indexer.head_dim if architecture.indexer else 0
    assert architecture_sums(architecture).cached_values(1) == row["kv_values_per_token"] + keys


def test_longcat_keeps_latents(models: dict[str, Model]) -> None:
    longcat = models["longcat-flash"].architecture
    assert kv_cache_bytes(longcat, 1) == 64_512
    assert kv_cache_bytes(longcat, 1000, 3) == 3000 * 64_512


def test_a_window_holds_one_token_less_than_its_size() -> None:
    whole = Architecture(layers=4, hidden=64, heads=4, vocab=10, ffn=8)
    windowed = Architecture(layers=4, hidden=64, heads=4, vocab=10, ffn=8, window=Window(size=8, local=1, full=1))
    assert kv_cache_bytes(windowed, 7) == kv_cache_bytes(whole, 7) + 2 * 8
    assert kv_cache_bytes(windowed, 100) == kv_cache_bytes(whole, 100) / 2 + kv_cache_bytes(whole, 7) / 2 + 2 * 8


def test_a_window_that_only_masks_keeps_every_token(models: dict[str, Model]) -> None:
    assert kv_cache_bytes(models["gpt-neo-125m"].architecture, 2048) == 2048 * 2 * 12 * 768 * 2


def test_linear_attention_keeps_a_state_of_fixed_size(models: dict[str, Model]) -> None:
    architecture = models["qwen3-next-80b-a3b"].architecture
    growth = kv_cache_bytes(architecture, 2000) - kv_cache_bytes(architecture, 1000)
    assert growth == 1000 * 2 * architecture_sums(architecture).cached_values(1)
    assert kv_cache_bytes(architecture, 1000) > growth


@given(tokens=st.integers(0, 5000), sequences=st.integers(1, 50), window=st.integers(1, 3000))
def test_more_tokens_never_need_less(tokens: int, sequences: int, window: int) -> None:
    architecture = Architecture(
        layers=3, hidden=64, heads=4, kv_heads=2, vocab=10, ffn=8, window=Window(size=window, local=2, full=1)
    )
    assert kv_cache_bytes(architecture, tokens, sequences) <= kv_cache_bytes(architecture, tokens + 1, sequences)

"""Models of 2025 and 2026 hold as many parameters, and cache as many bytes, as their classes on the meta device."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmfeas.catalog.architecture import Architecture, LayerKind, Model
from llmfeas.catalog.parts import ShortConvolution, StateSpace
from llmfeas.catalog.store import catalog
from llmfeas.model.build import build
from llmfeas.model.setup import Recipe, Setup
from llmfeas.walk.fold import peak_candidates
from llmfeas.workload.cache import kv_cache_bytes
from llmfeas.workload.parameters import parameters
from llmfeas.workload.weights import weight_bytes

ROWS = json.loads((Path(__file__).parent.parent / "data" / "recent_counts.json").read_text())["rows"]


@pytest.mark.parametrize("row", [row for row in ROWS if "total" in row], ids=lambda row: str(row["id"]))
def test_parameters_equal_those_of_the_class(models: dict[str, Model], row: dict[str, Any]) -> None:
    assert parameters(models[row["id"]]).total == row["total"]


@pytest.mark.parametrize("row", [row for row in ROWS if "cache_bytes" in row], ids=lambda row: str(row["id"]))
def test_caches_and_states_equal_those_of_the_class(models: dict[str, Model], row: dict[str, Any]) -> None:
    assert kv_cache_bytes(models[row["id"]].architecture, 1024) == row["cache_bytes"]


def test_towers_are_held_and_neither_active_nor_trained(models: dict[str, Model]) -> None:
    seeing = models["qwen3-vl-8b"]
    blind = parameters(models["qwen3-8b"])
    found = parameters(seeing)
    assert found.total - blind.total == seeing.architecture.tower_parameters
    assert (found.active, found.trainable) == (blind.active, blind.trainable)


def test_layers_that_share_a_cache_hold_none(models: dict[str, Model]) -> None:
    shared = models["gemma-4-e2b"].architecture
    alone = replace(shared, shared_cache_layers=0, layer_runs=())
    assert kv_cache_bytes(shared, 4096) < kv_cache_bytes(alone, 4096)


def test_entries_that_layers_share_are_kept_once(models: dict[str, Model]) -> None:
    pressed = models["deepseek-v4.1-flash"].architecture
    # Three layers press two tokens into one entry, a fourth makes one of each: 512 values and a key of 128 each.
    assert kv_cache_bytes(pressed, 4096) - kv_cache_bytes(pressed, 2048) == 2048 * 2 * (3 / 2 + 1) * (512 + 128)


def test_tables_of_layers_are_looked_up_and_not_read(models: dict[str, Model]) -> None:
    tables = models["qwen3.8-flash-next"].architecture
    held = weight_bytes(catalog().tables.quantization, tables, "none")
    assert held.total - held.read > 2 * 320_001_536 * 160


SMALL = Architecture(layers=4, hidden=64, heads=4, vocab=100, ffn=128)
SPACE = StateSpace(heads=4, head_dim=32, state=16)


@pytest.mark.parametrize(
    ("mixer", "fields"),
    [
        ("state_space", {"state_space": SPACE}),
        ("state_space", {"state_space": replace(SPACE, heads=128, head_dim=1, step_rank=8)}),
        ("hybrid", {"state_space": SPACE}),
        ("short_convolution", {"short_convolution": ShortConvolution(kernel=3)}),
        ("none", {}),
    ],
)
def test_a_walk_of_every_mixer_holds_the_weights_of_the_tape(mixer: Any, fields: dict[str, Any]) -> None:
    runs = (LayerKind(mixer=mixer, times=2), LayerKind(times=2))
    architecture = replace(SMALL, layer_runs=runs, **fields)
    traits = catalog().tables.implementations.public(architecture.implementation)
    setup = Setup(architecture=architecture, implementation=traits, recipe=Recipe(weight_bytes=2, autocast=False))
    assert peak_candidates(setup).inventory.elements == parameters(architecture).total


def test_a_state_does_not_grow_with_the_tokens() -> None:
    spaces = replace(SMALL, layer_runs=(LayerKind(mixer="state_space", times=4),), state_space=SPACE)
    assert kv_cache_bytes(spaces, 100) == kv_cache_bytes(spaces, 100_000)
    assert not any(operator.span for operator, _ in build(spaces).operators)

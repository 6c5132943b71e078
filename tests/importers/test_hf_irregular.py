"""Layers that follow no rule, side weights and pressed caches: what a file says of each layer is what is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hf_files import read_architecture as read

from llmfeas.catalog.store import catalog
from llmfeas.errors import DataError
from llmfeas.model.build import build
from llmfeas.model.setup import Recipe, Setup
from llmfeas.walk.fold import peak_candidates
from llmfeas.workload.cache import kv_cache_bytes
from llmfeas.workload.parameters import parameters

WHOLE = {"no_op": False, "replace_with_linear": False}
GONE = {"no_op": True}
LINEAR = {"no_op": False, "replace_with_linear": True}


def searched(*blocks: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    sizes = {"hidden_size": 256, "num_attention_heads": 4, "vocab_size": 100, "max_position_embeddings": 512}
    listed = [{"attention": attention, "ffn": fed} for attention, fed in blocks]
    return {"model_type": "nemotron-nas", **sizes, "num_hidden_layers": len(blocks), "block_configs": listed}


def test_searched_layers_hold_what_their_blocks_say(tmp_path: Path) -> None:
    attention, narrow = {**WHOLE, "n_heads_in_group": 2}, {**WHOLE, "ffn_mult": 1.5}
    one_head, wide = {**WHOLE, "n_heads_in_group": 4}, {**WHOLE, "ffn_mult": 3.0}
    found = read(tmp_path, searched((attention, narrow), (GONE, wide), (one_head, wide), (LINEAR, wide)))
    h, head = 256, 64
    of_attention = [h * h * 2 + 2 * h * 2 * head + h, 0, h * h * 2 + 2 * h * head + h, h * h + h]
    of_feed_forward = [3 * h * n + h for n in (256, 512, 512, 512)]
    assert parameters(found).total == sum(of_attention) + sum(of_feed_forward) + 2 * 100 * h + h
    assert kv_cache_bytes(found, 10) == 10 * 2 * head * (2 + 1) * 2


@pytest.mark.parametrize("blocks", [None, [], [1], [{"attention": 3, "ffn": {}}], [{"attention": WHOLE, "ffn": WHOLE}]])
def test_blocks_of_another_form_are_refused(tmp_path: Path, blocks: object) -> None:
    with pytest.raises(DataError, match=r"block_configs|n_heads_in_group"):
        read(tmp_path, {**searched((GONE, WHOLE)), "block_configs": blocks})


def test_heads_and_widths_that_grow_with_depth(tmp_path: Path) -> None:
    factors = [0.5, 0.73, 0.97, 1.2, 1.43, 1.67, 1.9, 2.13, 2.37, 2.6, 2.83, 3.07, 3.3, 3.53, 3.77, 4.0]
    queries = [12] * 5 + [16] * 7 + [20] * 4
    config = {
        "model_type": "openelm",
        "model_dim": 1280,
        "head_dim": 64,
        "num_transformer_layers": 16,
        "num_query_heads": queries,
        "num_kv_heads": [n // 4 for n in queries],
        "ffn_multipliers": factors,
    }
    # OpenELM-270M as published: 271.53 M.
    assert parameters(read(tmp_path, config)).total == 271_527_168


def test_layers_that_attend_to_images_cache_none_of_the_text(tmp_path: Path) -> None:
    seeing = read(tmp_path, {"model_type": "mllama_text_model"})
    assert kv_cache_bytes(seeing, 1024) == 32 * 2 * 8 * 128 * 1024 * 2


def test_pressed_layers_cache_a_window_and_an_entry_for_many_tokens(tmp_path: Path) -> None:
    kinds = ["sliding_attention", "heavily_compressed_attention", "compressed_sparse_attention"]
    config = {"model_type": "deepseek_v4", "num_hidden_layers": 3, "layer_types": kinds}
    operators = [operator for layer, _ in build(read(tmp_path, config)).kinds for operator in layer.operators]
    held = [operator.cached_values(1024) for operator in operators if operator.cached_values(1024)]
    # The tensors of the class's caches behind 1,024 tokens, its one head counted once.
    assert held == [127 * 512, 8 * 512, 127 * 512, 256 * (512 + 128), 127 * 512]


def test_older_spellings_name_the_same_layers(tmp_path: Path) -> None:
    kinds = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"]
    config = {"model_type": "deepseek_v4", "num_hidden_layers": 3}
    assert read(tmp_path, {**config, "compress_ratios": [0, 4, 128]}) == read(
        tmp_path, {**config, "layer_types": kinds}
    )


@pytest.mark.parametrize("kind", ["deepseek_v4", "bailing_hybrid", "axk2", "hy_v4", "mllama_text_model", "bitnet"])
def test_a_walk_holds_the_weights_of_the_tape(tmp_path: Path, kind: str) -> None:
    architecture = read(tmp_path, {"model_type": kind, "vocab_size": 1000})
    traits = catalog().tables.implementations.public(architecture.implementation)
    setup = Setup(architecture=architecture, implementation=traits, recipe=Recipe(weight_bytes=2, autocast=False))
    assert peak_candidates(setup).inventory.elements == parameters(architecture).total


@pytest.mark.parametrize("rotation", [{"rotary_dim": 64}, {"rope_parameters": {"partial_rotary_factor": 0.5}}])
def test_rotated_channels_are_a_share_of_a_head(tmp_path: Path, rotation: dict[str, Any]) -> None:
    """As ai-dynamo/aiconfigurator keeps MiniMax M2.5's configuration: 64 of 128 channels turn."""
    assert read(tmp_path, {"model_type": "minimax_m2", **rotation}).rope_fraction == 0.5
    assert read(tmp_path, {"model_type": "minimax_m2"}).rope_fraction == 1.0

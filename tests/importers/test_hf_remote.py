"""Models whose code stands in their own repositories: read as the catalog has them, with work and caches of theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hf_files import read_architecture as read

import llmfeas
from llmfeas.catalog.architecture import Model
from llmfeas.errors import DataError
from llmfeas.workload.cache import kv_cache_bytes
from llmfeas.workload.flops import inference_flop, step_flop
from llmfeas.workload.parameters import parameters

FLASH: dict[str, Any] = {
    "model_type": "phi4flash",
    "hidden_size": 2560,
    "intermediate_size": 10240,
    "max_position_embeddings": 262144,
    "num_attention_heads": 40,
    "num_hidden_layers": 32,
    "num_key_value_heads": 20,
    "sliding_window": 512,
    "tie_word_embeddings": True,
    "vocab_size": 200064,
}
SMALL: dict[str, Any] = {"model_type": "phi3small", "vocab_size": 100352}
STEP: dict[str, Any] = {
    "model_type": "step3_vl",
    "text_config": {"model_type": "step3_text", "moe_layers_enum": ",".join(map(str, range(4, 60)))},
}


@pytest.mark.parametrize(("name", "config"), [("phi-4-mini-flash", FLASH), ("step-3", STEP)])
def test_the_catalog_has_what_the_file_says(
    tmp_path: Path, models: dict[str, Model], name: str, config: dict[str, Any]
) -> None:
    assert read(tmp_path, config) == models[name].architecture


def test_layers_that_skip_blocks_are_read_as_the_catalog_has_them(tmp_path: Path, models: dict[str, Model]) -> None:
    found, told = read(tmp_path, SMALL), models["phi-3-small"].architecture
    assert found.layer_kinds == told.layer_kinds
    assert parameters(found) == parameters(told)


def test_a_token_sees_its_window_and_every_so_manyth_block_before(models: dict[str, Model]) -> None:
    """Half of 32 layers see all, the others 1,024 tokens and an eighth of the rest; all keep keys and values of all."""
    small = models["phi-3-small"].architecture
    longer, shorter = (inference_flop(small, seen, 2).model for seen in (8000, 7999))
    assert longer is not None and shorter is not None
    token = [inference_flop(small, seen, 1).model or 0.0 for seen in (8000, 7999)]
    # the second of two answers sees one token more behind the longer prompt, in all layers or in an eighth of them
    seen = (longer - token[0]) - (shorter - token[1])
    assert seen == pytest.approx(4 * 4096 * (16 + 16 / 8), rel=1e-6)
    assert kv_cache_bytes(small, 8000) == 32 * 2 * 1024 * 8000 * 2


def test_half_of_the_layers_keep_nothing_of_their_own(models: dict[str, Model]) -> None:
    """One layer keeps all tokens, eight a window, nine the state of a state space in 32 bits and its last inputs.

    A window has a number beside it."""
    flash = models["phi-4-mini-flash"].architecture
    states = 9 * (5120 * 16 * 4 + 5120 * 4 * 2)
    assert kv_cache_bytes(flash, 8000) == 2 * 2560 * (8000 + 8 * 511) + states + 8 * 8


def test_two_maps_over_wide_values_take_twice_the_work(models: dict[str, Model]) -> None:
    flash = models["phi-4-mini-flash"].architecture
    short, long = (step_flop(flash, 1, length, kernel="eager").forward for length in (1000, 2000))
    # sixteen layers of attention, four products over the square for two maps; states read and written of nine
    assert long - 2 * short == pytest.approx(16 * 2 * 4 * 2560 * (2000**2 - 2 * 1000**2), rel=1e-9)


def test_factored_queries_leave_one_head_to_cache(models: dict[str, Model]) -> None:
    step = models["step-3"].architecture
    assert kv_cache_bytes(step, 1000) == 61 * 2 * 256 * 1000 * 2
    assert parameters(step).active == pytest.approx(38e9, rel=0.03)


def test_what_their_code_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="mb_per_layer"):
        read(tmp_path, {**FLASH, "mb_per_layer": 3})
    with pytest.raises(DataError, match="moe_layers_enum"):
        read(tmp_path, {"model_type": "step3_text", "moe_layers_enum": "4,77"})


@pytest.mark.parametrize("name", ["phi-3-small", "phi-4-mini-flash"])
@pytest.mark.parametrize("task", ["lora", "finetune", "inference"])
def test_they_train_and_answer(name: str, task: Any) -> None:
    found = llmfeas.estimate(model=name, device="h200-sxm", task=task)
    assert found.verdict.status in ("feasible", "tight", "infeasible")
    assert any("not measured" in note.message for note in found.warnings) == (task != "inference")

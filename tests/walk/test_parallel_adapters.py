"""Adapters as part of a model that is divided over ranks: what each rank holds and keeps of them."""

from __future__ import annotations

from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.model.setup import Recipe, Setup
from llmfeas.walk.candidates import PeakCandidates, RankState
from llmfeas.walk.fold import peak_candidates

IMPLEMENTATIONS = catalog().tables.implementations

LLAMA = catalog().models["llama-2-70b"].architecture
RANK = 16
PER_TOKEN = 3
"""Place of the coefficient of bs in a polynomial."""
NOTHING = RankState(weights=0.0, optimizer=0.0)


def moments(
    model: str = "llama-2-70b", tp: int = 1, layers: int = 8, kernels: str = "megatron", **asked: Any
) -> PeakCandidates:
    """The first layers of a model under adapters of its attention, on one rank."""
    architecture = catalog().models[model].architecture
    recipe = {
        "weight_bytes": 2,
        "autocast": False,
        "adapters": RANK,
        "adapt_mlp": False,
        "tp": tp,
        "expert_tp": tp,
        **asked,
    }
    return peak_candidates(
        Setup(
            architecture=architecture,
            implementation=IMPLEMENTATIONS.under(architecture.implementation, kernels),
            recipe=Recipe(**recipe),
            layers=layers,
        )
    )


def kept_per_layer(**asked: Any) -> int:
    """Bytes a token that one layer keeps."""
    few, many = (moments(layers=layers, **asked).kept.total[PER_TOKEN] for layers in (4, 5))
    return many - few


def expected(tp: int, spread: int) -> int:
    """The stream at both norms, a norm's output for the factors, attention, gate and up, products of factors."""
    a = LLAMA
    stream, whole = 2 * 2 * a.hidden // spread, 2 * a.hidden
    attention = 2 * (a.q_width + 2 * a.kv_width) + 2 * a.q_width
    feed_forward = 2 * 2 * (a.ffn or 0)
    log_sums, statistics = 4 * a.heads, 2 * 2 * 4
    return stream + whole + (attention + feed_forward + log_sums) // tp + statistics + 2 * 4 * RANK


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_a_layer_keeps_what_its_adapters_read_and_nothing_for_frozen_products(tp: int) -> None:
    assert kept_per_layer(tp=tp) == expected(tp, 1)


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_sequence_parallelism_divides_the_stream_but_not_what_a_column_split_factor_reads(tp: int) -> None:
    assert kept_per_layer(tp=tp, sequence_parallel=True) == expected(tp, tp)


@pytest.mark.parametrize("adapt_mlp", [False, True])
@pytest.mark.parametrize("tp", [2, 8])
@pytest.mark.parametrize("model", ["llama-2-70b", "gpt3-175b", "mixtral-8x7b", "deepseek-v3", "qwen3-32b"])
def test_sequence_parallelism_never_needs_more(model: str, tp: int, adapt_mlp: bool) -> None:
    with_it, without = (moments(model, tp, sequence_parallel=spread, adapt_mlp=adapt_mlp) for spread in (True, False))
    for batch, length in ((1, 512), (1, 8192), (8, 2048)):
        assert with_it.peak(batch, length, NOTHING).bytes <= without.peak(batch, length, NOTHING).bytes


def test_one_rank_is_spread_over_nothing() -> None:
    assert moments(sequence_parallel=True) == moments()


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_the_factors_of_all_ranks_add_up_to_the_whole_ones(tp: int) -> None:
    whole, part = moments(adapt_mlp=True), moments(tp=tp, adapt_mlp=True)
    assert part.inventory.trained * tp == whole.inventory.trained


def test_frozen_projections_in_one_byte_halve_and_nothing_else_does() -> None:
    a = LLAMA
    wide, narrow = moments(), moments(narrow_frozen=True)
    projections = a.hidden * (2 * a.q_width + 2 * a.kv_width + 3 * (a.ffn or 0))
    assert wide.weight_bytes - narrow.weight_bytes == 8 * projections
    assert narrow.kept.total == wide.kept.total
    assert narrow.gradient_bytes == wide.gradient_bytes


def test_what_a_factor_reads_is_kept_in_16_bits_beside_8_bit_products() -> None:
    assert moments(fp8=True).kept.total == moments().kept.total


def test_activations_may_keep_their_inputs_in_one_byte() -> None:
    saved = kept_per_layer() - kept_per_layer(narrow_activations=True)
    assert saved == 2 * (LLAMA.ffn or 0)


def test_factors_are_as_wide_as_the_model() -> None:
    assert moments().inventory.trained_width == 2
    assert moments(kernels="fused").inventory.trained_width == 4

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.catalog.architecture import Model
from llmfeas.model.sums import AttentionSpan, architecture_sums
from llmfeas.workload.flops import training_flop

LONG = 1 << 17


def test_matrices_that_a_token_meets_are_told_apart(models: dict[str, Model]) -> None:
    sums = architecture_sums(models["mixtral-8x7b"].architecture)
    layers, hidden, width, kv = 32, 4096, 14336, 1024
    assert sums.dense_weights == layers * (2 * hidden * hidden + 2 * hidden * kv + 8 * hidden)
    assert sums.routed_weights == layers * 8 * 3 * hidden * width
    assert sums.routed_active == sums.routed_weights / 4
    assert (sums.moe_layers, sums.head_weights) == (layers, 32000 * hidden)
    assert architecture_sums(models["gpt2"].architecture).head_weights == 50257 * 768


def test_flops_over_the_full_square_are_those_of_the_flop_fold(models: dict[str, Model]) -> None:
    for name in ("gpt2-xl", "llama-3-8b", "mixtral-8x7b", "deepseek-v3", "gemma-3-27b", "gpt-oss-20b"):
        sums = architecture_sums(models[name].architecture)
        forward = 2 * (sums.active + sums.head_weights) + sums.attention_square_flop(1024)
        counted = training_flop(models[name].architecture, 1024.0, 1024).forward_per_token
        assert forward == pytest.approx(counted, rel=1e-3), name


@given(st.integers(1, LONG), st.integers(1, LONG))
def test_a_causal_block_sees_half_of_the_square_and_a_window_less(tokens: int, window: int) -> None:
    whole = AttentionSpan(blocks=1, width=1.0, cached=1, window=None)
    narrow = AttentionSpan(blocks=1, width=1.0, cached=1, window=window)
    assert whole.seen(tokens) == tokens / 2
    assert 0 < narrow.seen(tokens) <= whole.seen(tokens) * (1 + 1e-12)
    assert narrow.cached_values(tokens) == min(tokens, window)


@given(st.integers(1, LONG), st.integers(1, LONG), st.sampled_from((1, 2, 4, 8, 16)))
def test_ranks_divide_the_heads_of_a_cache_and_read_copies_of_what_is_left(
    tokens: int, window: int, ranks: int
) -> None:
    span = AttentionSpan(blocks=3, width=1.0, cached=8, window=window, parts=4, reading_flop=10.0)
    assert span.cached_values(tokens, ranks) == 24 * min(tokens, window) / min(ranks, 4)
    assert span.decode_flop(tokens) == 30 * min(tokens, window)


def test_a_decoding_token_multiplies_all_heads_with_latents_as_they_are_cached(models: dict[str, Model]) -> None:
    sums = architecture_sums(models["deepseek-v3"].architecture)
    assert sums.decode_flop(1000) == 61 * 128 * 2 * (512 + 64 + 512) * 1000
    assert sums.cached_values(1000, 8) == sums.cached_values(1000)
    grouped = architecture_sums(models["qwen3-235b-a22b"].architecture)
    assert grouped.cached_values(1000, 8) == grouped.cached_values(1000) / 4
    sparse = architecture_sums(models["deepseek-v3.2"].architecture)
    assert sparse.cached_values(100_000) == 61 * (2048 * 576 + 100_000 * 128)
    assert sparse.decode_flop(100_000) == 61 * 2 * (128 * (512 + 64 + 512) * 2048 + 64 * 128 * 100_000)
    assert sparse.prompt_flop(100_000) < sums.prompt_flop(100_000) / 2
    assert sparse.prompt_flop(2048) > sums.prompt_flop(2048) == sums.attention_flop(2048)
    assert sparse.prompt_flop(4096) > 2 * sparse.prompt_flop(4096, least=True)
    hybrid = architecture_sums(models["falcon-h1-0.5b"].architecture)
    assert hybrid.decode_flop(1000) == 36 * 8 * 4 * 64 * 1000


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("llama-2-7b", 2 * 32 * 4096),
        ("deepseek-v3", 61 * 576),
        ("longcat-flash", 56 * 576),
        ("qwen3-next-80b-a3b", 12288),
    ],
)
def test_cached_values_of_a_token(models: dict[str, Model], name: str, values: int) -> None:
    assert architecture_sums(models[name].architecture).cached_values(1) == values


def test_a_recurrent_state_stands_for_the_cache_of_linear_layers(models: dict[str, Model]) -> None:
    sums = architecture_sums(models["qwen3-next-80b-a3b"].architecture)
    assert sums.state_bytes == 36 * 32 * 128 * 128 * 4
    assert sum(span.blocks for span in sums.spans) == 12

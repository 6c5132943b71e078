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

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from llmfeas.catalog.architecture import Architecture, Experts, Model, Window
from llmfeas.model.attention import Attention
from llmfeas.model.build import build
from llmfeas.model.delta import DeltaRule
from llmfeas.model.experts import RoutedExperts
from llmfeas.model.feedforward import FeedForward
from llmfeas.model.head import Head
from llmfeas.model.latent import LatentAttention
from llmfeas.model.norm import Norm

PLAIN = Architecture(layers=6, hidden=64, heads=4, vocab=100, ffn=128)


def kinds(block: object) -> list[str]:
    return [type(operator).__name__ for operator in block.operators]  # type: ignore[attr-defined]


def test_equal_layers_stand_once_with_their_count() -> None:
    tape = build(PLAIN)
    assert [block.repeat for block in tape.blocks] == [6]
    assert kinds(tape.blocks[0]) == ["Norm", "Attention", "Norm", "FeedForward"]


def test_kinds_of_layers_in_the_order_of_their_first(models: dict[str, Model]) -> None:
    deepseek = build(models["deepseek-v3"].architecture)
    assert [(block.first, block.repeat) for block in deepseek.blocks] == [(0, 3), (3, 58)]
    assert isinstance(deepseek.blocks[0].operators[-1], FeedForward)
    assert isinstance(deepseek.blocks[1].operators[-1], RoutedExperts)
    qwen = build(models["qwen3-next-80b-a3b"].architecture)
    assert [(type(block.operators[1]), block.repeat) for block in qwen.blocks] == [(DeltaRule, 36), (Attention, 12)]
    gemma = build(models["gemma-3-1b"].architecture)
    assert [(block.operators[1].reach, block.repeat) for block in gemma.blocks] == [(512, 22), (None, 4)]


def test_every_catalog_model_unrolls_to_all_its_layers(models: dict[str, Model]) -> None:
    for model in models.values():
        tape = build(model.architecture)
        assert sum(block.repeat for block in tape.blocks) == model.architecture.layers
        assert isinstance(tape.after[-1], Head)


def test_norms_stand_where_the_architecture_puts_them() -> None:
    assert kinds(build(replace(PLAIN, norms_per_layer=4)).blocks[0]) == [
        "Norm",
        "Attention",
        "Norm",
        "Norm",
        "FeedForward",
        "Norm",
    ]
    assert kinds(build(replace(PLAIN, norm_position="post")).blocks[0]) == ["Attention", "Norm", "FeedForward", "Norm"]
    assert kinds(build(replace(PLAIN, norms_per_layer=1)).blocks[0]) == ["Norm", "Attention", "FeedForward"]


def test_longcat_has_two_attention_blocks_and_its_experts_beside_the_first_feed_forward(
    models: dict[str, Model],
) -> None:
    (block,) = build(models["longcat-flash"].architecture).blocks
    found = [type(operator) for operator in block.operators]
    half = [Norm, LatentAttention, Norm]
    assert found == [*half, RoutedExperts, FeedForward, *half, FeedForward]


def test_equal_architectures_share_one_tape() -> None:
    again = pickle.loads(pickle.dumps(PLAIN))
    assert again == PLAIN
    assert hash(again) == hash(PLAIN)
    assert build(again) is build(PLAIN)


def test_heads_have_defaults() -> None:
    assert (PLAIN.kv_heads, PLAIN.head_dim) == (4, 16)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"heads": 5}, "head_dim"),
        ({"kv_heads": 8}, "kv_heads"),
        ({"kv_heads": 3}, "does not divide"),
        ({"ffn": None}, "ffn"),
        ({"ffn": None, "experts": Experts(count=4, top_k=1, width=8, first_dense_layers=1)}, "layer 0"),
        ({"experts": Experts(count=4, top_k=5, width=8)}, "top_k"),
        ({"positions": "learned"}, "learned_positions"),
    ],
)
def test_impossible_shapes_are_refused(change: dict[str, object], said: str) -> None:
    fields = {"layers": 6, "hidden": 64, "heads": 4, "vocab": 100, "ffn": 128} | change
    with pytest.raises(ValueError, match=said):
        Architecture(**fields)  # type: ignore[arg-type]


def test_windows_come_in_groups() -> None:
    local_first = replace(PLAIN, window=Window(size=8, local=2, full=1))
    assert [local_first.window_of(i) for i in range(6)] == [8, 8, None, 8, 8, None]
    full_first = replace(PLAIN, window=Window(size=8, local=1, full=1, full_first=True))
    assert [full_first.window_of(i) for i in range(4)] == [None, 8, None, 8]

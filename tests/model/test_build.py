from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from llmfeas.catalog.architecture import Architecture, LayerKind, Model, runs_of
from llmfeas.catalog.parts import Experts, Window
from llmfeas.model.build import build
from llmfeas.model.experts import RoutedExperts
from llmfeas.model.feedforward import FeedForward
from llmfeas.model.head import Head
from llmfeas.model.layer import Layer
from llmfeas.model.mixers.attention import Attention
from llmfeas.model.mixers.delta import DeltaRule
from llmfeas.model.mixers.latent import LatentAttention
from llmfeas.model.norm import Norm

PLAIN = Architecture(layers=6, hidden=64, heads=4, vocab=100, ffn=128)


def kinds(layer: Layer) -> list[str]:
    return [type(operator).__name__ for operator in layer.operators]


def test_equal_layers_stand_once_with_their_count() -> None:
    tape = build(PLAIN)
    assert [repeat for _, repeat in tape.kinds] == [6]
    assert kinds(tape.kinds[0][0]) == ["Norm", "Attention", "Norm", "FeedForward"]


def test_kinds_of_layers_in_the_order_of_their_first(models: dict[str, Model]) -> None:
    deepseek = build(models["deepseek-v3"].architecture)
    assert deepseek.layers == (*(0,) * 3, *(1,) * 58)
    assert isinstance(deepseek.kinds[0][0].operators[-1], FeedForward)
    assert isinstance(deepseek.kinds[1][0].operators[-1], RoutedExperts)
    qwen = build(models["qwen3-next-80b-a3b"].architecture)
    assert [(type(layer.operators[1]), repeat) for layer, repeat in qwen.kinds] == [(DeltaRule, 36), (Attention, 12)]
    gemma = build(models["gemma-3-1b"].architecture)
    assert [(layer.window, repeat) for layer, repeat in gemma.kinds] == [(512, 22), (None, 4)]


def test_every_catalog_model_unrolls_to_all_its_layers(models: dict[str, Model]) -> None:
    for model in models.values():
        tape = build(model.architecture)
        assert sum(repeat for _, repeat in tape.kinds) == len(tape.layers) == model.architecture.layers
        assert isinstance(tape.after[-1], Head)


def test_norms_stand_where_the_architecture_puts_them() -> None:
    assert kinds(build(replace(PLAIN, norms_per_layer=4)).kinds[0][0]) == [
        "Norm",
        "Attention",
        "Norm",
        "Norm",
        "FeedForward",
        "Norm",
    ]
    assert kinds(build(replace(PLAIN, norm_position="post")).kinds[0][0]) == [
        "Attention",
        "Norm",
        "FeedForward",
        "Norm",
    ]
    assert kinds(build(replace(PLAIN, norms_per_layer=1)).kinds[0][0]) == ["Norm", "Attention", "FeedForward"]


def test_longcat_has_two_attention_blocks_and_its_experts_beside_the_first_feed_forward(
    models: dict[str, Model],
) -> None:
    ((layer, _),) = build(models["longcat-flash"].architecture).kinds
    found = [type(operator) for operator in layer.operators]
    half = [Norm, LatentAttention, Norm]
    assert found == [*half, RoutedExperts, FeedForward, *half, FeedForward]


def test_layers_that_follow_no_rule_are_listed() -> None:
    experts = Experts(count=4, top_k=1, width=8)
    listed = replace(
        PLAIN,
        window=Window(size=8, full=1),
        experts=experts,
        layer_runs=(LayerKind(times=2, windowed=True), LayerKind(feed_forward="experts"), LayerKind(times=3)),
    )
    tape = build(listed)
    assert tape.layers == (0, 0, 1, 2, 2, 2)
    assert [(layer.window, kinds(layer)[-1], repeat) for layer, repeat in tape.kinds] == [
        (8, "FeedForward", 2),
        (None, "RoutedExperts", 1),
        (None, "FeedForward", 3),
    ]
    assert runs_of(listed.layer_kinds) == listed.layer_runs


@pytest.mark.parametrize("name", ["gemma-3-1b", "llama-4-scout", "deepseek-v3", "qwen3-next-80b-a3b", "smollm3-3b"])
def test_a_rule_and_the_list_of_what_it_says_make_one_tape(models: dict[str, Model], name: str) -> None:
    ruled = models[name].architecture
    listed = replace(ruled, layer_runs=runs_of(ruled.layer_kinds))
    assert listed.layer_kinds == ruled.layer_kinds
    assert build(listed) == build(ruled)


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
        ({"layer_runs": (LayerKind(times=5),)}, "names 5 of 6 layers"),
        ({"layer_runs": (LayerKind(times=6, windowed=True),)}, "that window has to describe"),
        ({"layer_runs": (LayerKind(times=6, mixer="linear_attention"),)}, "that linear_attention has to describe"),
        ({"ffn": None, "layer_runs": (LayerKind(times=6),)}, "layer 0"),
    ],
)
def test_impossible_shapes_are_refused(change: dict[str, object], said: str) -> None:
    fields = {"layers": 6, "hidden": 64, "heads": 4, "vocab": 100, "ffn": 128} | change
    with pytest.raises(ValueError, match=said):
        Architecture(**fields)  # type: ignore[arg-type]


def test_windows_come_in_groups() -> None:
    local_first = replace(PLAIN, window=Window(size=8, local=2, full=1))
    assert [kind.windowed for kind in local_first.layer_kinds] == [True, True, False] * 2
    full_first = replace(PLAIN, window=Window(size=8, local=1, full=1, full_first=True))
    assert [kind.windowed for kind in full_first.layer_kinds] == [False, True] * 3

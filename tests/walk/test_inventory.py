"""What a walk allocates for weights is what the operators of the model hold: all of it, on a rank, and adapters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest

from llmfeas.catalog.architecture import Architecture, Model
from llmfeas.catalog.store import catalog
from llmfeas.model.build import build
from llmfeas.model.setup import Recipe, Setup
from llmfeas.model.weight import VOCAB_GRAIN
from llmfeas.walk.fold import peak_candidates
from llmfeas.walk.inventory import Inventory
from llmfeas.workload.parameters import parameters

COUNTED = {
    row["id"]: row["total"]
    for row in json.loads((Path(__file__).parent.parent / "data" / "param_counts.json").read_text())["rows"]
}
MODELS = {name: model.architecture for name, model in catalog().models.items() if name in COUNTED}
OTHERS = {model.architecture.implementation: model.architecture for model in catalog().models.values()}
"""One model of each implementation."""
RANKS = 2


def inventory(a: Architecture, tp: int = 1, adapters: int = 0, targets: str = "all-linear") -> Inventory:
    recipe = Recipe(
        weight_bytes=2, autocast=False, tp=tp, expert_tp=tp, adapters=adapters, adapt_mlp=targets == "all-linear"
    )
    traits = catalog().tables.implementations.public(a.implementation)
    return peak_candidates(Setup(architecture=a, implementation=traits, recipe=recipe)).inventory


@pytest.mark.parametrize("name", MODELS)
def test_a_walk_holds_the_published_number_of_weights(name: str) -> None:
    assert inventory(MODELS[name]).elements == COUNTED[name]


@pytest.mark.parametrize("name", OTHERS)
def test_a_walk_of_every_implementation_holds_the_weights_that_are_counted(name: str) -> None:
    assert inventory(OTHERS[name]).elements == parameters(OTHERS[name]).total


ADAPTED_BESIDE = ("opt-350m", "gopher", "chinchilla", "longcat-flash-lite", "longcat-2.0")
"""Whose projections outside attention and feed-forward a walk adapts whatever the targets."""


@pytest.mark.parametrize("targets", ["all-linear", "attention"])
def test_a_walk_trains_the_adapters_that_are_counted(
    models: dict[str, Model], targets: Literal["all-linear", "attention"]
) -> None:
    for name, a in MODELS.items():
        if not name.startswith(ADAPTED_BESIDE):
            traits = catalog().tables.implementations.public(a.implementation)
            counted = parameters(a, 16, targets, traits=traits).trainable
            assert inventory(a, adapters=16, targets=targets).trained == counted, name


def divides(a: Architecture) -> bool:
    """Nothing of it is left over on a rank."""
    linear = a.linear_attention
    widths = [a.heads, a.kv_heads, a.ffn or 0, a.vocab // VOCAB_GRAIN]
    widths += [a.experts.width] if a.experts else []
    widths += [linear.key_heads, linear.value_heads] if linear else []
    whole = a.ngram is None and a.indexer is None and a.embedding_dim in (None, a.hidden) and a.qk_norm != "full"
    return whole and not a.vocab % VOCAB_GRAIN and not any(width % RANKS for width in widths)


@pytest.mark.parametrize("name", [name for name, a in MODELS.items() if divides(a)])
def test_a_rank_holds_its_part_of_what_divides_and_all_of_the_rest(name: str) -> None:
    a = MODELS[name]
    parts = (
        repeat * weight.elements // (1 if weight.split == "none" else RANKS)
        for operator, repeat in build(a).operators
        for weight in operator.weights
    )
    assert inventory(a, tp=RANKS).elements == sum(parts)

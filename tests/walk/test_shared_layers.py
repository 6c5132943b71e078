"""Layers that run again share weights, gradients and states; what they keep for backward is each run's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmfeas.autograd.storage import COMPONENT_BITS, COMPONENTS, FIELD_MASK, GRADIENTS, WEIGHTS, numeric_sizes
from llmfeas.catalog.architecture import Architecture, LayerKind
from llmfeas.catalog.parts import SharedBlock, StateSpace
from llmfeas.catalog.store import catalog
from llmfeas.model.setup import Recipe, Setup
from llmfeas.walk.candidates import RankState
from llmfeas.walk.fold import peak_candidates
from llmfeas.walk.pattern import outline_of
from llmfeas.walk.step import walked_step

IMPLEMENTATIONS = catalog().tables.implementations
LOOPED = Architecture(layers=24, held_layers=6, loop_norm=True, hidden=256, heads=4, ffn=704, vocab=512)
ONE = replace(LOOPED, layers=7, held_layers=1, loop_norm=False)
MAMBA, HYBRID = (LayerKind(mixer="state_space", feed_forward="none", weight_set=number) for number in (0, 1))
SHARED_BLOCK = Architecture(
    layers=12,
    hidden=256,
    heads=4,
    head_dim=128,
    ffn=1024,
    vocab=512,
    norms_per_layer=1,
    state_space=StateSpace(heads=8, head_dim=64, state=16),
    shared_block=SharedBlock(adapter_rank=8, adapts_attention=True),
    fused_gate_up=True,
    layer_runs=(
        *(replace(MAMBA, times=3), HYBRID, replace(MAMBA, times=3), replace(HYBRID, weight_set=2)),
        *(replace(MAMBA, times=2), HYBRID, MAMBA),
    ),
)
DEEP = replace(LOOPED, layers=36, held_layers=12)
MODELS = {"looped": LOOPED, "looped, deep": DEEP, "one layer": ONE, "shared block": SHARED_BLOCK}
RECIPES = {
    "mixed": Recipe(weight_bytes=4, autocast=True),
    "pure": Recipe(weight_bytes=2, autocast=False),
    "checkpointed": Recipe(weight_bytes=2, autocast=False, checkpointing="full"),
    "adapters": Recipe(weight_bytes=2, autocast=True, adapters=16),
    "eager": Recipe(weight_bytes=4, autocast=False, eager=True),
}
B, S = 3, 512


def setup(model: str, recipe: str = "pure") -> Setup:
    implementation = "hf-hybrid" if model == "shared block" else "hf-llama"
    architecture = replace(MODELS[model], implementation=implementation)
    traits = IMPLEMENTATIONS.public(implementation)
    return Setup(architecture=architecture, implementation=traits, recipe=RECIPES[recipe])


def bytes_of(level: int) -> int:
    return sum(level >> COMPONENT_BITS * part & FIELD_MASK for part in range(len(COMPONENTS)))


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("model", MODELS)
def test_the_fold_agrees_with_the_plain_walk(model: str, recipe: str) -> None:
    asked = setup(model, recipe)
    walked = walked_step(asked, numeric_sizes(B, S))
    plain = max(bytes_of(level) for level, _, _ in walked.marks)
    held = RankState(weights=walked.start >> WEIGHTS & FIELD_MASK, optimizer=0.0)
    peak = peak_candidates(asked).peak(B, S, held)
    assert max(peak.bytes, plain if peak.moment == "optimizer" else 0) == pytest.approx(plain, rel=1e-4)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("model", MODELS)
def test_the_fold_holds_each_weight_and_its_gradient_once(model: str, recipe: str) -> None:
    asked = setup(model, recipe)
    walked, found = walked_step(asked, numeric_sizes(B, S)), peak_candidates(asked)
    assert found.weight_bytes == walked.start >> WEIGHTS & FIELD_MASK
    assert found.gradient_bytes == walked.end >> GRADIENTS & FIELD_MASK
    assert found.inventory.elements == sum(_elements(weight.shape) for weight in walked.weights)


def _elements(shape: tuple[int, ...]) -> int:
    found = 1
    for extent in shape:
        found *= extent
    return found


def test_a_loop_of_more_layers_takes_no_longer_walk() -> None:
    walked = [
        len(outline_of(setup(model), tail=2).walked) / loops for model, loops in (("looped", 4), ("looped, deep", 3))
    ]
    assert walked[0] == walked[1] < LOOPED.held_layers


def test_a_second_loop_adds_what_it_keeps_and_no_weight() -> None:
    asked = setup("looped")
    shorter = replace(asked, architecture=replace(asked.architecture, layers=18))
    longer, short = (walked_step(each, numeric_sizes(B, S)) for each in (asked, shorter))
    assert bytes_of(longer.start) == bytes_of(short.start)
    assert bytes_of(longer.end) == bytes_of(short.end)
    assert bytes_of(longer.kept) > bytes_of(short.kept)

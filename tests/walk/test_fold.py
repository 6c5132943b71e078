"""The fold gives what the plain walk gives, at any depth, batch and length."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmfeas.autograd.storage import COMPONENT_BITS, COMPONENTS, FIELD_MASK, ONE_TENSOR, WEIGHTS, numeric_sizes
from llmfeas.catalog.architecture import Architecture, LayerKind, runs_of
from llmfeas.catalog.parts import Experts, LinearAttention, Window
from llmfeas.catalog.store import catalog
from llmfeas.model.setup import Recipe, Setup
from llmfeas.walk.candidates import Line, RankState, upper_lines
from llmfeas.walk.fold import peak_candidates
from llmfeas.walk.inventory import StageWeights
from llmfeas.walk.step import walked_step

IMPLEMENTATIONS = catalog().tables.implementations

MODELS = {
    "gpt2": 9,
    "pythia-1b": 6,
    "llama-3.2-1b": 8,
    "gemma-3-1b": 26,
    "deepseek-v2-lite": 9,
    "qwen3-next-80b-a3b": 16,
    "llama-4-scout": 16,
    "gpt-oss-20b": 10,
    "falcon-7b": 7,
    "longcat-flash": 5,
    "phi-4-mini-flash": 32,
    "flan-t5-base": 6,
    "bart-base": 4,
    "whisper-small": 5,
    "t5gemma-b-b": 12,
}
RECIPES = {
    "mixed": Recipe(weight_bytes=4, autocast=True),
    "pure, checkpointed": Recipe(weight_bytes=2, autocast=False, checkpointing="full"),
    "selective": Recipe(weight_bytes=2, autocast=False, checkpointing="selective"),
    "adapters": Recipe(weight_bytes=2, autocast=True, adapters=16, checkpointing="full"),
    "adapters, inputs held": Recipe(
        weight_bytes=2, autocast=True, adapters=16, checkpointing="full", holds_inputs=True
    ),
    "eager": Recipe(weight_bytes=4, autocast=False, eager=True),
    "eager, checkpointed": Recipe(weight_bytes=2, autocast=True, eager=True, adapters=16, checkpointing="full"),
}


def bytes_of(level: int) -> int:
    bits = COMPONENT_BITS
    return sum(level >> bits * part & FIELD_MASK for part in range(len(COMPONENTS)))


def setup(model: str, recipe: Recipe) -> Setup:
    a: Architecture = replace(catalog().models[model].architecture, layers=MODELS[model])
    traits = IMPLEMENTATIONS.public(a.implementation)
    return Setup(
        architecture=a,
        implementation=traits,
        recipe=replace(recipe, eager=recipe.eager or traits.eager_only, windowed=a.window is not None),
    )


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
@pytest.mark.parametrize("model", MODELS)
def test_the_fold_agrees_with_the_plain_walk_within_a_hundredth_of_a_percent(model: str, recipe: Recipe) -> None:
    asked = setup(model, recipe)
    b, s = 3, 512
    walked = walked_step(asked, numeric_sizes(b, s))
    plain = max(bytes_of(level) for level, _, _ in walked.marks)
    moments = peak_candidates(asked)
    held = RankState(weights=walked.start >> WEIGHTS & FIELD_MASK, optimizer=0.0)
    peak = moments.peak(b, s, held)
    folded = max(peak.bytes, plain if peak.moment == "optimizer" else 0)
    assert folded == pytest.approx(plain, rel=1e-4)
    back = sum(made for (moment, _), made in walked.made.items() if moment == "backward") // ONE_TENSOR
    assert moments.backward == pytest.approx(back, rel=0.01)
    assert moments.forward == pytest.approx(sum(walked.made.values()) // ONE_TENSOR - back, rel=0.01)
    written = sum(made for (moment, _), made in walked.made.items() if moment == "forward") % ONE_TENSOR
    assert moments.written_bytes(b, s) == pytest.approx(written, rel=0.001)


@pytest.mark.parametrize("model", ["gpt2", "gemma-3-1b", "deepseek-v2-lite", "qwen3-next-80b-a3b"])
def test_a_stage_in_the_midst_of_a_model_folds_to_its_own_plain_walk(model: str) -> None:
    whole = setup(model, RECIPES["pure, checkpointed"])
    layers = MODELS[model] // 2
    stage = replace(whole, first_layer=MODELS[model] - layers, layers=layers, embeds=False)
    b, s = 3, 512
    walked = walked_step(stage, numeric_sizes(b, s))
    plain = max(bytes_of(level) for level, _, _ in walked.marks)
    held = RankState(weights=walked.start >> WEIGHTS & FIELD_MASK, optimizer=0.0)
    assert peak_candidates(stage).peak(b, s, held).bytes == pytest.approx(plain, rel=1e-4)


@pytest.mark.parametrize("first, layers", [(0, 21), (20, 10), (21, 21)])
def test_stages_of_embeddings_of_each_layer_and_of_lent_keys_fold(first: int, layers: int) -> None:
    a = catalog().models["gemma-4-e4b"].architecture
    stage = Setup(
        architecture=a,
        implementation=IMPLEMENTATIONS.public(a.implementation),
        recipe=replace(RECIPES["mixed"], windowed=True),
        first_layer=first,
        layers=layers,
        embeds=first == 0,
        heads=first + layers == a.layers,
    )
    walked, found = walked_step(stage, numeric_sizes(3, 512)), peak_candidates(stage)
    held = RankState(weights=walked.start >> WEIGHTS & FIELD_MASK, optimizer=0.0)
    plain = max(bytes_of(level) for level, _, _ in walked.marks)
    assert found.peak(3, 512, held).bytes == pytest.approx(plain, rel=1e-4)
    assert not any(found.streamed)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
@pytest.mark.parametrize(
    "model", ["gpt2", "pythia-1b", "falcon-7b", "gpt-oss-20b", "longcat-flash", "qwen3-next-80b-a3b"]
)
def test_a_first_stage_without_head_folds_to_its_own_plain_walk(model: str, recipe: Recipe) -> None:
    whole = setup(model, recipe)
    stage = replace(whole, layers=MODELS[model] - 1, heads=False)
    b, s = 3, 512
    walked = walked_step(stage, numeric_sizes(b, s))
    plain = max(bytes_of(level) for level, _, _ in walked.marks)
    held = RankState(weights=walked.start >> WEIGHTS & FIELD_MASK, optimizer=0.0)
    assert peak_candidates(stage).peak(b, s, held).bytes == pytest.approx(plain, rel=1e-4)


KINDS = st.builds(
    LayerKind,
    mixer=st.sampled_from(["attention", "linear_attention"]),
    feed_forward=st.sampled_from(["dense", "experts"]),
    windowed=st.booleans(),
    rotates=st.booleans(),
)
HYBRID = Architecture(
    layers=1,
    hidden=128,
    heads=4,
    kv_heads=2,
    vocab=1000,
    ffn=256,
    window=Window(size=64),
    linear_attention=LinearAttention(key_heads=2, value_heads=4, key_head_dim=16, value_head_dim=16, conv_kernel=4),
    experts=Experts(count=4, top_k=2, width=64),
)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(KINDS, st.integers(1, 3)), min_size=1, max_size=6),
    st.sampled_from([RECIPES["mixed"], RECIPES["pure, checkpointed"], RECIPES["eager"]]),
)
def test_layers_in_any_order_fold_to_their_plain_walk(runs: list[tuple[LayerKind, int]], recipe: Recipe) -> None:
    kinds = [kind for kind, times in runs for _ in range(times)]
    asked = Setup(
        architecture=replace(HYBRID, layers=len(kinds), layer_runs=runs_of(kinds)),
        implementation=IMPLEMENTATIONS.public("hf-llama"),
        recipe=replace(recipe, windowed=True),
    )
    b, s = 3, 512
    walked = walked_step(asked, numeric_sizes(b, s))
    plain = max(bytes_of(level) for level, _, _ in walked.marks)
    held = RankState(weights=walked.start >> WEIGHTS & FIELD_MASK, optimizer=0.0)
    peak = peak_candidates(asked).peak(b, s, held)
    assert peak.bytes >= plain * (1 - 1e-4)
    assert peak.moment == "optimizer" or peak.bytes <= plain * (1 + 1e-3)


@pytest.mark.parametrize("recipe", ["mixed", "adapters"])
@pytest.mark.parametrize(
    "model", ["deepseek-v2-lite", "gpt-oss-20b", "qwen3-next-80b-a3b", "llama-4-scout", "longcat-flash"]
)
def test_a_walk_for_any_number_of_experts_gives_that_of_each(
    monkeypatch: pytest.MonkeyPatch, model: str, recipe: str
) -> None:
    def found(experts: int) -> tuple[object, ...]:
        asked = setup(model, replace(RECIPES[recipe], rank_experts=experts))
        moments = peak_candidates.__wrapped__(asked)
        held = RankState(weights=float(moments.weight_bytes), optimizer=0.0)
        peaks = [moments.peak(b, s, held) for b in (1, 8) for s in (128, 2048)]
        return moments.weight_bytes, moments.gradient_bytes, moments.inventory, peaks

    numbers = (1, 2, 4, 7, 16)
    together = [found(experts) for experts in numbers]
    monkeypatch.setattr(StageWeights, "rounded", lambda weights, experts: True)
    assert together == [found(experts) for experts in numbers]


candidate = peak_candidates(setup("gpt2", RECIPES["mixed"])).end


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=12),
    st.integers(1, 500),
)
def test_the_upper_lines_reach_the_highest_level_for_every_batch(pairs: list[tuple[int, int]], b: int) -> None:
    lines: list[Line] = [(float(intercept), float(slope), candidate) for intercept, slope in pairs]
    kept = upper_lines(lines)
    assert max(i + s * b for i, s, _ in kept) == max(i + s * b for i, s, _ in lines)
    assert len(kept) <= len(lines)

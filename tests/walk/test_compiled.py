"""What a compiled step keeps, against steps that torch's partitioner cut and inductor wrote (tests/data)."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from levels import level_bytes

from llmfeas.autograd.storage import numeric_sizes
from llmfeas.catalog.store import catalog
from llmfeas.model.setup import Recipe, Setup
from llmfeas.walk.fold import peak_candidates
from llmfeas.walk.step import Walked, walked_step

IMPLEMENTATIONS = catalog().tables.implementations

ROWS = json.loads((Path(__file__).parents[1] / "data" / "compiled_memory.json").read_text())["rows"]


def label(row: dict[str, Any]) -> str:
    return "-".join(str(value) for value in row["scenario"].values())


def setup_of(scenario: dict[str, Any], kernels: str) -> Setup:
    a = catalog().models[scenario["model"]].architecture
    traits = IMPLEMENTATIONS.under(a.implementation, kernels) if kernels else IMPLEMENTATIONS.public(a.implementation)
    precision, drops, rank = scenario["precision"], scenario["dropout"] > 0, scenario.get("lora_rank", 0)
    recipe = Recipe(
        weight_bytes=2 if precision == "bf16" or rank else 4,
        autocast=precision.endswith("-mixed"),
        adapters=rank,
        eager=scenario["attention"] == "eager",
        drop_embedding=drops and traits.drops_embedding and a.dropout.embedding > 0,
        drop_attention=drops and traits.drops_attention and a.dropout.attention > 0,
        drop_residual=drops and traits.drops_residual and a.dropout.residual > 0,
    )
    return Setup(
        architecture=replace(a, vocab=scenario.get("vocab", a.vocab)),
        implementation=traits,
        recipe=recipe,
        layers=scenario["layers"],
    )


def walked(scenario: dict[str, Any], kernels: str = "compiled") -> Walked:
    setup = setup_of(scenario, kernels)
    return walked_step(setup, numeric_sizes(scenario["micro_batch"], scenario["seq_len"]))


def peak_bytes(walk: Walked) -> int:
    return max(level_bytes(level) for level, _, _ in walk.marks) - level_bytes(walk.start)


@cache
def errors() -> dict[str, tuple[float, float]]:
    """Relative errors of kept bytes and of the peak, by row."""
    found = {}
    for row in ROWS:
        walk, measured = walked(row["scenario"]), row["measured"]
        kept = level_bytes(walk.kept) - level_bytes(walk.start)
        peak = max(measured["forward_peak_bytes"], measured["backward_peak_bytes"])
        found[label(row)] = kept / measured["kept_bytes"] - 1, peak_bytes(walk) / peak - 1
    return found


@pytest.mark.parametrize("name", sorted(label(row) for row in ROWS))
def test_kept_bytes_are_those_of_the_compiled_step(name: str) -> None:
    # Eager attention under autocast: the first layer, of four, keeps 2-byte scores where the others keep fp32 weights.
    assert abs(errors()[name][0]) < 0.055


@pytest.mark.parametrize("name", sorted(label(row) for row in ROWS))
def test_peaks_are_those_of_the_compiled_step(name: str) -> None:
    # A tied table in fp32: the compiler runs the head's last product at the end, and the gradient of the logits waits.
    assert abs(errors()[name][1]) < (0.11 if name.startswith("gpt2-4-fp32-1-256") else 0.055)


def test_half_of_the_compiled_steps_are_met_within_a_percent_or_so() -> None:
    kept, peaks = zip(*errors().values(), strict=True)
    assert median(map(abs, kept)) < 0.003
    assert median(map(abs, peaks)) < 0.0125


def test_gradients_are_those_of_the_compiled_step() -> None:
    for row in ROWS:
        walk = walked(row["scenario"])
        gradients = level_bytes(walk.end) - level_bytes(walk.start)
        assert gradients == pytest.approx(row["measured"]["gradient_bytes"], rel=1e-3)


def test_compiling_saves_most_where_activations_and_loss_are_written_out() -> None:
    gpt = next(row["scenario"] for row in ROWS if row["scenario"]["model"] == "gpt2")
    assert peak_bytes(walked(gpt, "")) > 3 * peak_bytes(walked(gpt))


@pytest.mark.parametrize("name", IMPLEMENTATIONS.names)
def test_a_compiler_leaves_what_the_public_code_asks_for(name: str) -> None:
    public, own = IMPLEMENTATIONS.public(name), IMPLEMENTATIONS.under(name, "compiled")
    assert own.compiled and IMPLEMENTATIONS.compiles("compiled") and not IMPLEMENTATIONS.compiles("fused")
    kept = ("qkv", "scores", "eager_only", "every_expert", "drops_residual", "router", "layer_buffer_bytes")
    assert [getattr(own, trait) for trait in kept] == [getattr(public, trait) for trait in kept]


MODELS = {model.architecture.implementation: model.architecture for model in catalog().models.values()}


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("checkpointing", ["none", "selective", "full"])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_compiled_code_never_keeps_more_than_public_code(name: str, checkpointing: str, autocast: bool) -> None:
    architecture = MODELS[name]
    # a loss on 16-bit logits as they are keeps less than any kernel's copy in fp32
    wide = autocast or IMPLEMENTATIONS.public(name).loss == "plain"
    public, compiled = (
        peak_candidates(
            Setup(
                architecture=architecture,
                implementation=traits,
                recipe=Recipe(weight_bytes=4 if wide else 2, autocast=autocast, checkpointing=checkpointing),
                layers=min(4, architecture.layers),
            )
        )
        for traits in (IMPLEMENTATIONS.public(name), IMPLEMENTATIONS.under(name, "compiled"))
    )
    assert compiled.kept.total[3] <= 1.0004 * public.kept.total[3]
    assert compiled.weight_bytes == pytest.approx(public.weight_bytes, rel=1e-3)
    assert compiled.gradient_bytes == pytest.approx(public.gradient_bytes, rel=1e-3)

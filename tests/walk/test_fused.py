"""What fused kernels keep, against the closed forms of Korthikanti 2022 (section 4) and their like for gated blocks."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.model.setup import Recipe, Setup
from llmfeas.walk.candidates import PeakCandidates
from llmfeas.walk.fold import peak_candidates

IMPLEMENTATIONS = catalog().tables.implementations

PER_TOKEN = 3
"""Place of the coefficient of bs in a polynomial."""


def moments(model: str, layers: int, **recipe: bool) -> PeakCandidates:
    architecture = catalog().models[model].architecture
    return peak_candidates(
        Setup(
            architecture=architecture,
            implementation=IMPLEMENTATIONS.under(architecture.implementation, "fused"),
            recipe=Recipe(weight_bytes=2, autocast=False, **recipe),
            layers=layers,
        )
    )


def kept_per_layer(model: str, **recipe: bool) -> float:
    """Bytes a token that one layer keeps, over the hidden width."""
    few, many = (moments(model, layers, **recipe).kept.total[PER_TOKEN] for layers in (4, 5))
    return (many - few) / catalog().models[model].architecture.hidden


def test_a_gpt_layer_keeps_34_bytes_a_token_and_element_with_dropout() -> None:
    drops = {"drop_embedding": True, "drop_attention": True, "drop_residual": True}
    assert kept_per_layer("gpt3-175b", **drops) == pytest.approx(34, rel=0.002)
    assert kept_per_layer("gpt3-175b") == pytest.approx(32, rel=0.002)


def test_a_gated_layer_keeps_gate_up_and_their_product() -> None:
    a = catalog().models["llama-3-70b"].architecture
    norms_and_their_outputs, attended = 8, 2
    qkv = 2 * (a.q_width + 2 * a.kv_width) / a.hidden
    feed_forward = 3 * 2 * (a.ffn or 0) / a.hidden
    expected = norms_and_their_outputs + qkv + attended + feed_forward
    assert kept_per_layer("llama-3-70b") == pytest.approx(expected, rel=0.002)


def test_fp8_keeps_one_byte_of_what_only_products_read() -> None:
    a = catalog().models["llama-3-70b"].architecture
    products_alone = (2 * a.hidden + (a.ffn or 0)) / a.hidden
    attended_too = 1
    saved = kept_per_layer("llama-3-70b") - kept_per_layer("llama-3-70b", fp8=True)
    assert saved == pytest.approx(products_alone - attended_too, rel=0.01)


def test_the_loss_holds_six_bytes_a_logit() -> None:
    found = moments("llama-3-70b", 4)
    widest = max(candidate.parts[2][PER_TOKEN] for candidate in found.candidates)
    assert widest == pytest.approx(6 * catalog().models["llama-3-70b"].architecture.vocab, rel=0.001)


@pytest.mark.parametrize(("kernels", "bytes_a_logit"), [("in-place", 2), ("in-pieces", 0)])
def test_native_losses_hold_less(kernels: str, bytes_a_logit: int) -> None:
    architecture = catalog().models["llama-3-8b"].architecture
    own = IMPLEMENTATIONS.under(architecture.implementation, kernels)
    recipe = Recipe(weight_bytes=2, autocast=False)
    found = peak_candidates(Setup(architecture=architecture, implementation=own, recipe=recipe, layers=4))
    widest = max(candidate.parts[2][PER_TOKEN] for candidate in found.candidates)
    assert widest == pytest.approx(bytes_a_logit * architecture.vocab, rel=0.001)


@pytest.mark.parametrize("name", IMPLEMENTATIONS.names)
def test_every_record_has_a_fused_twin(name: str) -> None:
    twin = IMPLEMENTATIONS.under(name, "fused")
    assert not twin.eager_only
    assert (twin.norm, twin.loss) == ("fused", "kernel")


MODELS = {model.architecture.implementation: model.architecture for model in catalog().models.values()}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_fused_kernels_never_keep_more_than_public_code(name: str) -> None:
    architecture = MODELS[name]
    layers = min(4, architecture.layers)
    # a loss on 16-bit logits as they are keeps less than any kernel's copy in fp32
    width = 4 if IMPLEMENTATIONS.public(name).loss == "plain" else 2
    public, fused = (
        peak_candidates(
            Setup(
                architecture=architecture,
                implementation=traits,
                recipe=Recipe(weight_bytes=width, autocast=False),
                layers=layers,
            )
        )
        for traits in (IMPLEMENTATIONS.public(name), IMPLEMENTATIONS.under(name, "fused"))
    )
    assert fused.kept.total[PER_TOKEN] <= public.kept.total[PER_TOKEN]
    assert fused.weight_bytes == pytest.approx(public.weight_bytes, rel=1e-3)
    assert fused.gradient_bytes == pytest.approx(public.gradient_bytes, rel=1e-3)

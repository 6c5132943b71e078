"""Records of implementations: complete, used, and safe to combine with any architecture."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmfeas.catalog.architecture import Architecture
from llmfeas.catalog.parts import Experts, LinearAttention, Mla, Window
from llmfeas.catalog.store import catalog
from llmfeas.errors import DataError
from llmfeas.model.mixers.latent import LATENT_ROTATIONS
from llmfeas.model.mixers.rotation import ROTATIONS
from llmfeas.model.mixers.scores import SCORE_STEPS
from llmfeas.model.norm import NORMS
from llmfeas.model.routers import ROUTERS
from llmfeas.model.setup import Recipe, Setup
from llmfeas.walk.fold import peak_candidates

IMPLEMENTATIONS = catalog().tables.implementations

NAMES = IMPLEMENTATIONS.names


@pytest.mark.parametrize("name", NAMES)
def test_every_trait_names_a_program(name: str) -> None:
    traits = IMPLEMENTATIONS.public(name)
    assert traits.norm in NORMS
    assert traits.router in ROUTERS
    assert traits.rotation in {*ROTATIONS, *LATENT_ROTATIONS}
    assert set(traits.scores) <= set(SCORE_STEPS)
    assert traits.qkv in ("separate", "split", "sliced", "interleaved", "selected", "picked")
    assert traits.gate_up in ("separate", "joint", "clamped")
    assert traits.scales_embedding in ("", "table", "model")


def test_every_model_of_the_catalog_names_a_record() -> None:
    assert {model.architecture.implementation for model in catalog().models.values()} <= set(NAMES)


def test_an_unknown_record_is_named_with_its_neighbours() -> None:
    with pytest.raises(DataError) as caught:
        IMPLEMENTATIONS.public("hf-lama")
    assert "hf-llama" in caught.value.candidates


ARCHITECTURES = st.builds(
    Architecture,
    layers=st.integers(1, 9),
    hidden=st.just(128),
    heads=st.sampled_from([4, 8]),
    kv_heads=st.sampled_from([0, 1, 2, 4]),
    head_dim=st.sampled_from([0, 64]),
    vocab=st.just(1000),
    ffn=st.just(256),
    activation=st.sampled_from(["gelu", "gelu_new", "gelu_tanh", "relu", "silu"]),
    gated=st.booleans(),
    norm=st.sampled_from(["rms", "layer", "layer-plain"]),
    norm_bias=st.booleans(),
    norms_per_layer=st.sampled_from([1, 2, 4]),
    norm_position=st.sampled_from(["pre", "post"]),
    parallel_block=st.booleans(),
    qkv_bias=st.booleans(),
    qk_norm=st.sampled_from(["none", "head", "full", "l2"]),
    tied=st.booleans(),
    positions=st.sampled_from(["rope", "alibi", "relative-xl"]),
    rope_fraction=st.sampled_from([0.25, 0.5, 1.0]),
    embedding_dim=st.sampled_from([None, 64]),
    embedding_norm=st.booleans(),
    output_gate=st.booleans(),
    window=st.sampled_from([None, Window(size=64), Window(size=64, local=2, full=1)]),
    mla=st.sampled_from([None, Mla(kv_lora_rank=32, nope_head_dim=16, rope_head_dim=16, v_head_dim=16)]),
    linear_attention=st.sampled_from(
        [
            None,
            LinearAttention(key_heads=2, value_heads=4, key_head_dim=16, value_head_dim=16, conv_kernel=4, interval=3),
        ]
    ),
    experts=st.sampled_from(
        [
            None,
            Experts(count=4, top_k=2, width=64),
            Experts(count=4, top_k=2, width=64, shared=1, first_dense_layers=1, bias=True, router_bias=True),
        ]
    ),
)


@settings(max_examples=40)
@given(
    ARCHITECTURES,
    st.sampled_from(NAMES),
    st.sampled_from(["none", "full", "selective"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 4]),
)
def test_any_architecture_walks_under_any_record(
    architecture: Architecture, name: str, checkpointing: str, eager: bool, mixed: bool, adapters: int
) -> None:
    traits = IMPLEMENTATIONS.public(name)
    recipe = Recipe(
        weight_bytes=2 if adapters else 4,
        autocast=mixed,
        eager=eager or traits.eager_only,
        checkpointing=checkpointing,
        adapters=adapters,
        windowed=architecture.window is not None,
    )
    moments = peak_candidates(Setup(architecture=architecture, implementation=traits, recipe=recipe))
    assert moments.candidates
    assert all(0 <= value < 2**62 for candidate in moments.candidates for part in candidate.parts for value in part)

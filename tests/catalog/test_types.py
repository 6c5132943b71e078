"""Limits of records hold for what no file said, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmfeas.catalog.architecture import Model
from llmfeas.catalog.parts import Experts, Mla
from llmfeas.catalog.types import beyond_limits


def test_models_of_the_catalog_are_within_the_limits(models: dict[str, Model]) -> None:
    assert [fault for model in models.values() for fault in beyond_limits(model)] == []


@pytest.mark.parametrize(
    ("change", "faults"),
    [
        ({"ffn": 0}, ["architecture.ffn is 0, but must be above 0"]),
        ({"layers": 10**5}, ["architecture.layers is 100000, but must be at most 10000"]),
        ({"rope_fraction": 1.5}, ["architecture.rope_fraction is 1.5, but must be at most 1"]),
        (
            {"mla": Mla(kv_lora_rank=4, nope_head_dim=-2, rope_head_dim=2, v_head_dim=0), "vocab": -1},
            [
                "architecture.vocab is -1, but must be above 0",
                "architecture.mla.nope_head_dim is -2, but must be above 0",
                "architecture.mla.v_head_dim is 0, but must be above 0",
            ],
        ),
        ({"experts": Experts(count=8, top_k=2, width=0)}, ["architecture.experts.width is 0, but must be above 0"]),
    ],
)
def test_what_is_beyond_is_named(models: dict[str, Model], change: dict[str, object], faults: list[str]) -> None:
    model = models["llama-2-7b"]
    wrong = replace(model, architecture=replace(model.architecture, **change))
    assert list(beyond_limits(wrong)) == faults

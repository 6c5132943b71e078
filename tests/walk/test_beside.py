"""What stands beside layers and embeddings gets gradients in a step, but for what a loss does not reach."""

from __future__ import annotations

import pytest

from llmfeas.autograd.storage import numeric_sizes
from llmfeas.catalog.architecture import Model
from llmfeas.catalog.store import catalog
from llmfeas.model.setup import Recipe, Setup
from llmfeas.record import replace
from llmfeas.walk.step import walked_step

MIXED = Recipe(weight_bytes=4, autocast=True)


@pytest.mark.parametrize("name", ["gemma-3n-e2b", "gemma-4-e2b", "longcat-flash-lite", "deepseek-v4-flash"])
def test_every_trained_matrix_has_a_gradient(models: dict[str, Model], name: str) -> None:
    a = replace(models[name].architecture, tower_parameters=0)
    traits = catalog().tables.implementations.public(a.implementation)
    walked = walked_step(Setup(architecture=a, implementation=traits, recipe=MIXED), numeric_sizes(1, 128), [0, 2, 3])
    assert not [each.shape for each in walked.weights if len(each.shape) > 1 and not each.gradient]


def test_no_gradient_reaches_an_indexer(models: dict[str, Model]) -> None:
    a = models["deepseek-v3.2"].architecture
    traits = catalog().tables.implementations.public(a.implementation)
    walked = walked_step(Setup(architecture=a, implementation=traits, recipe=MIXED), numeric_sizes(1, 128), [0])
    assert a.indexer is not None
    without = {each.shape for each in walked.weights if not each.gradient}
    assert without >= {(a.indexer.heads * a.indexer.head_dim, 1536), (a.indexer.head_dim, a.hidden)}

"""What decides a walk, and what does not."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.memory.training import training_plan
from llmfeas.settle import resolution


def moments(device: str, **asked: object) -> list[object]:
    """The moments of each rank of a training, which ranks with the same walk share."""
    request = {"model": "gpt2", "device": device, "engine": "pytorch", "precision": "fp32", **asked}
    return [rank.moments for rank in training_plan(resolution(request, catalog()).scenario).ranks]


@pytest.mark.parametrize("other", ["m3", "ryzen-9-7950x"])
def test_backends_that_run_the_same_step_share_its_walk(other: str) -> None:
    plain = {"task": "finetune", "dropout": 0}
    assert moments(other, **plain)[0] is moments("rtx-4090", **plain)[0]


def test_tiles_and_masks_tell_backends_apart() -> None:
    assert moments("m3", task="dpo")[0] is not moments("rtx-4090", task="dpo")[0]
    dropping = {"task": "finetune", "dropout": 0.1}
    assert moments("ryzen-9-7950x", **dropping)[0] is not moments("rtx-4090", **dropping)[0]

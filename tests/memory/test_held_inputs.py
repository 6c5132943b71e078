"""Frozen blocks that FSDP divides under a checkpoint: inputs and their gradients stay until backward ends."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.memory.training import training_memory
from llmfeas.settle import resolution

ASK = {"model": "llama-2-7b", "device": "2xa100-sxm-80gb", "task": "qlora", "lora_targets": "attention", "zero": 3}
ASK |= {"seq_len": 4096, "engine": "pytorch", "checkpointing": "full", "transformers": "4.48"}
INPUTS = 32 * 4096 * 4096 * 2
"""Bytes of what enters the layers, of a sequence."""


def tensors(micro_batch: int, **changes: object) -> float:
    ask = {**ASK, "micro_batch": micro_batch, "global_batch": 2 * micro_batch, **changes}
    return training_memory(resolution(ask, catalog()).scenario).bytes


def slope(**changes: object) -> float:
    """What a sequence takes."""
    return (tensors(24, **changes) - tensors(16, **changes)) / 8


def test_each_input_stands_twice_when_the_backward_pass_ends() -> None:
    """Beside them stand what the first layer's own backward needs."""
    held = slope()
    assert 2 * INPUTS < held < 3 * INPUTS
    assert held > slope(engine="own-script")


@pytest.mark.parametrize(
    "otherwise",
    [{"transformers": "5"}, {"engine": "own-script"}, {"zero": 0}, {"device": "a100-sxm-80gb", "zero": 0}],
    ids=["checkpoints within the layer", "no Trainer", "whole copies", "one device"],
)
def test_elsewhere_they_stand_once(otherwise: dict[str, object]) -> None:
    """At the loss, beside the logits."""
    logits = 32000 * 4096
    assert slope(**otherwise) < INPUTS + 21 * logits


def test_blocks_that_train_hold_nothing_longer() -> None:
    full = {"task": "finetune", "precision": "bf16", "device": "8xa100-sxm-80gb", "global_batch": 192}
    assert slope(**full) == pytest.approx(slope(**full, engine="own-script"))

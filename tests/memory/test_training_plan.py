from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.planning.answer import bare_answer

FAMILIES = {model.architecture.implementation: model.id for model in catalog().models.values()}


@pytest.mark.parametrize("engine", ["pytorch", "pytorch-compile", "pytorch-liger", "unsloth", "megatron"])
@pytest.mark.parametrize("model", sorted(FAMILIES.values()))
def test_every_family_needs_a_sane_amount_under_every_engine(model: str, engine: str) -> None:
    for asked in ({"task": "finetune"}, {"task": "lora", "checkpointing": "none", "attention": "eager"}):
        found = bare_answer({"model": model, "device": "h200", "engine": engine, "seq_len": 256, **asked}, catalog())
        weights = 1.9 * found.parameters.total
        assert weights < found.memory.peak_bytes.expected < 40 * weights + 2e12

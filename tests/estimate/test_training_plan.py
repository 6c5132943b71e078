from __future__ import annotations

from pathlib import Path

import pytest
from training_scenarios import scenario

from llmfeas.catalog.overlay import with_overlays
from llmfeas.catalog.store import built_in, catalog, install
from llmfeas.estimate.training_plan import training_plan
from llmfeas.planning.answer import bare_answer

ASKED = {"micro_batch": 1, "global_batch": 1, "precision": "bf16-mixed", "optimizer": "adamw", "attention": "flash"}


def test_another_catalog_with_other_numbers_forgets_what_was_planned(tmp_path: Path) -> None:
    asked = scenario(**ASKED)
    planned = training_plan(asked)
    assert training_plan(asked) is planned
    path = tmp_path / "own.yaml"
    path.write_text("efficiency:\n  parameters: {training.matrix: {value: 0.5}}\n")
    try:
        install(with_overlays(built_in(), [path]))
        assert training_plan(asked) is not planned
    finally:
        install(built_in())


FAMILIES = {model.architecture.implementation: model.id for model in catalog().models.values()}


@pytest.mark.parametrize("engine", ["pytorch", "pytorch-compile", "pytorch-liger", "unsloth", "megatron"])
@pytest.mark.parametrize("model", sorted(FAMILIES.values()))
def test_every_family_needs_a_sane_amount_under_every_engine(model: str, engine: str) -> None:
    for asked in ({"task": "finetune"}, {"task": "lora", "checkpointing": "none", "attention": "eager"}):
        found = bare_answer({"model": model, "device": "h200", "engine": engine, "seq_len": 256, **asked}, catalog())
        weights = 1.9 * found.parameters.total
        assert weights < found.memory.peak_bytes.expected < 40 * weights + 2e12

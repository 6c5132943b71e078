from __future__ import annotations

from pathlib import Path

from training_scenarios import scenario

from llmfeas.catalog.overlay import with_overlays
from llmfeas.catalog.store import built_in, install
from llmfeas.estimate.training_plan import training_plan

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

"""Which program of the head and the loss a training runs."""

from __future__ import annotations

from ..autograd.loss import TILE_ROWS
from ..catalog.implementation import Implementation
from ..scenario import Scenario

COPIES_LOGITS = "4.48"
"""The last release of transformers whose loss copies the logits that it shifts (pull request 35646)."""


def _in_rows(scenario: Scenario) -> str:
    """The program of the loss of litgpt 0.5.13: of finetune/lora.py, pretrain.py, or finetune/full.py, which leaves out
    each sequence's last logits: a view of a single one.
    """
    if scenario.trains_adapters:
        return "in-rows-of-each"
    return "in-shifted-rows" if scenario.method == "finetune" and scenario.sequences_together > 1 else "in-rows"


def loss_program(scenario: Scenario, traits: Implementation) -> str:
    """The program of the head and the loss, where it is not the implementation's own."""
    objective = scenario.objective
    if objective is None and traits.loss == "in-rows":
        return _in_rows(scenario)
    if objective is None and traits.loss != "in-tiles":
        copies = scenario.transformers == COPIES_LOGITS and traits.loss == "written"
        return "shifted" if copies and scenario.sequences_together > 1 else ""
    loss = traits.loss if objective is None else objective.loss
    if scenario.model.architecture.last_token:
        return "of-last-token"
    few = scenario.sequences_together * scenario.rank_tokens <= TILE_ROWS
    return loss.replace("tiles", "one-tile") if few else loss

"""What models beside the one that trains hold: a teacher, one that judges answers, a critic that trains too."""

from __future__ import annotations

from typing import cast

from ..catalog.architecture import Model
from ..model.sums import architecture_sums
from ..objectives import Task
from ..record import replace
from ..scenario import Scenario
from ..workload.parameters import parameters
from .training import training_memory

FROZEN_BYTES = 2.0
"""Of a weight that is only read: 16 bits, whatever the training computes in."""


def models_beside(scenario: Scenario) -> dict[str, float]:
    """Bytes by component of one device.

    Frozen models are divided as the one that trains, and what they make of the tokens of a micro-batch is kept where it
    is compared. A critic trains as that one does: it is taken to be at its own peak when the other one is.
    """
    found: dict[str, float] = {}
    for role, model in scenario.beside:
        held = _critic(scenario, model) if role == "critic" else _frozen(scenario, model, kept=role == "teacher")
        for name, size in held.items():
            found[name] = found.get(name, 0.0) + size
    return found


def _frozen(scenario: Scenario, model: Model, *, kept: bool) -> dict[str, float]:
    ranks = scenario.shards if scenario.zero >= 3 else 1
    weights = FROZEN_BYTES * parameters(model.architecture).total / (scenario.tp * scenario.pp * ranks)
    tokens = scenario.sequences * -(-scenario.seq_len // scenario.cp)
    stream = FROZEN_BYTES * tokens * model.architecture.hidden if kept else 0.0
    # where weights are divided, the head is gathered whole for the loss
    head = FROZEN_BYTES * architecture_sums(model.architecture).head_weights if kept and ranks > 1 else 0.0
    return {"weights_bytes": weights, "activations_bytes": stream, "workspace_bytes": head}


def _critic(scenario: Scenario, model: Model) -> dict[str, float]:
    scored = replace(model, architecture=replace(model.architecture, scores=True, tied=False))
    alone = replace(
        scenario,
        model=scored,
        stored=None,
        task=cast("Task", scenario.method),
        loss=None,
        adapters=None,
        reference=None,
        beside=(),
        response_length=None,
        longest_response=None,
        rollout_engine=None,
        colocate=None,
        sleep=None,
    )
    return training_memory(alone).components

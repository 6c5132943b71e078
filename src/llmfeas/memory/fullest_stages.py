"""Which stages of a pipeline can be the fullest in training: those that few layers or late ones make so stand apart."""

from __future__ import annotations

from collections.abc import Iterator

from ..scenario import Scenario
from ..workload.stages import ROUNDING, Stage, stages
from ..workload.weights import weight_bytes


def fullest_stages(scenario: Scenario) -> Iterator[tuple[Stage, float]]:
    """Yield the stages that can be the fullest, each with the micro-batches that it keeps besides its own.

    An earlier stage keeps more micro-batches, so that a later one is fuller only where it holds more: layers, or
    weights in them (experts behind the first, dense layers).
    """
    cut = stages(scenario.model.architecture.layers, scenario.pp)
    kept: float = 1.0
    if scenario.interleave > 1:
        kept = 1 + (len(cut) - 1) / (len(cut) * scenario.interleave)
    layers, held = 0, 0.0
    for stage in cut[:-1] or cut:
        weights = _weights(scenario, stage) if len(cut) > 1 else 0.0
        if stage.layers > layers or weights > (1 + ROUNDING) * held:
            # Narayanan 2021: one-forward-one-backward keeps a micro-batch for each stage to come, interleaving more.
            yield stage, min(len(cut) - stage.index, scenario.micro_steps) * kept - 1
        layers, held = max(layers, stage.layers), max(held, weights)
    if len(cut) > 1:
        yield cut[-1], 0.0


def _weights(scenario: Scenario, stage: Stage) -> float:
    """Bytes of a stage's layers on one rank in 16 bits, to compare stages by."""
    weights = weight_bytes(scenario.tables.quantization, scenario.model.architecture)
    ranks = scenario.ep * scenario.expert_tp
    run = (*weights.layers[stage.first : stage.end], *weights.held_again(stage.first, stage.end))
    return sum(layer.on_rank(scenario.tp, ranks) for layer in run)

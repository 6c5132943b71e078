"""What is written to go on from: the weights that train and what their optimizer keeps, of the whole job."""

from __future__ import annotations

from ..record import replace
from ..scenario import Scenario
from ..workload.parameters import parameters_of
from .training import training_plan
from .training_layout import layout_of, rank_bytes


def checkpoint_bytes(scenario: Scenario) -> float:
    """Bytes of one checkpoint: trained weights, masters and optimizer states once, each as the engine holds it.

    Frozen weights are not written, nor gradients. Of a pipeline the first stage that trains anything stands for all;
    where none of those that are counted does (adapters of a few layers), the model as one stage.
    """
    rank = next((rank for rank in training_plan(scenario).ranks if rank.moments.inventory.trained), None)
    if rank is None:
        return checkpoint_bytes(replace(scenario, pp=1, interleave=1))
    weights, _, states = rank_bytes(scenario, layout_of(scenario), rank.moments, rank.setup)
    inventory, adapted = rank.moments.inventory, scenario.trains_adapters
    if adapted:
        weights = float(inventory.trained * inventory.trained_width)
    return parameters_of(scenario).trainable * (weights + states) / inventory.trained

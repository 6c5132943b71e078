"""How one serving instance is spread over devices where the user left it open."""

from __future__ import annotations

from math import gcd

from ..record import replace
from ..scenario import Scenario
from .draft import Draft
from .valid_layout import divisors, tensor_parallel_sizes


def serving_layout(scenario: Scenario, draft: Draft, split: str) -> Scenario:
    """Spread one serving instance over all devices, by tensors or layers as the engine does, or a copy on each."""
    n = gcd(*scenario.pools) // scenario.cp
    if n <= 1 or split == "copies" or (draft.was_given("tp") and draft.was_given("pp")):
        return scenario
    tp = instance_tp(scenario, n) if split == "tensors" else 1
    pp = _stages(scenario, n // tp)
    if draft.was_given("tp") and scenario.tp != tp:
        tp, pp = scenario.tp, 1 if n % scenario.tp else _stages(scenario, n // scenario.tp)
    elif draft.was_given("pp") and scenario.pp != pp:
        left, pp = n // scenario.pp, scenario.pp
        fits = n % pp == 0 and left in tensor_parallel_sizes(scenario.model.architecture, left)
        tp = left if fits else 1
    return replace(scenario, tp=tp, pp=pp)


def instance_tp(scenario: Scenario, n: int) -> int:
    """The most devices of a node that divide the tensors, and `n`."""
    sizes = tensor_parallel_sizes(scenario.model.architecture, n)
    return max(size for size in sizes if n % size == 0 and (size <= scenario.devices_per_node or size == 1))


def _stages(scenario: Scenario, devices: int) -> int:
    """The largest number of stages that divides the devices, is within the layers and leaves ep its ranks."""
    layers, n, ep = scenario.model.architecture.layers, scenario.num_devices, scenario.ep
    return max((pp for pp in divisors(devices, layers) if n // pp % ep == 0), default=1)

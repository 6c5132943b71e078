"""A floor of a training step's memory from counts alone: spares the walk of layouts that cannot do."""

from __future__ import annotations

from ..catalog.device import NARROW
from ..catalog.engine import Scheme
from ..findings import cached_across_devices
from ..optimizers import OPTIMIZERS
from ..scenario import Scenario
from ..workload.parameters import block_parameters
from .training_layout import copies_of, layout_of

SAFE = 0.95
"""The floor stays so much below the weights of the layers: some get no gradient (relative positions)."""

FROZEN_BYTES = {"lora": 2.0, "qlora": 0.5}
"""Bytes of a frozen parameter under adapters."""

NARROW_BYTES = 1.0
"""The same where it may be kept in 8 bits alone."""

Each = tuple[float, float, float]
"""Bytes a parameter of weight, gradient and optimizer's states."""


def scheme_bytes(scheme: Scheme, optimizer: str) -> Each:
    """What an engine's scheme keeps of a trained parameter."""
    states = scheme.master + scheme.state * _least_states(optimizer)
    return float(scheme.weight), float(scheme.gradient), states


def pure_bytes(width: float, optimizer: str) -> Each:
    """What a step in one format of `width` bytes keeps of a trained parameter."""
    return width, width, width * _least_states(optimizer)


def _least_states(optimizer: str) -> float:
    return OPTIMIZERS[optimizer].least_states if optimizer in OPTIMIZERS else 0.0


def frozen_bytes(task: str, precision: str) -> float:
    """What a frozen parameter takes at least."""
    return min(FROZEN_BYTES[task], NARROW_BYTES) if precision in NARROW else FROZEN_BYTES[task]


def rank_floor_bytes(scenario: Scenario) -> float:
    """What the fullest rank of a training holds at least: weights, gradients and states of the layers, bytes.

    Embedding and head are left out, a stage of a pipeline counts as the average one.
    """
    return _of_ranks(scenario, scenario.shards)


@cached_across_devices
def _of_ranks(scenario: Scenario, ranks: int) -> float:
    if scenario.offload == "all":
        return 0.0
    weights, gradients, states = _each(scenario)
    weights *= copies_of(scenario)
    dense, routed = _rank_layers(scenario)
    whole, part = dense + routed, dense / ranks + routed * min(1.0, scenario.ep / ranks)
    held = weights * (part if scenario.zero >= 2 else whole) + gradients * (part if scenario.zero >= 2 else whole)
    if not scenario.states_on_host:
        held += states * (part if scenario.zero >= 1 else whole)
    return SAFE * held


def _rank_layers(scenario: Scenario) -> tuple[float, float]:
    """A rank's parameters of layers before ZeRO divides them: those of experts apart."""
    kinds = block_parameters(scenario.model.architecture)
    routed = sum(kind.repeat * kind.routed for kind in kinds)
    dense = sum(kind.repeat * kind.total for kind in kinds) - routed
    split = scenario.tp * scenario.pp
    return dense / split, routed / (split * scenario.ep)


def _each(scenario: Scenario) -> Each:
    if scenario.method in FROZEN_BYTES:
        return frozen_bytes(scenario.method, scenario.precision), 0.0, 0.0
    layout = layout_of(scenario)
    if layout.pure:
        return scheme_bytes(layout.scheme, scenario.optimizer)
    return pure_bytes(2.0 if scenario.precision in ("bf16", "fp16") else 4.0, scenario.optimizer)

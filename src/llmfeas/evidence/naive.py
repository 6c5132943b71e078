"""The rules of thumb that people use, as a yardstick: what our figures must beat on the same rows."""

from __future__ import annotations

from ..model.sums import architecture_sums
from ..scenario import Scenario

MFU = 0.4
BANDWIDTH_SHARE = 0.7
TRAINING_BYTES_PER_WEIGHT = 18.0
OVERHEAD = 1.2
"""Factor that people put on weights for everything else."""


def training_tokens_per_second(scenario: Scenario) -> float:
    """6 N D at 40 % of the dense 16-bit peak of all devices, tokens/s."""
    flop = 6 * _active(scenario)
    return MFU * scenario.device.peak16_flop_per_s * scenario.num_devices / flop


def decode_tokens_per_second(scenario: Scenario, weight_bytes_per_weight: float) -> float:
    """70 % of the memory bandwidth over the bytes of the active weights, for each sequence, tokens/s."""
    read = _active(scenario) * weight_bytes_per_weight / scenario.tp
    return BANDWIDTH_SHARE * scenario.device.bandwidth_bytes_per_s / read * scenario.concurrency


def prefill_tokens_per_second(scenario: Scenario) -> float:
    """2 N a token at 40 % of the dense 16-bit peak, tokens/s."""
    return MFU * scenario.device.peak16_flop_per_s * scenario.tp / (2 * _active(scenario))


def training_bytes(scenario: Scenario, weight_bytes_per_weight: float) -> float:
    """18 bytes a parameter, or frozen weights and a fifth on top for adapters, per device."""
    weights = architecture_sums(scenario.model.architecture).parameters
    shares = scenario.tp * scenario.pp * (scenario.dp if scenario.zero >= 3 else 1)
    if scenario.task in ("lora", "qlora"):
        return OVERHEAD * weights * weight_bytes_per_weight / shares
    return TRAINING_BYTES_PER_WEIGHT * weights / shares


def inference_bytes(scenario: Scenario, weights_bytes: float) -> float:
    """Weights and a fifth on top, per device."""
    return OVERHEAD * weights_bytes / (scenario.tp * scenario.pp)


def _active(scenario: Scenario) -> float:
    sums = architecture_sums(scenario.model.architecture)
    return sums.parameters - sums.routed_weights + sums.routed_active

"""Seconds that weights and activations need between a device and the memory of its host in training."""

from __future__ import annotations

from ..memory.training import training_plan
from ..memory.training_layout import packed_bytes
from ..scenario import Scenario
from .links import Links


def weight_bytes_gathered(scenario: Scenario) -> float:
    """Bytes of one weight when ZeRO-3 gathers it or offloading moves it: 16-bit copies, in QLoRA as it is stored."""
    if scenario.method == "qlora":
        return packed_bytes(scenario)
    return 4.0 if scenario.precision in ("fp32", "tf32") else 2.0


def offload_seconds(scenario: Scenario, shard: float, links: Links) -> float:
    """Weights kept on the host travel to the device for forward and for backward, each micro-step."""
    if scenario.offload != "all":
        return 0.0
    return 2 * weight_bytes_gathered(scenario) * shard / links.host_bytes_per_s


def activation_seconds(scenario: Scenario, links: Links) -> float:
    """What backward needs travels to the host and back in each micro-step, on the stage that keeps most."""
    if scenario.offload != "activations":
        return 0.0
    seq_len = -(-scenario.seq_len // scenario.cp)
    kept = max(
        rank.moments.streamed_bytes(scenario.sequences_together, seq_len) for rank in training_plan(scenario).ranks
    )
    return 2 * kept / links.host_bytes_per_s

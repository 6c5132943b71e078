"""Seconds that weights and activations need between a device and the memory of its host in training."""

from __future__ import annotations

from ..memory.training import training_plan
from ..memory.training_layout import moved_share, packed_bytes
from ..optimizers import OPTIMIZERS
from ..scenario import Scenario
from ..units import GB
from ..workload.weights import native_bytes
from .links import Links


def weight_bytes_gathered(scenario: Scenario) -> float:
    """Bytes of one weight when ZeRO-3 gathers it or offloading moves it: 16-bit copies, in QLoRA as it is stored."""
    if scenario.method == "qlora":
        return packed_bytes(scenario)
    return native_bytes(scenario.precision)


def offload_seconds(scenario: Scenario, shard: float, links: Links) -> float:
    """Weights kept on the host travel to the device for forward and for backward, each micro-step; from a drive each
    rank reads its own part before.
    """
    if scenario.offload != "all":
        return 0.0
    moved = 2 * weight_bytes_gathered(scenario) * shard * moved_share(scenario)
    parts = scenario.shards if scenario.zero >= 3 else 1
    return moved / links.host_bytes_per_s + moved / parts * drive_seconds_per_byte(scenario)


def drive_seconds_per_byte(scenario: Scenario) -> float:
    """Of one device, where all of a machine share its drive; 0 where nothing lies there."""
    if scenario.drive_gb_per_s is None:
        return 0.0
    return scenario.devices_a_machine / (scenario.drive_gb_per_s * GB)


def swapped_bytes(scenario: Scenario) -> float:
    """Bytes that a weight's optimizer step reads from the drive and writes back: fp32 weight and states."""
    return 0.0 if scenario.drive_gb_per_s is None else 2 * 4 * (1 + OPTIMIZERS[scenario.optimizer].least_states)


def activation_seconds(scenario: Scenario, links: Links) -> float:
    """What backward needs travels to the host and back in each micro-step, on the stage that keeps most."""
    if scenario.offload != "activations":
        return 0.0
    seq_len = scenario.rank_tokens
    kept = max(
        rank.moments.streamed_bytes(scenario.sequences_together, seq_len) for rank in training_plan(scenario).ranks
    )
    return 2 * kept * moved_share(scenario) / links.host_bytes_per_s

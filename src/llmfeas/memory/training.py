"""Tensor memory of one training step on one rank, the worst one: the walk's moments under what the layout holds."""

from __future__ import annotations

from ..record import dataclass
from ..scenario import Scenario
from ..walk.candidates import Peak
from .training_plan import training_plan


@dataclass(frozen=True, slots=True)
class TensorMemory:
    """Bytes of tensors at the fullest moment; `components` add up to `bytes`."""

    bytes: float
    components: dict[str, float]
    moment: str
    runner_up: str
    host_bytes: float
    approximate: str
    """Why the figure is that of a related program; empty where the program itself was measured."""


def training_memory(scenario: Scenario) -> TensorMemory:
    """Give the bytes of tensors at the peak of a training step, per device, the worst pipeline stage.

    Weights, gradients, optimizer states and activations as PyTorch holds them (walk), without context, libraries and
    allocator slack. Assumes that routed tokens spread evenly over experts. Sources: the walk reproduces tracked steps
    of Hugging Face code; sharding after Rajbhandari 2020, Korthikanti 2022, Narayanan 2021.
    """
    plan = training_plan(scenario)
    seq_len = -(-scenario.seq_len // scenario.cp)
    peaks = [rank.peak(scenario.micro_batch, seq_len) for rank in plan.ranks]
    worst = peaks[0] if len(peaks) == 1 else max(peaks, key=lambda peak: peak.bytes)
    host = plan.host_bytes + max(rank.streamed_bytes(scenario.micro_batch, seq_len) for rank in plan.ranks)
    return TensorMemory(worst.bytes, _components(worst), worst.moment, worst.runner_up, host, plan.approximate)


def _components(peak: Peak) -> dict[str, float]:
    return {
        "weights_bytes": peak.weights,
        "gradients_bytes": peak.gradients,
        "optimizer_bytes": peak.optimizer,
        "activations_bytes": peak.activations,
        "logits_bytes": peak.logits,
        "workspace_bytes": peak.workspace,
    }

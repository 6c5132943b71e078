"""A training that goes on for long: checkpoints, failures of devices, and the time that is left for its work."""

from __future__ import annotations

import math

from ..contract import Published, published
from ..memory.training import training_plan
from ..memory.training_layout import layout_of, rank_bytes
from ..ranges import Range
from ..record import dataclass, replace
from ..scenario import Scenario
from ..units import GB
from ..workload.parameters import parameters_of

RESTART_SECONDS = 630.0
"""From a failure to where the checkpoint is read: found and diagnosed in less than 10 minutes on average, all started
again in less than 30 seconds (Jiang 2024, MegaScale). The 15 minutes within which that run caught
up count the work that was lost too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRun(Published):
    """Checkpoints and failures of a training, at the best interval between checkpoints."""

    checkpoint_bytes: float
    """Weights that train, masters and optimizer states, of all devices together."""
    checkpoint_seconds: float
    """To write one; the training waits for it."""
    failure_seconds: float
    """Mean time between failures of the job: that of one device over their number."""
    restart_seconds: float
    """From a failure until the last checkpoint is read and work goes on."""
    work_seconds: Range
    """What the training takes where nothing fails and nothing is written."""

    @published
    def interval_seconds(self) -> float:
        """The best time of work between two checkpoints: `sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + d / 18M) - d`, for a
        checkpoint of d seconds and a failure every M; M where writing takes twice that (Young 1974, Daly 2006).
        """
        writing, failure = self.checkpoint_seconds, self.failure_seconds
        if writing >= 2 * failure:
            return failure
        half = writing / (2 * failure)
        return math.sqrt(2 * writing * failure) * (1 + math.sqrt(half) / 3 + half / 9) - writing

    @published
    def useful_share(self) -> float:
        """Share of the time that is work which is not lost: `t / (M e^(R/M) (e^((t + d)/M) - 1))` (Daly 2006)."""
        failure, interval = self.failure_seconds, self.interval_seconds
        lost = self.restart_seconds / failure, (interval + self.checkpoint_seconds) / failure
        if sum(lost) > LARGEST_EXPONENT:
            return 0.0
        return interval / (failure * math.exp(lost[0]) * math.expm1(lost[1]))

    @published
    def total_seconds(self) -> Range | None:
        """Time from beginning to end, with checkpoints and failures; null where it would not end."""
        share = self.useful_share
        return self.work_seconds.scaled(1 / share) if share > 1e-9 else None

    @published
    def failures(self) -> float | None:
        """How many are to be expected."""
        total = self.total_seconds
        return None if total is None else total.expected / self.failure_seconds


LARGEST_EXPONENT = 500.0


def long_run(scenario: Scenario, work_seconds: Range) -> LongRun | None:
    """The checkpoints and failures of a training; None where one machine does it and nobody asked."""
    if scenario.device_mtbf_seconds is None or scenario.storage_gb_per_s is None:
        return None
    size = checkpoint_bytes(scenario)
    writing = size / (scenario.storage_gb_per_s * GB)
    return LongRun(
        checkpoint_bytes=size,
        checkpoint_seconds=writing,
        failure_seconds=scenario.device_mtbf_seconds / scenario.paid_devices,
        restart_seconds=RESTART_SECONDS + writing,
        work_seconds=work_seconds,
    )


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

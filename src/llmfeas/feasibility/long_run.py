"""A training that goes on for long: checkpoints, failures of devices, and the time that is left for its work."""

from __future__ import annotations

import math

from ..contract import Published, published
from ..derivation import MODEL, SETTING, Say, applied, plain
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
        return best_interval_seconds(self.checkpoint_seconds, self.failure_seconds)

    @published
    def useful_share(self) -> float:
        """Share of the time that is work which is not lost: `t / (M e^(R/M) (e^((t + d)/M) - 1))` (Daly 2006)."""
        return useful_share(self.interval_seconds, self.checkpoint_seconds, self.failure_seconds, self.restart_seconds)

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


def best_interval_seconds(writing: float, failure: float) -> float:
    """That of `LongRun.interval_seconds`."""
    if writing >= 2 * failure:
        return failure
    half = writing / (2 * failure)
    return applied(math.sqrt, 2 * writing * failure) * (1 + applied(math.sqrt, half) / 3 + half / 9) - writing


def useful_share(interval: float, writing: float, failure: float, restart: float) -> float:
    """That of `LongRun.useful_share`."""
    restarted, lost = restart / failure, (interval + writing) / failure
    if restarted + lost > LARGEST_EXPONENT:
        return 0.0
    return interval / (failure * applied(math.exp, restarted) * applied(math.expm1, lost))


def writing_seconds(scenario: Scenario, size_bytes: float, say: Say = plain) -> float:
    """Seconds in which a checkpoint is written."""
    storage = say("storage", scenario.storage_gb_per_s or 0.0, "GB/s", SETTING)
    return say("checkpoint", size_bytes, "bytes", MODEL) / (storage * GB)


def failure_seconds(scenario: Scenario, say: Say = plain) -> float:
    """Mean time between failures of the job: any device stops it."""
    mtbf = say("mtbf", scenario.device_mtbf_seconds or 0.0, "s", SETTING)
    return mtbf / say("devices", scenario.paid_devices, "devices")


def long_run(scenario: Scenario, work_seconds: Range) -> LongRun | None:
    """The checkpoints and failures of a training; None where one machine does it and nobody asked."""
    if scenario.device_mtbf_seconds is None or scenario.storage_gb_per_s is None:
        return None
    size = checkpoint_bytes(scenario)
    writing = writing_seconds(scenario, size)
    return LongRun(
        checkpoint_bytes=size,
        checkpoint_seconds=writing,
        failure_seconds=failure_seconds(scenario),
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

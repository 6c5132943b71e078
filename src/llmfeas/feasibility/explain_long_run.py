"""The derivation of a long training: its checkpoints, its failures, and the time that is left for work."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..scenario import Scenario
from ..units import GB
from .long_run import LongRun
from .result import Term
from .terms import number, setting, term


def long_run_terms(scenario: Scenario, run: LongRun) -> Iterator[Term]:
    """Derive what checkpoints and failures leave of a training's time."""
    writing = number("writing", run.checkpoint_seconds, "s")
    failure = number("failure", run.failure_seconds, "s")
    interval = number("interval", run.interval_seconds, "s")
    size = number("checkpoint", run.checkpoint_bytes, "bytes", "model")
    bandwidth = (run.checkpoint_bytes / run.checkpoint_seconds if run.checkpoint_seconds else GB) / GB
    storage = setting(scenario, "storage", bandwidth, "GB/s")
    text = "trained weights, masters and states, which the training waits for"
    formula = "checkpoint / (storage * 1000000000)"
    yield term("long_run.checkpoint_seconds", text, formula, (size, storage), run.checkpoint_seconds, "s")
    mtbf = setting(scenario, "mtbf", scenario.device_mtbf_seconds, "s")
    devices = number("devices", scenario.paid_devices, "devices")
    text = "mean time between failures of the job: any device stops it"
    yield term("long_run.failure_seconds", text, "mtbf / devices", (mtbf, devices), run.failure_seconds, "s")
    if run.checkpoint_seconds < 2 * run.failure_seconds:
        text = "the best time of work between two checkpoints (Young 1974, Daly 2006)"
        half = "writing / (2 * failure)"
        formula = f"(2 * writing * failure) ** 0.5 * (1 + ({half}) ** 0.5 / 3 + {half} / 9) - writing"
        yield term("long_run.interval_seconds", text, formula, (writing, failure), run.interval_seconds, "s")
    if not run.useful_share:
        return
    restart, e = number("restart", run.restart_seconds, "s"), number("e", math.e, "", "mathematics")
    text = "share of the time that is work which is not lost (Daly 2006)"
    formula = "interval / (failure * e ** (restart / failure) * (e ** ((interval + writing) / failure) - 1))"
    inputs = (interval, failure, e, restart, writing)
    yield term("long_run.useful_share", text, formula, inputs, run.useful_share, "fraction")
    total, share = run.total_seconds, number("useful_share", run.useful_share, "fraction")
    if total is None:
        return
    work = number("work", run.work_seconds.expected, "s")
    text = "from beginning to end, with checkpoints and failures"
    yield term("long_run.total_seconds", text, "work / useful_share", (work, share), total.expected, "s")
    whole = number("total", total.expected, "s")
    text = "failures that are to be expected"
    yield term("long_run.failures", text, "total / failure", (whole, failure), total.expected / run.failure_seconds, "")

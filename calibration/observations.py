"""Speeds that were measured, as the fit sees them: a decided scenario, the logarithm of the speed, a weight."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from llmfeas.catalog.efficiency import Efficiency
from llmfeas.errors import LlmfeasError
from llmfeas.evidence.compare import published_tokens_per_second, scenario_of
from llmfeas.evidence.measurements import Measurement
from llmfeas.feasibility.served_load import served_load
from llmfeas.scenario import Scenario
from llmfeas.timing.decode import sequences_per_replica
from llmfeas.timing.inference import inference_time
from llmfeas.timing.regimes import HOST_PACED, decode_regime, host_paced, prefill_regime
from llmfeas.timing.step import step_parts
from llmfeas.timing.training import run_interval, training_time
from llmfeas.workload.kernels import job_of

Speed = Literal["training", "decode", "prefill"]
SPEEDS: tuple[Speed, ...] = ("training", "decode", "prefill")


@dataclass(frozen=True, slots=True)
class Observation:
    """One measured speed. `weight` makes a group of n rows count as the root of n."""

    id: str
    group: str
    source: str
    scenario: Scenario
    kind: Speed
    log_speed: float
    weight: float
    with_prompts: bool = False
    """Generated tokens over the whole time were measured, prompts included."""


def predicted_log(numbers: Efficiency, observation: Observation) -> float:
    """Logarithm of the speed that the time model gives."""
    scenario = _under(numbers, observation.scenario)
    if observation.kind == "training":
        return math.log(training_time(scenario).tokens_per_second.expected)
    found = inference_time(scenario)
    if observation.with_prompts and scenario.has_load:
        return math.log(served_load(scenario).output_tokens_per_second.expected)
    if observation.with_prompts:
        return math.log(found.output_tokens_per_second.expected)
    speed = found.decode_tokens_per_second if observation.kind == "decode" else found.prefill_tokens_per_second
    return math.log(speed.expected)


def _under(numbers: Efficiency, scenario: Scenario) -> Scenario:
    return replace(scenario, tables=replace(scenario.tables, efficiency=numbers))


def regime_of(numbers: Efficiency, observation: Observation) -> str:
    """Name the kind of run, as the intervals know it; of a training also whether its host sets the pace."""
    scenario = observation.scenario
    if observation.kind == "training":
        scenario = _under(numbers, scenario)
        parts = step_parts(scenario)
        regime = run_interval(scenario, parts).regime.removesuffix(HOST_PACED)
        return f"{regime}{HOST_PACED}" if host_paced(parts) else regime
    speed = scenario.engine_record.serving.speed
    if observation.kind == "decode":
        sequences = sequences_per_replica(scenario)
        return decode_regime(scenario.device, speed, sequences > 1, scenario.tp, experts=bool(scenario.n_cpu_moe))
    return prefill_regime(scenario.device, speed, experts=bool(scenario.n_cpu_moe))


def trained(observations: Iterable[Observation]) -> dict[str, dict[str, dict[str, int]]]:
    """How many sources measured each software that trains, by backend and job; objectives of their own are not speeds
    of the job that they are like.
    """
    found: dict[str, dict[str, dict[str, set[str]]]] = {}
    for item in observations:
        scenario = item.scenario
        if item.kind == "training" and scenario.objective is None:
            jobs = found.setdefault(scenario.device.backend, {}).setdefault(job_of(scenario), {})
            jobs.setdefault(scenario.engine, set()).add(item.source)
    return {
        backend: {job: {name: len(sources) for name, sources in sorted(by.items())} for job, by in sorted(jobs.items())}
        for backend, jobs in sorted(found.items())
    }


def _speeds(measurement: Measurement, scenario: Scenario) -> Iterable[tuple[Speed, float | None]]:
    measured = measurement.measured
    if scenario.is_training:
        yield "training", published_tokens_per_second(measurement, scenario)
    else:
        yield "decode", measured.decode_tokens_per_second or measured.output_tokens_per_second
        yield "prefill", measured.prefill_tokens_per_second


def observed(measurements: Iterable[Measurement]) -> list[Observation]:
    """The measured speeds that the fit uses: no variants, no weightless rows, no scenario that is refused."""
    found: list[tuple[Measurement, Scenario, Speed, float]] = []
    for measurement in measurements:
        if measurement.variant or not measurement.weight or not _has_speed(measurement):
            continue
        try:
            scenario = scenario_of(measurement)
        except LlmfeasError:
            continue
        for kind, speed in _speeds(measurement, scenario):
            if speed is not None:
                found.append((measurement, scenario, kind, speed))
    sizes = Counter((kind, measurement.group) for measurement, _, kind, _ in found)
    return [
        Observation(
            id=measurement.id,
            group=measurement.group,
            source=measurement.source,
            scenario=scenario,
            kind=kind,
            log_speed=math.log(speed),
            weight=measurement.weight / math.sqrt(sizes[kind, measurement.group]),
            with_prompts=kind == "decode" and measurement.measured.decode_tokens_per_second is None,
        )
        for measurement, scenario, kind, speed in found
    ]


def _has_speed(measurement: Measurement) -> bool:
    measured = measurement.measured
    return any(
        value is not None
        for value in (
            measured.tokens_per_second,
            measured.step_seconds,
            measured.mfu,
            measured.model_flop_per_s_per_device,
            measured.decode_tokens_per_second,
            measured.output_tokens_per_second,
            measured.prefill_tokens_per_second,
        )
    )

"""How far peaks of memory are from published ones, by regime; what data/engines.yaml would be if fitted to them alone.

`python -m calibration.memory` prints, for each regime, its groups and rows, the median error, the spread of
left-out groups (shrunk to that of all, as for time) and the overheads that fit best beside those in use. The values in
the file are rounded, and held back where one source stands alone: see the notes there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from math import exp, log, sqrt
from statistics import fmean, median

import numpy as np
from scipy.optimize import Bounds, minimize

from llmfeas.catalog.engine import ServingMemory, TrainingOverhead
from llmfeas.catalog.store import catalog
from llmfeas.errors import LlmfeasError
from llmfeas.evidence.measurements import (
    Measurement,
    MemoryKind,
    measurement_files,
    read_measurements,
    settings_of,
)
from llmfeas.memory.inference import inference_memory
from llmfeas.memory.runtime import (
    context_bytes,
    divided_bytes,
    growth_of,
    inference_overhead,
    is_sharded,
    overhead_of,
    training_overhead,
)
from llmfeas.memory.training import training_memory
from llmfeas.memory.usable import usable_bytes
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution

from .least_squares import Array

Overheads = ServingMemory | TrainingOverhead
SHRINKAGE = 3.0
"""Groups that the spread of all regimes counts for."""

MOST: Mapping[str, float] = {
    "fixed_bytes": 6e9,
    "slack": 0.1,
    "cache_slack": 1.0,
    "gaps": 0.5,
    "sharded_bytes": 1e10,
}
"""What is fitted, from 0 to so much."""


@dataclass(frozen=True, slots=True)
class Peak:
    """A published peak beside the tensors that were counted for it."""

    group: str
    regime: str
    kind: MemoryKind
    measured_bytes: float
    components: Mapping[str, float]
    context_bytes: float
    divided_bytes: float
    """What ranks divide among them and have under way at once; 0 where nothing is sharded."""
    overheads: Overheads
    growth: float = 0.0
    """Share of what is free of the usable bytes that the allocator comes to hold."""
    usable_bytes: float = 0.0

    def log_ratio(self, overheads: Overheads) -> float:
        """The log of measured over computed, the latter as its source measures it."""
        if isinstance(overheads, ServingMemory):
            fixed, allocator = inference_overhead(overheads, self.components)
        else:
            fixed, allocator = training_overhead(overheads, self.components, self.divided_bytes)
        computed = sum(self.components.values()) + fixed
        computed += 0.0 if self.kind == "allocated" else allocator
        computed += self.context_bytes if self.kind == "device" else 0.0
        computed += 0.0 if self.kind == "allocated" else self.growth * max(self.usable_bytes - computed, 0.0)
        return log(self.measured_bytes / computed)


def peaks(measurements: Iterable[Measurement]) -> list[Peak]:
    """The published peaks of memory that can be computed; variants stay out."""
    found = []
    for measurement in measurements:
        measured = measurement.measured
        if measurement.variant or not (measured.peak_bytes or measured.peak_total_bytes):
            continue
        try:
            scenario = resolution(settings_of(measurement), catalog()).scenario
        except LlmfeasError:
            continue
        found.append(_peak(measurement, scenario))
    return found


def _peak(measurement: Measurement, scenario: Scenario) -> Peak:
    measured = measurement.measured
    overheads: Overheads
    if scenario.is_training:
        overheads, components = overhead_of(scenario), training_memory(scenario).components
        adapters = " adapters" if scenario.method in ("lora", "qlora") else ""
        job = f"sharded{adapters}" if is_sharded(scenario) else scenario.task
    else:
        overheads, components = scenario.engine_record.serving.memory, dict(inference_memory(scenario).components)
        job = "inference"
    return Peak(
        group=measurement.group,
        regime=f"{_first_with(overheads, scenario)}, {job}",
        kind="device" if measurement.memory_kind == "unknown" else measurement.memory_kind,
        measured_bytes=measured.peak_bytes or (measured.peak_total_bytes or 0.0) / scenario.num_devices,
        components=components,
        context_bytes=context_bytes(scenario),
        divided_bytes=divided_bytes(scenario) if scenario.is_training else 0.0,
        growth=growth_of(scenario) if scenario.is_training else 0.0,
        usable_bytes=usable_bytes(scenario),
        overheads=overheads,
    )


def _first_with(overheads: Overheads, scenario: Scenario) -> str:
    """Name the first engine that holds the same beside tensors, for those that are like it."""
    for engine in scenario.tables.engines.values():
        training = engine.training.memory
        for name, own in (
            (engine.id, training),
            (engine.id, engine.serving.memory),
            (f"{engine.id} divided", training.divided),
        ):
            if own is not None and asdict(own) == asdict(overheads):
                return name
    return scenario.engine


def by_group(rows: Iterable[Peak], value: Callable[[Peak], float]) -> dict[str, list[float]]:
    """Collect a figure of each peak by its group."""
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row.group, []).append(value(row))
    return found


def spread(groups: Iterable[list[float]], overall: float) -> float:
    """The spread of a regime's groups, shrunk: sqrt((3 s^2 + sum of their mean squares) / (3 + groups))."""
    squares = [fmean(x * x for x in group) for group in groups]
    return sqrt((SHRINKAGE * overall**2 + sum(squares)) / (SHRINKAGE + len(squares)))


def mean_error(rows: list[Peak], overheads: Overheads) -> float:
    """The mean absolute log error, groups counting alike."""
    return fmean(fmean(map(abs, group)) for group in by_group(rows, lambda row: row.log_ratio(overheads)).values())


def fitted(rows: list[Peak]) -> Overheads:
    """The overheads of one regime with the least mean error over its rows."""
    known = rows[0].overheads
    sharded = any(row.divided_bytes for row in rows)
    names = [name for name in MOST if hasattr(known, name) and (sharded or name != "sharded_bytes")]

    def overheads(shares: Iterable[float]) -> Overheads:
        fields = {name: float(share) * MOST[name] for name, share in zip(names, shares, strict=True)}
        return replace(known, **fields)  # type: ignore[arg-type]

    def error(shares: Array) -> float:
        return mean_error(rows, overheads(shares))

    start = np.array([min(1.0, getattr(known, name) / MOST[name]) for name in names])
    best = minimize(error, start, method="Powell", bounds=Bounds(0.0, 1.0))
    return overheads(np.round(best.x, 3))


def report() -> str:
    """Write the table of all regimes."""
    rows = peaks(read_measurements(measurement_files())[0])
    everything = by_group(rows, lambda row: row.log_ratio(row.overheads))
    overall = sqrt(fmean(min(0.64, fmean(x * x for x in group)) for group in everything.values()))
    lines = [f"{'regime':28} groups rows  error spread  fitted alone"]
    for regime in sorted({row.regime for row in rows}):
        own = [row for row in rows if row.regime == regime]
        ratios = by_group(own, lambda row: row.log_ratio(row.overheads))
        error = median(abs(exp(x) - 1) for group in ratios.values() for x in group)
        best = fitted(own)
        fields = ", ".join(f"{name} {getattr(best, name):.3g}" for name in MOST if hasattr(best, name))
        lines.append(
            f"{regime:28} {len(ratios):6} {len(own):4} {error:6.3f} {spread(ratios.values(), overall):6.3f}  {fields}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(report())

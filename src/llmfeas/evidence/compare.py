"""One measurement beside what the calculator says of its scenario, through the same path as everybody's question."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import cast

from ..contract import ABSENT
from ..errors import LlmfeasError
from ..feasibility.result import Estimate
from ..memory.training import training_memory
from ..model.sums import architecture_sums
from ..ranges import Range
from ..record import dataclass
from ..scenario import Scenario
from ..timing.inference import InferenceTime
from ..timing.training import TrainingTime, step_tokens
from ..workload.weights import native_bytes, weight_bytes
from .measurements import Kind, Measurement, settings_of

WAITS: tuple[tuple[Kind, str, str], ...] = (
    ("first-token", "ttft_seconds", "p50"),
    ("first-token", "ttft_seconds", "p95"),
    ("token-time", "tpot_seconds", "p50"),
)
"""What is measured of requests under a load: the kind, whose percentiles, and which."""


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """A measured quantity beside ours; for `fits` 1 means yes, and `found` is 1 where our verdict is not `exceeds`."""

    measurement: Measurement
    kind: Kind
    quantity: str
    backend: str
    measured: float
    found: Range
    naive: float | None

    @property
    def log_error(self) -> float:
        """Logarithm of ours over measured."""
        if not (self.found.expected and self.measured):
            return 0.0 if self.found.expected == self.measured else math.inf
        return math.log(self.found.expected / self.measured)

    @property
    def error(self) -> float:
        """Size of the relative error of our expected value; for `fits` 0 or 1."""
        if self.kind == "fits":
            return float(self.found.expected != self.measured)
        return abs(self.found.expected / self.measured - 1)

    @property
    def naive_error(self) -> float | None:
        """Size of the relative error of the rule of thumb."""
        return None if self.naive is None else abs(self.naive / self.measured - 1)

    @property
    def inside(self) -> bool:
        """Whether the measurement lies in our range."""
        return self.found.low <= self.measured <= self.found.high

    @property
    def width(self) -> float:
        """High over low end of our range."""
        return self.found.high / self.found.low if self.found.low else 1.0


def scenario_of(measurement: Measurement) -> Scenario:
    """Decide a measurement's scenario as `llmfeas estimate` would.

    Raises:
        LlmfeasError: the scenario cannot be answered.
    """
    from ..catalog.store import catalog
    from ..settle import resolution

    return resolution(settings_of(measurement), catalog()).scenario


def estimate_of(measurement: Measurement) -> Estimate:
    """Estimate a measurement's scenario as `llmfeas estimate` would.

    Raises:
        LlmfeasError: the scenario cannot be answered.
    """
    from ..catalog.store import catalog
    from ..feasibility.core import estimate
    from ..settle import resolution

    return estimate(resolution(settings_of(measurement), catalog()))


def published_tokens_per_second(measurement: Measurement, scenario: Scenario) -> float | None:
    """Speed of a training run, from tokens, step time, or printed FLOP/s or MFU over the full square of attention."""
    measured = measurement.measured
    if measured.tokens_per_second is not None:
        return measured.tokens_per_second
    if measured.step_seconds is not None:
        return step_tokens(scenario) / measured.step_seconds
    rate = measured.model_flop_per_s_per_device
    if rate is None and measured.mfu is not None:
        rate = measured.mfu * scenario.device.peak16_flop_per_s
    if rate is None:
        return None
    sums = architecture_sums(scenario.model.architecture)
    flop = 6 * (sums.active + sums.head_weights) + 3 * sums.attention_square_flop(scenario.seq_len)
    return scenario.num_devices * rate / flop


def comparisons(measurement: Measurement, estimate: Estimate) -> Iterator[ComparedFigure]:
    """Set every measured quantity of a row beside ours."""
    scenario = estimate.scenario
    parts = _training(measurement, estimate) if scenario.is_training else _inference(measurement, estimate)
    backend = str(measurement.backend or scenario.device.backend)
    for kind, quantity, measured, ours, thumb in (*parts, *_both(measurement, estimate)):
        yield ComparedFigure(measurement, kind, quantity, backend, measured, ours, thumb)


MEASURED: Mapping[Kind, tuple[str, ...]] = {
    "training": ("tokens_per_second", "step_seconds", "mfu", "model_flop_per_s_per_device"),
    "training-memory": ("peak_bytes", "peak_total_bytes"),
    "decode": ("decode_tokens_per_second", "output_tokens_per_second"),
    "prefill": ("prefill_tokens_per_second",),
    "inference-memory": ("peak_bytes", "peak_total_bytes"),
    "server-memory": ("kv_pool_bytes", "kv_pool_tokens", "requests_at_once"),
    "first-token": ("ttft_seconds_p50", "ttft_seconds_p95"),
    "token-time": ("tpot_seconds_p50",),
    "file-size": ("file_bytes", "weights_bytes"),
    "fits": ("fits",),
    "tensor-memory": ("peak_tensor_bytes", "prefill_peak_tensor_bytes"),
    "cache": ("kv_cache_bytes",),
    "flops": ("executed_flop",),
}
"""What a row must have measured to say something of a kind."""


def may_tell(measurement: Measurement, kinds: Collection[str]) -> bool:
    """Whether a row has measured what says something of some kinds; where none is named, any may."""
    names = {name for kind in kinds for name in MEASURED[cast(Kind, kind)]}
    return not kinds or any(getattr(measurement.measured, name) is not None for name in names)


Part = tuple[Kind, str, float, Range, float | None]


def _bytes_per_weight(scenario: Scenario) -> float:
    native = native_bytes(scenario.precision)
    weights = weight_bytes(
        scenario.tables.quantization, scenario.model.architecture, scenario.quant, scenario.engine_record.speaks, native
    )
    return weights.total / architecture_sums(scenario.model.architecture).parameters


def _training(measurement: Measurement, estimate: Estimate) -> Iterator[Part]:
    scenario = estimate.scenario
    speed = published_tokens_per_second(measurement, scenario)
    if speed is not None and isinstance(estimate.time, TrainingTime):
        found = estimate.time.tokens_per_second
        yield "training", "tokens_per_second", speed, found, naive_training_tokens_per_second(scenario)
    thumb = naive_training_bytes(scenario, _bytes_per_weight(scenario))
    yield from _peaks("training-memory", measurement, estimate, thumb)


def _inference(measurement: Measurement, estimate: Estimate) -> Iterator[Part]:
    scenario, measured = estimate.scenario, measurement.measured
    per_weight, time = _bytes_per_weight(scenario), estimate.time
    assert isinstance(time, InferenceTime)
    for name in ("decode_tokens_per_second", "output_tokens_per_second"):
        speed = getattr(measured, name)
        if speed is not None:
            thumb = naive_decode_tokens_per_second(scenario, per_weight)
            ours: Range = getattr(time, name)
            yield "decode", name, speed, ours, thumb
    if measured.prefill_tokens_per_second is not None:
        thumb, ours = naive_prefill_tokens_per_second(scenario), time.prefill_tokens_per_second
        yield "prefill", "prefill_tokens_per_second", measured.prefill_tokens_per_second, ours, thumb
    stored = per_weight * architecture_sums(scenario.model.architecture).parameters
    yield from _peaks("inference-memory", measurement, estimate, naive_inference_bytes(scenario, stored))
    yield from _room(measurement, estimate)
    yield from _waits(measurement, estimate)
    size = measured.file_bytes or (measured.weights_bytes if scenario.quant != "none" else None)
    if size is not None:
        yield "file-size", "file_bytes", size, Range.exact(estimate.memory.weights_file_bytes), None


def _room(measurement: Measurement, estimate: Estimate) -> Iterator[Part]:
    """The room of a server's cache; the rule of thumb has nothing beside the weights in its share of the device."""
    serving, scenario, memory = estimate.serving, estimate.scenario, estimate.memory
    if serving is None:
        return
    thumb = (scenario.gpu_memory_utilization or 1.0) * memory.capacity_bytes - memory.components["weights_bytes"]
    for name in ("kv_pool_bytes", "kv_pool_tokens", "requests_at_once"):
        value = getattr(measurement.measured, name)
        if value is not None:
            ours: Range = getattr(serving, name)
            naive = max(thumb, 1.0) * ours.expected / max(serving.kv_pool_bytes.expected, 1.0)
            yield "server-memory", name, value, ours, naive


def _waits(measurement: Measurement, estimate: Estimate) -> Iterator[Part]:
    """What requests wait under a load; a server that does not keep up has no figure and is infinitely wrong."""
    measured, load = measurement.measured, estimate.load
    if load is ABSENT:
        return
    endless = Range.exact(math.inf)
    for kind, name, place in WAITS:
        value = getattr(measured, f"{name}_{place}")
        if value is not None:
            wait = getattr(getattr(load, name), place)
            yield kind, f"{name}_{place}", value, wait.shown if wait else endless, None


def _both(measurement: Measurement, estimate: Estimate) -> Iterator[Part]:
    measured, memory = measurement.measured, estimate.memory
    if measured.fits is not None:
        ours = Range.exact(float(estimate.verdict.memory != "exceeds"))
        yield "fits", "fits", float(measured.fits), ours, None
    tensors = Range.exact(memory.peak_bytes.expected - memory.components.get("runtime_bytes", 0.0))
    for name in ("peak_tensor_bytes", "prefill_peak_tensor_bytes"):
        value = getattr(measured, name)
        if value is not None:
            yield "tensor-memory", name, value, tensors, None
    if measured.kv_cache_bytes is not None:
        yield "cache", "kv_cache_bytes", measured.kv_cache_bytes, Range.exact(memory.kv_cache_bytes), None
    if measured.executed_flop is not None:
        yield "flops", "executed_flop", measured.executed_flop, Range.exact(estimate.flops.hardware), None


def _peaks(kind: Kind, measurement: Measurement, estimate: Estimate, thumb: float) -> Iterator[Part]:
    """The peak of one device, and of all together, as the source counts it: what an allocator reports as allocated
    holds no context or library.
    """
    peak, measured, count = estimate.memory.peak_bytes, measurement.measured, estimate.scenario.num_devices
    if measurement.memory_kind == "allocated":
        beside = estimate.memory.components.get("runtime_bytes", 0.0)
        inside = training_memory(estimate.scenario).kernel_bytes if estimate.scenario.is_training else 0.0
        peak = peak.shifted(inside - beside).at_least(0.0)
    if measured.peak_bytes is not None:
        yield kind, "peak_bytes", measured.peak_bytes, peak, thumb
    if measured.peak_total_bytes is not None:
        yield kind, "peak_total_bytes", measured.peak_total_bytes, peak.scaled(count), thumb * count


def compared(measurement: Measurement) -> list[ComparedFigure]:
    """Estimate a measurement's scenario and compare.

    Raises:
        LlmfeasError: the scenario cannot be answered; the message begins with file and line of the row.
    """
    try:
        return list(comparisons(measurement, estimate_of(measurement)))
    except LlmfeasError as error:
        message = f"{measurement.where} ({measurement.id}): {error.message}"
        raise type(error)(error.code, message, error.hint, error.candidates) from None


# The rules of thumb that people use, as a yardstick: what our figures must beat on the same rows.
MFU = 0.4
BANDWIDTH_SHARE = 0.7
TRAINING_BYTES_PER_WEIGHT = 18.0
OVERHEAD = 1.2
"""Factor that people put on weights for everything else."""


def naive_training_tokens_per_second(scenario: Scenario) -> float:
    """6 N D at 40 % of the dense 16-bit peak of all devices, tokens/s."""
    flop = 6 * _active(scenario)
    return MFU * scenario.device.peak16_flop_per_s * scenario.num_devices / flop


def naive_decode_tokens_per_second(scenario: Scenario, weight_bytes_per_weight: float) -> float:
    """70 % of the memory bandwidth over the bytes of the active weights, for each sequence, tokens/s."""
    read = _active(scenario) * weight_bytes_per_weight / scenario.tp
    return BANDWIDTH_SHARE * scenario.device.bandwidth_bytes_per_s / read * scenario.concurrency


def naive_prefill_tokens_per_second(scenario: Scenario) -> float:
    """2 N a token at 40 % of the dense 16-bit peak, tokens/s."""
    return MFU * scenario.device.peak16_flop_per_s * scenario.tp / (2 * _active(scenario))


def naive_training_bytes(scenario: Scenario, weight_bytes_per_weight: float) -> float:
    """18 bytes a parameter, or frozen weights and a fifth on top for adapters, per device."""
    weights = architecture_sums(scenario.model.architecture).parameters
    shares = scenario.tp * scenario.pp * (scenario.dp if scenario.zero >= 3 else 1)
    if scenario.trains_adapters:
        return OVERHEAD * weights * weight_bytes_per_weight / shares
    return TRAINING_BYTES_PER_WEIGHT * weights / shares


def naive_inference_bytes(scenario: Scenario, weights_bytes: float) -> float:
    """Weights and a fifth on top, per device."""
    return OVERHEAD * weights_bytes / (scenario.tp * scenario.pp)


def _active(scenario: Scenario) -> float:
    sums = architecture_sums(scenario.model.architecture)
    return sums.parameters - sums.routed_weights + sums.routed_active

"""Time of a training job: seconds a step, tokens a second, MFU, total, with ranges and what binds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..contract import Published, hidden
from ..model.sums import architecture_sums
from ..ranges import Range
from ..record import dataclass
from ..scenario import Scenario, whatever_the_batch
from .rates import peak_flop_per_s, training_rates
from .regimes import Evidence, Interval, calibrated, interval, training_regime, weakest
from .step import step_parts
from .work import ADAPTER_TASKS

BoundBy = Literal["compute", "bandwidth", "host", "communication", "bubble"]

KINDS: Mapping[str, BoundBy] = {
    "matrix": "compute",
    "attention": "compute",
    "streaming": "bandwidth",
    "decoding": "bandwidth",
    "merging": "bandwidth",
    "optimizer": "bandwidth",
    "host": "host",
    "tensor_parallel": "communication",
    "expert_parallel": "communication",
    "zero": "communication",
    "offload": "communication",
    "gradient_sync": "communication",
    "bubble": "bubble",
}
"""What each part of a step waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTime(Published):
    """Seconds of a step and of the job; `parts` add up to a step as computed, before any calibration."""

    step_seconds: Range
    tokens_per_second: Range
    mfu: Range
    total_seconds: Range
    bound_by: BoundBy
    parts: Mapping[str, float] = hidden()
    regime: str = hidden()
    evidence: tuple[Evidence, str] = hidden()
    """What stands behind the range, and the kind of run."""
    own_rows: int = hidden(default=0)
    """Measurements of the user's own that narrowed the range."""


def bound_by(parts: Mapping[str, float]) -> BoundBy:
    """Give what the largest share of a step waits for."""
    shares: dict[BoundBy, float] = {}
    for name, seconds in parts.items():
        kind = KINDS[name]
        shares[kind] = shares.get(kind, 0.0) + seconds
    return max(shares, key=lambda kind: shares[kind])


def step_tokens(scenario: Scenario) -> float:
    """Tokens of one optimizer step: all micro-batches of all data-parallel ranks."""
    return float(scenario.micro_steps * scenario.micro_batch * scenario.seq_len * scenario.dp)


def layout_tokens_per_second(scenario: Scenario) -> float:
    """Give the expected speed of a layout, to compare it with other layouts of the same job."""
    return step_tokens(scenario) / sum(step_parts(scenario).values())


@whatever_the_batch
def model_flop_per_token(scenario: Scenario) -> float:
    """FLOP that training one token needs: forward and twice that backward; adapters skip the weight gradients."""
    sums = architecture_sums(scenario.model.architecture)
    matrix_passes = 2 if scenario.task in ADAPTER_TASKS else 3
    matrix = 2 * (sums.active + sums.head_weights)
    return matrix_passes * matrix + 3 * sums.attention_square_flop(scenario.seq_len)


@whatever_the_batch
def run_interval(scenario: Scenario) -> Interval:
    """Give the 80 % interval of a training run."""
    device, efficiency = scenario.device, scenario.tables.efficiency
    moe = scenario.model.architecture.experts is not None
    style = scenario.engine_record.training.style
    regime = training_regime(device, scenario.task, style, scenario.precision, moe)
    rates = training_rates(efficiency, device, scenario.precision, style)
    offloaded = int(scenario.offload != "none")
    found = interval(efficiency, "training", regime, rates.priors + offloaded)
    return calibrated(efficiency, device, "training", found)


@whatever_the_batch
def _peak_flop_per_s(scenario: Scenario) -> float:
    return peak_flop_per_s(scenario.device, scenario.precision) * scenario.num_devices


def _feasible(seconds: Range, scenario: Scenario, tokens_per_flop_per_s: float) -> Range:
    """Cut off the speed that no device has: every product at its peak, attention over the causal half alone."""
    causal_half = 1.5 * architecture_sums(scenario.model.architecture).attention_square_flop(scenario.seq_len)
    fastest = tokens_per_flop_per_s * (model_flop_per_token(scenario) - causal_half)
    low = min(seconds.expected, max(seconds.low, fastest))
    return Range(low, seconds.expected, seconds.high)


def training_time(scenario: Scenario) -> TrainingTime:
    """Give how long a training job takes.

    Seconds and tokens a second of the whole job; MFU against the dense peak of the format asked for, with attention
    counted over the full square. `scenario.mfu` replaces the whole model, communication included, and is exact.
    """
    flop = model_flop_per_token(scenario)
    peak = _peak_flop_per_s(scenario)
    tokens = step_tokens(scenario)
    if scenario.mfu is not None:
        speed = Range.exact(scenario.mfu * peak / flop)
        seconds = speed.inverted(tokens)
        parts: dict[str, float] = {"matrix": seconds.expected}
        found = Interval("given", 1.0, "enough")
    else:
        parts = step_parts(scenario)
        found = run_interval(scenario)
        seconds = _feasible(Range.around(sum(parts.values()) / found.factor, found.width), scenario, tokens / peak)
        speed = seconds.inverted(tokens)
    return TrainingTime(
        step_seconds=seconds,
        tokens_per_second=speed,
        mfu=speed.scaled(flop / peak),
        total_seconds=speed.inverted(scenario.tokens or tokens),
        bound_by=bound_by(parts),
        parts=parts,
        regime=found.regime,
        evidence=weakest(found),
        own_rows=found.own_rows,
    )

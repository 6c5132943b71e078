"""Time of a training job: seconds a step, tokens a second, MFU, total, with ranges and what binds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..contract import Published, hidden
from ..derivation import DEVICE, MODEL, SETTING, Say, plain
from ..findings import cached_across_batches
from ..memory.rollouts import writes_itself
from ..ranges import Range
from ..record import dataclass
from ..scenario import Scenario
from ..units import GB
from ..workload.kernels import job_of, multiplies_integers, software_of
from ..workload.text_tokens import stored_bytes
from .floor import counted_flop_per_token, least_step_seconds, total_peak_flop_per_s
from .rates import peak_flop_per_s, rates_of
from .regimes import (
    Evidence,
    Interval,
    calibrated,
    host_paced,
    interval,
    known_software,
    paced,
    training_regime,
    under_unmeasured,
    unmeasured,
    weakest,
)
from .step import least_token_seconds, step_parts
from .work import work_of

BoundBy = Literal["compute", "bandwidth", "host", "communication", "bubble", "data"]

KINDS: Mapping[str, BoundBy] = {
    "matrix": "compute",
    "attention": "compute",
    "recurrence": "compute",
    "streaming": "bandwidth",
    "routing": "bandwidth",
    "decoding": "bandwidth",
    "adapters": "bandwidth",
    "merging": "bandwidth",
    "optimizer": "bandwidth",
    "host": "host",
    "tensor_parallel": "communication",
    "context_parallel": "communication",
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
    unwaited_tokens_per_second: float = hidden(default=0.0)
    """What it were if data were always there."""


def bound_by(parts: Mapping[str, float], writes: BoundBy = "bandwidth") -> BoundBy:
    """What the largest share of a step waits for; `writes`: what writing answers does."""
    shares: dict[BoundBy, float] = {}
    for name, seconds in parts.items():
        kind = writes if name == "rollout" else KINDS[name]
        shares[kind] = shares.get(kind, 0.0) + seconds
    return max(shares, key=lambda kind: shares[kind])


def step_tokens(scenario: Scenario) -> float:
    """Tokens of one optimizer step: all micro-batches of all data-parallel ranks."""
    return float(scenario.micro_steps * scenario.sequences * scenario.seq_len * scenario.dp)


def layout_tokens_per_second(scenario: Scenario) -> float:
    """The expected speed of a layout, to compare it with other layouts of the same job."""
    return step_tokens(scenario) / sum(step_parts(scenario).values())


def run_interval(scenario: Scenario, parts: Mapping[str, float]) -> Interval:
    """The 80 % interval of a training run, whose step has these parts."""
    return _interval(scenario, host_paced(parts))


@cached_across_batches
def _interval(scenario: Scenario, by_host: bool) -> Interval:
    device, efficiency = scenario.device, scenario.tables.efficiency
    judged = int(scenario.offload != "none") + int(multiplies_integers(scenario))
    regime = paced(efficiency, kind_of_run(scenario), by_host=by_host)
    found = interval(efficiency, "training", regime, rates_of(scenario).priors + judged)
    if scenario.objective is not None:
        found = unmeasured(found, scenario.task, written=scenario.objective.rollouts)
    elif not software_of(scenario, known_software(efficiency, device.backend, job_of(scenario))):
        found = under_unmeasured(efficiency, found, scenario.engine_record.name)
    return calibrated(efficiency, device, "training", found)


def kind_of_run(scenario: Scenario) -> str:
    """The kind of a training run, whatever sets its pace."""
    moe, style = scenario.model.architecture.experts is not None, scenario.engine_record.training.style
    return training_regime(scenario.device, scenario.method, style, scenario.precision, moe)


def training_time(scenario: Scenario, parts: Mapping[str, float] | None = None, say: Say = plain) -> TrainingTime:
    """How long a training job takes; `parts`: those of its step, where they are known.

    Seconds and tokens a second of the whole job; MFU is the share of the dense peak of the format asked for that the
    work reaches which a step cannot do without. `scenario.mfu` replaces the whole model, communication included, and is
    exact; it is read as papers print it, with attention over the full square.
    """
    flop, tokens = say("flop_a_token", counted_flop_per_token(scenario), "FLOP", MODEL), step_tokens(scenario)
    each_peak = say("peak", peak_flop_per_s(scenario.device.unlimited, scenario.precision), "FLOP/s", DEVICE)
    peak = say("num_devices", scenario.num_devices, "devices", SETTING) * each_peak
    made = say("step_tokens", tokens, "tokens")
    if scenario.mfu is not None:
        seconds = Range.exact(made * flop / (peak * say("mfu", scenario.mfu, "", SETTING)))
        parts = {"matrix": float(seconds.expected)}
        found = Interval("given", 1.0, "enough")
    else:
        parts = step_parts(scenario) if parts is None else parts
        found = run_interval(scenario, parts)
        named = parts if say is plain else {name: say(name, each, "s") for name, each in parts.items() if each}
        measured = say("measured", found.factor, "", "own measurements" if found.own_rows else "default")
        least = say("least", least_step_seconds(scenario, tokens), "s", DEVICE)
        seconds = Range.around(sum(named.values()) / measured, found.width).at_least(least)
    unwaited, loading = float(seconds.expected), loading_seconds(scenario, tokens)
    if loading > seconds.low:
        seconds = seconds.at_least(say("loading", loading, "s", "given"))
    speed = _called("step_seconds", seconds, "s", say).inverted(made)
    known = _called("tokens_per_second", speed, "tokens/s", say)
    return TrainingTime(
        step_seconds=seconds,
        tokens_per_second=speed,
        mfu=known.scaled(flop / peak),
        total_seconds=known.inverted(say("tokens", scenario.tokens or tokens, "tokens", SETTING)),
        bound_by="data" if loading > unwaited else bound_by(parts, "host" if writes_itself(scenario) else "bandwidth"),
        parts=parts,
        regime=found.regime,
        evidence=weakest(found),
        own_rows=found.own_rows,
        unwaited_tokens_per_second=tokens / unwaited,
    )


def _called(name: str, figure: Range, unit: str, say: Say) -> Range:
    """The same, whose expected value goes by a name in what is made of it."""
    return figure if say is plain else Range(figure.low, say(name, figure.expected, unit), figure.high)


def least_job_seconds(scenario: Scenario) -> float:
    """A floor for the whole job in any layout, known before one is chosen: all devices work all the time."""
    tokens, count = scenario.tokens or 0.0, scenario.num_devices
    if scenario.mfu is not None:
        return tokens * counted_flop_per_token(scenario) / (scenario.mfu * total_peak_flop_per_s(scenario))
    rates = rates_of(scenario)
    few, most = (scenario.pp,) * 2 if scenario.was_given("pp") else (1, scenario.model.architecture.layers)
    stages = range(few, 1 + (most if count > 1 else few))
    each = least_token_seconds(work_of(scenario), rates, scenario.attention == "flash", stages)
    fastest = max(_interval(scenario, by_host).factor for by_host in (False, True))
    return SAFE * tokens * each / (count * fastest)


SAFE = 1 - 1e-9
"""What rounding may add to a floor."""


def loaded_tokens_per_second(scenario: Scenario) -> float | None:
    """Tokens a second that come in at most; None where nobody said, and of what the model writes itself."""
    if scenario.objective is not None and scenario.objective.rollouts:
        return None
    limits = [] if scenario.loader_tokens_per_s is None else [scenario.loader_tokens_per_s]
    if scenario.storage_gb_per_s is not None:
        limits.append(scenario.storage_gb_per_s * GB / stored_bytes(scenario.model.architecture.vocab))
    return min(limits, default=None)


def loading_seconds(scenario: Scenario, tokens: float) -> float:
    """The least seconds in which the tokens of a step are there, which are read while another one is computed."""
    speed = loaded_tokens_per_second(scenario)
    return 0.0 if speed is None else tokens / speed

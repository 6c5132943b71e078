"""Speed of inference: prefill, decoding of all sequences, sustained service, time to the first token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..contract import Published, hidden
from ..model.sums import architecture_sums
from ..ranges import Range
from ..record import dataclass
from ..scenario import Scenario, whatever_the_batch
from ..workload.serving import streams_weights
from .decode import cached_tokens, decode_parts, decode_rates, readers, replicas, sequences_per_replica
from .host import host_share, streamed_seconds
from .prefill import pass_tokens, prefill_parts, prefill_rates, prompt_tokens
from .rates import peak_flop_per_s
from .regimes import Evidence, Interval, calibrated, decode_regime, interval, prefill_regime, weakest

BoundBy = Literal["compute", "bandwidth", "host", "communication"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceTime(Published):
    """Speed of the whole service; `decode_parts` add up to one step, `prefill_parts` to one prompt token (seconds)."""

    prefill_tokens_per_second: Range
    decode_tokens_per_second: Range
    """Generated tokens of all sequences while they decode; prompts take no part."""
    tokens_per_second_per_sequence: Range
    """What one user sees while decoding."""
    at_cached_tokens: float
    time_to_first_token_seconds: Range
    prefill_bound_by: BoundBy
    decode_bound_by: BoundBy
    output_tokens_per_second: Range = hidden()
    """Generated tokens over the whole time, prompts included, of requests that are kept at that number: what published
    runs of several requests measure, and what a million tokens cost by. Users read `result.load`."""
    decode_parts: Mapping[str, float] = hidden()
    prefill_parts: Mapping[str, float] = hidden()
    regime: str = hidden()
    prefill_regime: str = hidden()
    evidence: tuple[Evidence, str] = hidden()
    """What stands behind the range that rests on less, decoding or prefill, and its kind of run."""
    own_rows: int = hidden(default=0)
    """Measurements of the user's own that narrowed the ranges."""


def decode_bound_by(parts: Mapping[str, float]) -> BoundBy:
    """Give what the largest share of a decoding step waits for."""
    shares: dict[BoundBy, float] = {
        "bandwidth": parts["weights"] + parts["cache"],
        "compute": parts["compute"],
        "host": parts["fixed"] + parts["host_layers"],
        "communication": parts["link"] + parts["offload"],
    }
    return max(shares, key=lambda kind: shares[kind])


def prefill_bound_by(parts: Mapping[str, float]) -> BoundBy:
    """Give what the largest share of reading a prompt waits for."""
    shares: dict[BoundBy, float] = {
        "compute": parts["matrix"] + parts["attention"],
        "bandwidth": parts["weights"],
        "host": parts["fixed"],
        "communication": parts["offload"],
    }
    return max(shares, key=lambda kind: shares[kind])


def prompt_work_seconds(scenario: Scenario, sequences: float) -> float:
    """Seconds that a serving engine spends on the prompts of a batch: matrix and attention work at a batch's rate.

    Weights that lie on the host cross once a pass.
    """
    sums = architecture_sums(scenario.model.architecture)
    device = scenario.device
    peak = peak_flop_per_s(device, "fp8-mixed") if scenario.quant == "fp8" else device.peak16_flop_per_s
    flop = scenario.prompt * (2 * sums.active + sums.attention_flop(max(1, scenario.prompt)))
    tokens = max(1.0, sequences * scenario.prompt)
    one_pass = pass_tokens(scenario, tokens)
    crossing = streamed_seconds(scenario, one_pass) * tokens / one_pass
    return sequences * flop / (peak * scenario.tables.efficiency.value("decode.compute") * scenario.tp) + crossing


def sustained_speed(scenario: Scenario, step: float) -> float:
    """Generated tokens a second of all sequences and replicas, from the seconds of one decoding step.

    Several sequences with prompts: `0.9 sequences generated / (step generated + prompt work)`, the share of the time
    that a batch is kept full. One sequence, or no prompts: `sequences / step`.
    """
    sequences = sequences_per_replica(scenario)
    if sequences <= 1 or scenario.prompt == 0:
        return replicas(scenario) * sequences / step
    generated, prompts = float(scenario.output or 1), prompt_work_seconds(scenario, sequences)
    busy = scenario.tables.efficiency.value("decode.service")
    return replicas(scenario) * busy * sequences * generated / (step * generated + prompts)


def speed_intervals(scenario: Scenario) -> tuple[Interval, Interval]:
    """How sure the speed of decoding and that of reading prompts are, with the requests at once that were asked."""
    return _intervals(scenario, sequences_per_replica(scenario))


@whatever_the_batch
def _intervals(scenario: Scenario, sequences: float) -> tuple[Interval, Interval]:
    numbers, device, speed = scenario.tables.efficiency, scenario.device, scenario.engine_record.serving.speed
    host = int(host_share(scenario) > 0 or streams_weights(scenario))
    decode = decode_rates(numbers, device, speed, scenario.quant, fused=False)
    prefill = prefill_rates(numbers, device, speed, scenario.quant, fused=False)
    decoding = interval(numbers, "decode", decode_regime(device, speed, sequences, scenario.tp), decode.priors + host)
    reading = interval(numbers, "prefill", prefill_regime(device, speed), prefill.priors + host)
    return calibrated(numbers, device, "decode", decoding), calibrated(numbers, device, "prefill", reading)


@whatever_the_batch
def _seconds_alone(scenario: Scenario, prompt: int) -> float:
    """Seconds a prompt token of one request that has the devices for itself."""
    return sum(prefill_parts(scenario, prompt, 1.0).values())


def inference_time(scenario: Scenario) -> InferenceTime:
    """Give the speed of inference.

    Tokens a second over all sequences and devices; time to first token is that of one request alone. `scenario.mfu`
    has no meaning here.
    """
    cached, prompt = cached_tokens(scenario), prompt_tokens(scenario)
    sequences = sequences_per_replica(scenario)
    decoding = decode_parts(scenario, cached, sequences)
    step, made = sum(decoding.values()), scenario.tokens_a_step
    reading = prefill_parts(scenario, prompt, sequences)
    token = sum(reading.values())
    alone = token if sequences == 1 else _seconds_alone(scenario, prompt)
    found, found_prefill = _intervals(scenario, sequences)
    reading_seconds = scenario.prompt * alone / found_prefill.factor
    first = reading_seconds + step / found.factor
    prompt_rules = reading_seconds > step / found.factor
    return InferenceTime(
        prefill_tokens_per_second=Range.around(found_prefill.factor * readers(scenario) / token, found_prefill.width),
        decode_tokens_per_second=Range.around(found.factor * replicas(scenario) * sequences * made / step, found.width),
        output_tokens_per_second=Range.around(found.factor * sustained_speed(scenario, step / made), found.width),
        tokens_per_second_per_sequence=Range.around(found.factor * made / step, found.width),
        at_cached_tokens=cached,
        time_to_first_token_seconds=Range.around(first, found_prefill.width if prompt_rules else found.width),
        prefill_bound_by=prefill_bound_by(reading),
        decode_bound_by=decode_bound_by(decoding),
        decode_parts=decoding,
        prefill_parts=reading,
        regime=found.regime,
        prefill_regime=found_prefill.regime,
        evidence=weakest(found, found_prefill),
        own_rows=found.own_rows + found_prefill.own_rows,
    )

"""Speed of inference: prefill, decoding of all sequences, sustained service, time to the first token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ...catalog.efficiency import Efficiency, efficiency
from ...model.sums import architecture_sums
from ...ranges import Range
from ...record import dataclass
from ...scenario import Scenario, whatever_the_batch
from ..serving import streams_weights
from .decode import cached_tokens, decode_parts, decode_rates, generated_tokens, replicas, sequences_per_replica
from .host import host_share, streamed_seconds
from .prefill import pass_tokens, prefill_parts, prefill_rates, prompt_tokens
from .rates import peak_flop_per_s
from .regimes import Interval, calibrated, decode_regime, interval, prefill_regime

BoundBy = Literal["compute", "bandwidth", "host", "communication"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceTime:
    """Speed of the whole service; `decode_parts` add up to one step, `prefill_parts` to one prompt token (seconds)."""

    prefill_tokens_per_second: Range
    decode_tokens_per_second: Range
    """Generated tokens of all sequences; several sequences with prompts: what a service sustains, prompts included."""
    tokens_per_second_per_sequence: Range
    """What one user sees while decoding."""
    at_cached_tokens: float
    time_to_first_token_seconds: Range
    prefill_bound_by: BoundBy
    decode_bound_by: BoundBy
    decode_parts: Mapping[str, float]
    prefill_parts: Mapping[str, float]
    regime: str
    prefill_regime: str
    thin: bool
    """Fewer than three groups of measurements, or a parameter that is only judgement."""
    own_rows: int = 0
    """Measurements of the user's own that narrowed the ranges."""

    def to_dict(self) -> dict[str, object]:
        """Give the time as the JSON contract shapes it."""
        return {
            "prefill_tokens_per_second": self.prefill_tokens_per_second.to_dict(),
            "decode_tokens_per_second": self.decode_tokens_per_second.to_dict(),
            "tokens_per_second_per_sequence": self.tokens_per_second_per_sequence.to_dict(),
            "at_cached_tokens": self.at_cached_tokens,
            "time_to_first_token_seconds": self.time_to_first_token_seconds.to_dict(),
            "prefill_bound_by": self.prefill_bound_by,
            "decode_bound_by": self.decode_bound_by,
        }


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


def prompt_work_seconds(numbers: Efficiency, scenario: Scenario, sequences: float) -> float:
    """Seconds that a serving engine spends on the prompts of a batch: matrix and attention work at a batch's rate.

    Weights that lie on the host cross once a pass.
    """
    sums = architecture_sums(scenario.model.architecture)
    device = scenario.device
    peak = peak_flop_per_s(device, "fp8-mixed") if scenario.quant == "fp8" else device.peak16_flop_per_s
    flop = scenario.prompt * (2 * sums.active + sums.attention_flop(max(1, scenario.prompt)))
    tokens = max(1.0, sequences * scenario.prompt)
    one_pass = pass_tokens(scenario, tokens)
    crossing = streamed_seconds(numbers, scenario, one_pass) * tokens / one_pass
    return sequences * flop / (peak * numbers.value("decode.compute") * scenario.tp) + crossing


def sustained_speed(numbers: Efficiency, scenario: Scenario, step: float) -> float:
    """Generated tokens a second of all sequences and replicas, from the seconds of one decoding step.

    Several sequences with prompts: `0.9 sequences generated / (step generated + prompt work)`, the share of the time
    that a batch is kept full. One sequence, or no prompts: `sequences / step`.
    """
    sequences = sequences_per_replica(scenario)
    if sequences <= 1 or scenario.prompt == 0:
        return replicas(scenario) * sequences / step
    generated, prompts = generated_tokens(scenario), prompt_work_seconds(numbers, scenario, sequences)
    busy = numbers.value("decode.service")
    return replicas(scenario) * busy * sequences * generated / (step * generated + prompts)


@whatever_the_batch
def _intervals(scenario: Scenario, numbers: Efficiency, sequences: float) -> tuple[Interval, Interval]:
    device, engine, quant = scenario.device, scenario.engine, scenario.quant
    host = int(host_share(scenario) > 0 or streams_weights(scenario))
    decode = decode_rates(numbers, device, engine, quant, fused=False)
    name = decode_regime(numbers, device, engine, sequences, scenario.tp)
    prefill = prefill_rates(numbers, device, engine, quant, fused=False)
    return (
        calibrated(numbers, device, "decode", interval(numbers, "decode", name, decode.priors + host)),
        calibrated(
            numbers,
            device,
            "prefill",
            interval(numbers, "prefill", prefill_regime(numbers, device, engine), prefill.priors + host),
        ),
    )


@whatever_the_batch
def _seconds_alone(scenario: Scenario, numbers: Efficiency, prompt: int) -> float:
    """Seconds a prompt token of one request that has the devices for itself."""
    return sum(prefill_parts(numbers, scenario, prompt, 1.0).values())


def inference_time(scenario: Scenario, numbers: Efficiency | None = None) -> InferenceTime:
    """Give the speed of inference.

    Tokens a second over all sequences and devices; time to first token is that of one request alone. `numbers`
    replaces the calibrated numbers of the data. `scenario.mfu` has no meaning here.
    """
    numbers = numbers or efficiency()
    cached, prompt = cached_tokens(scenario), prompt_tokens(scenario)
    sequences = sequences_per_replica(scenario)
    decoding = decode_parts(numbers, scenario, cached)
    step = sum(decoding.values())
    reading = prefill_parts(numbers, scenario, prompt, sequences)
    token = sum(reading.values())
    alone = token if sequences == 1 else _seconds_alone(scenario, numbers, prompt)
    found, found_prefill = _intervals(scenario, numbers, sequences)
    reading_seconds = scenario.prompt * alone / found_prefill.factor
    first = reading_seconds + step / found.factor
    prompt_rules = reading_seconds > step / found.factor
    return InferenceTime(
        prefill_tokens_per_second=Range.around(found_prefill.factor * replicas(scenario) / token, found_prefill.width),
        decode_tokens_per_second=Range.around(found.factor * sustained_speed(numbers, scenario, step), found.width),
        tokens_per_second_per_sequence=Range.around(found.factor / step, found.width),
        at_cached_tokens=cached,
        time_to_first_token_seconds=Range.around(first, found_prefill.width if prompt_rules else found.width),
        prefill_bound_by=prefill_bound_by(reading),
        decode_bound_by=decode_bound_by(decoding),
        decode_parts=decoding,
        prefill_parts=reading,
        regime=found.regime,
        prefill_regime=found_prefill.regime,
        thin=found.thin or found_prefill.thin,
        own_rows=found.own_rows + found_prefill.own_rows,
    )

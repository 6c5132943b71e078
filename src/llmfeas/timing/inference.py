"""Speed of inference: prefill, decoding of all sequences, sustained service, time to the first token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

from ..catalog.joined import Joined
from ..contract import Added, Published, hidden, published
from ..findings import cached_across_batches
from ..ranges import Range
from ..record import dataclass, replace
from ..scenario import Scenario
from ..workload.serving import answer_tokens, peers, readers, streams_weights, writers
from .decode import cached_tokens, decode_parts, sequences_in_pass, sequences_per_replica
from .decode_rates import decode_rates
from .host import experts_share, host_share
from .paths import earlier
from .prefill import prefill_parts, prefill_rates, prompt_tokens
from .regimes import Evidence, Interval, calibrated, decode_regime, interval, prefill_regime, weakest
from .serving_floor import least_decode_seconds, least_first_token_seconds, least_prompt_seconds

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
    decode_parts: Mapping[str, float] = hidden()
    prefill_parts: Mapping[str, float] = hidden()
    regime: str = hidden()
    prefill_regime: str = hidden()
    evidence: tuple[Evidence, str] = hidden()
    """What stands behind the range that rests on less, decoding or prefill, and its kind of run."""
    served: Callable[[], Range] = hidden(compare=False, repr=False)
    own_rows: int = hidden(default=0)
    """Measurements of the user's own that narrowed the ranges."""
    total_seconds: Added[Range | None] = None
    """Time in which a model that writes nothing reads all --tokens; null where they are not given."""

    @published
    def output_tokens_per_second(self) -> Added[Range]:
        """Generated tokens of all sequences over the whole time, prompts included: that of `result.load` where there is
        one, else of one request after the other. What published runs measure, and what a million tokens cost by."""
        return self.served()


def decode_bound_by(parts: Mapping[str, float]) -> BoundBy:
    """What the largest share of a decoding step waits for."""
    shares: dict[BoundBy, float] = {
        "bandwidth": parts["weights"] + parts["cache"],
        "compute": parts["compute"],
        "host": parts["fixed"] + parts["host_layers"] + parts.get("host_experts", 0.0),
        "communication": parts["link"] + parts["offload"],
    }
    return max(shares, key=lambda kind: shares[kind])


def prefill_bound_by(parts: Mapping[str, float]) -> BoundBy:
    """What the largest share of reading a prompt waits for."""
    shares: dict[BoundBy, float] = {
        "compute": parts["matrix"] + parts["attention"] + parts.get("images", 0.0),
        "bandwidth": parts["weights"] + parts["streaming"],
        "host": parts["fixed"],
        "communication": parts["offload"],
    }
    return max(shares, key=lambda kind: shares[kind])


def one_by_one(first: Range, token: Range, answer: int) -> Range:
    """Generated tokens a second where one request follows the other: an answer over its first token and the rest."""
    rest = answer - 1
    return Range(
        answer / (first.high + rest / token.low),
        answer / (first.expected + rest / token.expected),
        answer / (first.low + rest / token.high),
    )


def speed_intervals(scenario: Scenario) -> tuple[Interval, Interval]:
    """How sure the speed of decoding and that of reading prompts are, with the requests at once that were asked."""
    return _intervals(scenario, sequences_per_replica(scenario) > 1)


@cached_across_batches
def _intervals(scenario: Scenario, batched: bool) -> tuple[Interval, Interval]:
    numbers, device, speed = scenario.tables.efficiency, scenario.device, scenario.engine_record.serving.speed
    experts = experts_share(scenario) > 0
    host = int(host_share(scenario) > 0 or streams_weights(scenario))
    # nobody has published many speeds of unequal devices
    guessed = int(host or (experts and scenario.host_gb_per_s is None)) + int(isinstance(device, Joined))
    decode = decode_rates(numbers, device, speed, scenario.precision, scenario.quant, fused=False)
    prefill = prefill_rates(numbers, device, speed, scenario.precision, scenario.quant, fused=False)
    kind = decode_regime(device, speed, batched, scenario.tp * peers(scenario), experts=experts)
    decoding = interval(numbers, "decode", kind, decode.priors + guessed)
    reads = prefill_regime(device, speed, experts=experts)
    reading = interval(numbers, "prefill", reads, prefill.priors + host + int(isinstance(device, Joined)))
    return calibrated(numbers, device, "decode", decoding), calibrated(numbers, device, "prefill", reading)


def _prompt_speed(scenario: Scenario, parts: Mapping[str, float], found: Interval, sequences: float) -> Range:
    """Prompt tokens a second of all replicas; `parts` are the seconds of a token on one."""
    prompt = prompt_tokens(scenario)
    least = least_prompt_seconds(scenario, prompt * sequences, prompt) / (prompt * sequences)
    seconds = Range.around(sum(parts.values()) / found.factor, found.width).at_least(least)
    return seconds.inverted(readers(scenario))


def _reading(
    scenario: Scenario, parts: Mapping[str, float], found: Interval, alone: float, sequences: float
) -> InferenceTime:
    """The speed of an encoder, which writes nothing."""
    none, bound = Range(low=0.0, expected=0.0, high=0.0), prefill_bound_by(parts)
    first = Range.around(scenario.prompt * alone / found.factor, found.width)
    speed = _prompt_speed(scenario, parts, found, sequences)
    return InferenceTime(
        total_seconds=speed.inverted(scenario.tokens) if scenario.tokens else None,
        prefill_tokens_per_second=speed,
        decode_tokens_per_second=none,
        served=partial(Range, 0.0, 0.0, 0.0),
        tokens_per_second_per_sequence=none,
        at_cached_tokens=0.0,
        time_to_first_token_seconds=first.at_least(least_first_token_seconds(scenario, scenario)),
        prefill_bound_by=bound,
        decode_bound_by=bound,
        decode_parts={},
        prefill_parts=parts,
        regime=found.regime,
        prefill_regime=found.regime,
        evidence=weakest(found),
        own_rows=found.own_rows,
    )


@cached_across_batches
def _seconds_alone(scenario: Scenario, prompt: int) -> float:
    """Seconds a prompt token of one request that has the devices for itself."""
    return sum(prefill_parts(scenario, prompt, 1.0, 1 / peers(scenario)).values())


def reader_of(scenario: Scenario) -> Scenario:
    """The question to what reads prompts: the encoder of an encoder-decoder, else the model itself."""
    return scenario if scenario.model.architecture.reader is None else _encoder(scenario).in_batch_of(scenario)


@cached_across_batches
def _encoder(scenario: Scenario) -> Scenario:
    reader = scenario.model.architecture.reader
    assert reader is not None
    return replace(scenario, model=replace(scenario.model, architecture=reader), stored=None)


def busy_peers(scenario: Scenario, at_work: Callable[[Scenario], int]) -> int:
    """Of copies that share experts, those that have something to do."""
    return min(peers(scenario), at_work(scenario))


EITHER = ("prefill_tokens_per_second", "decode_tokens_per_second", "tokens_per_second_per_sequence")


def inference_time(scenario: Scenario) -> InferenceTime:
    """The speed of inference; where the engine may leave something on the host, with ranges that hold that too."""
    found, spill = _of_releases(scenario), scenario.spill
    if spill is None:
        return found
    left: dict[str, Any] = dict(spill.settings)
    spilled = _of_releases(replace(scenario, spill=None, **left))
    # a host of which nobody stated a bandwidth reads no faster than the device
    slower = {name: getattr(spilled, name).at_most(getattr(found, name).high) for name in EITHER}
    return _mixed(scenario, found, replace(spilled, **slower), spill.share)


def _of_releases(scenario: Scenario) -> InferenceTime:
    """Where nobody named the release, with ranges that hold the one before too."""
    found, before = _inference_time(scenario), earlier(scenario)
    if before is None:
        return found
    return _mixed(scenario, found, _inference_time(before), scenario.tables.efficiency.value("release.earlier"))


def _mixed(scenario: Scenario, found: InferenceTime, other: InferenceTime, share: float) -> InferenceTime:
    """Speeds whose ranges hold those of another run too, in a share of all; what was measured here says it itself."""
    if found.own_rows or not scenario.model.architecture.writes:
        return found
    names = (*EITHER, "time_to_first_token_seconds")
    mixed = {name: getattr(found, name).mixed(getattr(other, name), share) for name in names}
    each, first = mixed["tokens_per_second_per_sequence"], mixed["time_to_first_token_seconds"]
    served = partial(one_by_one, first, each, max(1, answer_tokens(scenario)))
    return replace(found, **mixed, served=served)


def _inference_time(scenario: Scenario) -> InferenceTime:
    """The speed of one release.

    Tokens a second over all sequences and devices; time to first token is that of one request alone. `scenario.mfu`
    has no meaning here.
    """
    cached, prompt = cached_tokens(scenario), prompt_tokens(scenario)
    sequences, reader = sequences_per_replica(scenario), reader_of(scenario)
    decoding = decode_parts(scenario, cached, sequences_in_pass(scenario), busy_peers(scenario, writers))
    step, made = sum(decoding.values()), scenario.tokens_a_step
    reading = prefill_parts(reader, prompt, sequences, busy_peers(scenario, readers) / peers(scenario))
    token = sum(reading.values())
    alone = token if sequences == peers(scenario) == 1 else _seconds_alone(reader, prompt)
    found, found_prefill = _intervals(scenario, sequences > 1)
    if not scenario.model.architecture.writes:
        return _reading(scenario, reading, found_prefill, alone, sequences)
    reading_seconds = scenario.prompt * alone / found_prefill.factor
    first = reading_seconds + step / found.factor
    first_token = Range.around(first, (found_prefill if reading_seconds > step / found.factor else found).width)
    first_token = first_token.at_least(least_first_token_seconds(scenario, reader))
    seconds = Range.around(step / found.factor, found.width)
    seconds = seconds.at_least(least_decode_seconds(scenario, cached, sequences))
    each = seconds.inverted(made)
    return InferenceTime(
        prefill_tokens_per_second=_prompt_speed(reader, reading, found_prefill, sequences),
        decode_tokens_per_second=each.scaled(writers(scenario) * sequences),
        tokens_per_second_per_sequence=each,
        at_cached_tokens=cached,
        time_to_first_token_seconds=first_token,
        prefill_bound_by=prefill_bound_by(reading),
        decode_bound_by=decode_bound_by(decoding),
        decode_parts=decoding,
        prefill_parts=reading,
        served=partial(one_by_one, first_token, each, max(1, answer_tokens(scenario))),
        regime=found.regime,
        prefill_regime=found_prefill.regime,
        evidence=weakest(found, found_prefill),
        own_rows=found.own_rows + found_prefill.own_rows,
    )

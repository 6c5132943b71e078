"""The roofline of one device with the run on it: FLOP/s over FLOP for each byte that must be read (Williams 2009)."""

from __future__ import annotations

from ..model.sums import architecture_sums
from ..ranges import Range
from ..record import dataclass
from ..scenario import Scenario
from ..workload.serving import writers
from .decode import cache_bytes, cached_tokens, sequences_per_replica
from .floor import least_read_bytes, work_flop_per_token
from .host import host_share
from .inference import InferenceTime
from .prefill import prompt_tokens
from .rates import peak_flop_per_s
from .serving_floor import device_read_bytes, serving_peaks
from .training import TrainingTime


@dataclass(frozen=True, slots=True)
class RoofPoint:
    """What one device does in a kind of work."""

    name: str
    flop_per_byte: float
    """Work over the bytes that it cannot do without."""
    flop_per_s: Range


@dataclass(frozen=True, slots=True)
class Roofline:
    """What one device does at most, as stated, and what the runs make of it."""

    peak_flop_per_s: float
    bandwidth_bytes_per_s: float
    runs: tuple[RoofPoint, ...]


def roofline(scenario: Scenario, time: TrainingTime | InferenceTime) -> Roofline:
    """Where the work of a scenario stands under the roof of its device; no run where the host does all of it."""
    bandwidth = scenario.device.bandwidth_bytes_per_s
    if isinstance(time, TrainingTime):
        peak = peak_flop_per_s(scenario.device, scenario.precision)
        return Roofline(peak, bandwidth, (_training(scenario, time),))
    runs: tuple[RoofPoint, ...] = ()
    if host_share(scenario) < 1:
        reading = _reading(scenario, time)
        runs = (_decoding(scenario, time), reading) if scenario.model.architecture.writes else (reading,)
    return Roofline(serving_peaks(scenario).work, bandwidth, runs)


def _training(scenario: Scenario, time: TrainingTime) -> RoofPoint:
    each = work_flop_per_token(scenario)
    micro_step = scenario.sequences * scenario.seq_len * each * scenario.dp / scenario.num_devices
    speed = time.tokens_per_second.scaled(each / scenario.num_devices)
    return RoofPoint("training", micro_step / least_read_bytes(scenario), speed)


def _decoding(scenario: Scenario, time: InferenceTime) -> RoofPoint:
    sums, ranks = architecture_sums(scenario.model.architecture), serving_peaks(scenario).expert_ranks
    sequences, positions = sequences_per_replica(scenario), 1.0 + scenario.drafted
    cache = cache_bytes(scenario, sums, cached_tokens(scenario)) * sequences
    each = 2 * (sums.active + sums.head_weights) * (1 - host_share(scenario)) / (ranks * scenario.pp)
    read = device_read_bytes(scenario, sequences * positions, cache) / scenario.pp
    speed = time.decode_tokens_per_second.scaled(each / writers(scenario))
    return RoofPoint("decoding", sequences * positions * each / read, speed)


def _reading(scenario: Scenario, time: InferenceTime) -> RoofPoint:
    sums, ranks = architecture_sums(scenario.model.architecture), serving_peaks(scenario).expert_ranks
    length = prompt_tokens(scenario)
    each = (2 * sums.active + sums.prompt_flop(length, least=True)) * (1 - host_share(scenario)) / (ranks * scenario.pp)
    read = device_read_bytes(scenario, length, 0.0) / scenario.pp
    speed = time.prefill_tokens_per_second.scaled(each / writers(scenario))
    return RoofPoint("reading prompts", length * each / read, speed)

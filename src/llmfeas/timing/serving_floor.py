"""The least time that serving takes at stated peaks: no speed of inference, nor the fast end of its range, beats it.

Bytes that a pass cannot do without, at the full bandwidth of where they lie; products, at the peak of the widest units
that the format's numbers enter. What works at the same time counts once, by what takes longest. Where nobody stated a
bandwidth (of the host, of a link) it bounds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..catalog.device import FULL_PRECISION, Device
from ..catalog.quantization import Format, NarrowUnit
from ..findings import cached_across_batches
from ..model.sums import architecture_sums
from ..record import dataclass
from ..scenario import Scenario
from ..units import GB, TERA
from ..workload.serving import draws_on_host, streams_weights
from .decode import cache_bytes, drafting
from .host import head_bytes, host_experts_bytes, host_share, parts_with_shares, weights_read_bytes
from .links import stated_host_link_bytes_per_s
from .paths import inference_path
from .rates import product_flop_per_s


@dataclass(frozen=True, slots=True)
class Peaks:
    """What the devices of a replica do at most: bytes/s and FLOP/s of one device, and how many share each work."""

    read: float
    work: float
    host_read: float
    """Of the host's memory; infinite where nobody stated it."""
    link: float
    """From the host to a device; infinite where nobody stated it."""
    ranks: int
    """Devices that read and multiply the layers together."""
    expert_ranks: int


def most_flop_per_s(device: Device, precision: str, form: Format, *, integers: bool) -> float:
    """The highest dense peak of the units that products in a format can run on, FLOP/s.

    `integers`: quantized weights are multiplied as 8-bit integers, where the format names no narrow units.
    """
    plain = form.id == "none"
    if plain and precision in FULL_PRECISION:
        return product_flop_per_s(device, precision)
    return widest_flop_per_s(device, form.units or (("int8",) if integers and not plain else ()))


def widest_flop_per_s(device: Device, units: Sequence[NarrowUnit]) -> float:
    """The highest dense peak of the 16-bit units and some narrow ones, FLOP/s."""
    others = [getattr(device.tflop_per_s, name) or 0.0 for name in ("fp16", "fp16_matrix", *units)]
    return max(device.peak16_flop_per_s, max(others) * TERA)


@cached_across_batches
def serving_peaks(scenario: Scenario) -> Peaks:
    """The most that the devices of a replica do in the formats of a scenario."""
    device = scenario.device
    path = inference_path(device, scenario.engine_record.serving.speed)
    integers = path.family == "llama.cpp" or path.backend == "cpu"
    form = scenario.tables.quantization.format(scenario.quant)
    given = scenario.host_gb_per_s
    host = math.inf if given is None else given * GB
    if draws_on_host(device):
        host = max(host, device.bandwidth_bytes_per_s)
    return Peaks(
        read=device.bandwidth_bytes_per_s,
        work=most_flop_per_s(device, scenario.precision, form, integers=integers),
        host_read=host,
        link=stated_host_link_bytes_per_s(device) or math.inf,
        ranks=scenario.tp * scenario.cp,
        expert_ranks=max(scenario.tp * scenario.cp, scenario.ep * scenario.expert_tp),
    )


def device_read_bytes(scenario: Scenario, positions: float, cache: float) -> float:
    """Bytes that one device must read of its own memory for a pass of some positions, and for a cache."""
    return _on_device(scenario, *_weights_read(scenario, positions), cache)


def _weights_read(scenario: Scenario, positions: float) -> tuple[float, float, float]:
    """Bytes of weights that every pass reads, of routed experts that some positions reach, and of those on the host."""
    dense = weights_read_bytes(scenario, 0.0)
    return dense, weights_read_bytes(scenario, positions) - dense, host_experts_bytes(scenario, positions)


def _on_device(scenario: Scenario, dense: float, routed: float, on_host: float, cache: float) -> float:
    peaks = serving_peaks(scenario)
    here = (dense + cache) / peaks.ranks + max(0.0, routed - on_host) / peaks.expert_ranks
    return here * (1 - host_share(scenario))


def _read_seconds(scenario: Scenario, positions: float, cache: float) -> float:
    """Seconds to read what a pass of some positions through all layers needs, and a cache, where each lies."""
    peaks, on_host = serving_peaks(scenario), host_share(scenario)
    dense, routed, experts = _weights_read(scenario, positions)
    device = _on_device(scenario, dense, routed, experts, cache) / peaks.read
    host = (dense + cache + routed - experts) * on_host / peaks.host_read
    crossing = 0.0
    if streams_weights(scenario):
        layers = (dense - head_bytes(scenario)) / peaks.ranks + routed / peaks.expert_ranks
        crossing = layers * (1 - on_host) / peaks.link
    # layers follow one another; experts on the host may work beside the rest of their layer
    return max(device, experts / peaks.host_read, crossing) + host


def least_decode_seconds(scenario: Scenario, tokens: float, sequences: float) -> float:
    """The least seconds of a decoding step of some sequences of one replica after `tokens` tokens each."""
    unequal = parts_with_shares(scenario)
    if unequal:
        return sum(share * least_decode_seconds(part, tokens, sequences) for part, share in unequal)
    sums, peaks = architecture_sums(scenario.model.architecture), serving_peaks(scenario)
    each, cache = 1.0 + scenario.drafted, cache_bytes(scenario, sums, tokens)
    work = 2 * (sums.active + sums.head_weights) * sequences * each * (1 - host_share(scenario))
    stages = min(float(scenario.pp), sequences)
    whole = max(_read_seconds(scenario, sequences * each, cache * sequences), work / (peaks.work * peaks.expert_ranks))
    # stages work on different sequences at once, but one sequence passes them all
    step = max(whole / stages, _read_seconds(scenario, each, cache)) if stages > 1 else whole
    if scenario.draft_model is None:
        return step
    return step + scenario.drafted * least_decode_seconds(drafting(scenario), tokens, sequences)


def least_prompt_seconds(scenario: Scenario, tokens: float, length: float) -> float:
    """The least seconds in which one replica reads so many tokens of prompts of a length."""
    unequal = parts_with_shares(scenario)
    if unequal:
        return sum(share * least_prompt_seconds(part, tokens, length) for part, share in unequal)
    sums, peaks = architecture_sums(scenario.model.architecture), serving_peaks(scenario)
    work = tokens * (2 * sums.active + sums.prompt_flop(length, least=True)) / (peaks.work * peaks.expert_ranks)
    read = _read_seconds(scenario, tokens, 0.0)
    if scenario.pp > 1:
        return max(work, read) / min(float(scenario.pp), tokens)
    return max(work, read)


def least_first_token_seconds(scenario: Scenario, reader: Scenario) -> float:
    """The least seconds from a prompt to its first token, of a request that has a replica for itself.

    `reader`: the question to what reads prompts, which in an encoder-decoder writes none.
    """
    # each token passes all stages one after the other
    unequal = parts_with_shares(scenario) or [(scenario, 1.0)]
    alone = sum(share * _read_seconds(part, 1.0, 0.0) for part, share in unequal)
    if not scenario.prompt:
        return alone
    return max(alone, least_prompt_seconds(reader, float(scenario.prompt), float(scenario.prompt)))

"""Seconds of one decoding step of all sequences: read weights and cache, unpack, multiply, launch, synchronise.

    step = (max(read + cache, work)^3 + unpack^3)^(1/3) + fixed + link + host        (physics of decoding)

Reading and unpacking overlap as a soft maximum; work counts with several sequences only. What waits for the host: host.
Eager code launches ahead of the device: there `fixed` is what the root of the sum of both squares adds. bitsandbytes
writes 4-bit weights out in 16 bits where several tokens pass, and reads those.
"""

from __future__ import annotations

import math
from functools import lru_cache

from ..catalog.device import Device
from ..catalog.efficiency import Efficiency
from ..catalog.engine import ServingSpeed
from ..findings import cached_across_batches
from ..model.sums import Sums, architecture_sums
from ..record import dataclass, replace
from ..scenario import Scenario
from ..units import GB
from ..workload.kernels import loops_over_experts
from ..workload.serving import answer_tokens, cached_value_bytes, peers, writers
from .host import (
    experts_share,
    host_experts_bytes,
    host_experts_seconds,
    host_layer_seconds,
    host_share,
    layers_cross,
    parts_with_shares,
    streamed_seconds,
)
from .links import device_links
from .paths import Path, inference_path
from .rates import dot_products_per_s, product_flop_per_s, served_flop_per_s
from .spread import exchanged_seconds, exchanges, rank_weights_bytes, summed_over_copy

SHARP = 3
SLOW_LINK_BYTES_PER_S = 64e9
JOINED_PASSES = 3
"""Eager code reads and writes a cache to join it with what is new, and reads it again."""
PACKED = ("awq", "gptq")
"""Formats that kernels of servers unpack."""
EXPANDED_BYTES = 4.0
"""Bytes of a 4-bit weight that is written out in 16 bits and read again."""


@dataclass(frozen=True, slots=True)
class DecodeRates:
    """Effective rates of one device under one engine (bytes/s, FLOP/s, seconds), and how many rest on judgement."""

    read: float
    cache: float
    unpack: float
    """Operations a second that turn stored bits into numbers; 0: the engine's kernels hide it."""
    expand: float
    """Weights a second that are written out before products of several tokens; 0: kernels read them as they are."""
    attention: float
    """FLOP a second of decoding tokens' attention to what is cached."""
    ahead: bool
    """Whether the host launches kernels while the device works on those before."""
    work: float
    layer_seconds: float
    moe_factor: float
    latent_factor: float
    """On the fixed cost of a layer with latent attention."""
    recurrent_factor: float
    """On that of a layer with a recurrent state."""
    sparse_factor: float
    """On that of a layer whose attention reads what an indexer picks."""
    reduce_seconds: float
    """An all-reduce of one token between two devices."""
    reduce_more: float
    """Share of it that each device beyond two adds: a ring passes once more through each."""
    sequence_seconds: float
    """What the host does for each sequence of a step: its place, its sampled token, its answer."""
    rows: float
    """Rows that a product is filled up to, however few tokens there are."""
    priors: int


def _fixed_name(efficiency: Efficiency, device: Device, path: Path) -> str:
    of_build, of_family = f"decode.fixed.{path.fixed}", f"decode.fixed.{path.family}"
    drivers = f"{path.backend}-{device.backend}"
    named = f"{of_build}.{path.backend}.{device.kind}", f"{of_build}.{path.backend}", of_build
    return efficiency.first(
        *(f"{of_family}.{drivers}", *named, f"{of_family}.{path.backend}", of_family),
        *(f"{of_family}.cuda", "decode.fixed.eager"),
    )


def _layer_factor(efficiency: Efficiency, device: Device, path: Path, quant: str) -> float:
    if path.family == "eager":
        return eager_factor(efficiency, device, quant)
    cuda = efficiency.value("decode.hbm") if path.backend == "cuda" and device.has_hbm else 1.0
    return float(device.cores or 1) if path.backend == "cpu" else cuda  # cores all meet after each operator


def _cache_name(path: Path, *, fused: bool) -> str:
    if path.family != "llama.cpp":
        return "decode.cache.eager" if path.family == "eager" else "decode.cache.fused"
    if path.backend == "metal":
        return "decode.cache.metal"
    return "decode.cache.fused" if fused else "decode.cache.plain"


def eager_factor(efficiency: Efficiency, device: Device, quant: str) -> float:
    """How much longer the host of public code takes on this kind of machine, and for weights in few bits."""
    host = efficiency.factor(f"decode.eager_host.{device.kind}")
    if quant.startswith("nf4"):
        twice = 1.0 if quant == "nf4-single" else efficiency.value("decode.eager_double")
        return host * efficiency.value("decode.eager_4bit") * twice
    return host * (
        efficiency.value("decode.eager_8bit") if quant == "int8" else efficiency.factor(f"decode.eager.{quant}")
    )


def _expand_rate(efficiency: Efficiency, device: Device, quant: str, read: float) -> float:
    if not quant.startswith("nf4"):
        return 0.0
    return 1 / (EXPANDED_BYTES / read + efficiency.value("decode.expand") / device.fp32_flop_per_s)


def _unpack_rate(efficiency: Efficiency, device: Device, path: Path) -> float:
    if not path.unpacks:
        return 0.0
    if path.backend == "cpu":
        return dot_products_per_s(device) * efficiency.value("decode.unpack_cpu")
    return device.integer_op_per_s * efficiency.value("decode.unpack")


@lru_cache(maxsize=4096)
def decode_rates(
    efficiency: Efficiency, device: Device, speed: ServingSpeed, precision: str, quant: str, fused: bool
) -> DecodeRates:
    """The effective rates of a device in decoding under an engine, for weights of a format and products in another."""
    value, path = efficiency.value, inference_path(device, speed)
    bandwidth = f"decode.bandwidth.{path.bandwidth}"
    bandwidth = efficiency.first(f"{bandwidth}.{device.generation}", bandwidth)
    fixed = _fixed_name(efficiency, device, path)
    read = device.bandwidth_bytes_per_s * value("decode.read") * value(bandwidth)
    read *= value("decode.server_packed") if path.family == "server" and quant.startswith(PACKED) else 1.0
    attention = efficiency.first(f"decode.attention.{path.family}", "decode.attention")
    layer = value(fixed) * _layer_factor(efficiency, device, path, quant)
    layer *= efficiency.factor(f"{fixed}.{device.generation}")
    experts = f"decode.fixed_moe.{path.family}.{path.backend}"
    links = device_links(efficiency, device, device.devices_per_node, None)
    fast = links.fast and max((link.gb_per_s or 0.0) * GB for link in device.links) > SLOW_LINK_BYTES_PER_S
    link = "decode.link.nvlink" if fast else "decode.link.pcie"
    narrow = served_flop_per_s(device, quant)
    peak = narrow or product_flop_per_s(device, precision)
    tuned = (f"{experts}.{device.generation}",) if narrow or quant == "none" else ()
    parameters = efficiency.parameters
    return DecodeRates(
        read=read,
        cache=read * value(_cache_name(path, fused=fused)),
        attention=product_flop_per_s(device, precision) * value(attention),
        unpack=_unpack_rate(efficiency, device, path),
        expand=_expand_rate(efficiency, device, quant, read) if path.family == "eager" else 0.0,
        ahead=path.family == "eager",
        work=peak * value(efficiency.first(f"decode.compute.{path.backend}", "decode.compute")),
        layer_seconds=layer,
        moe_factor=value(efficiency.first(*tuned, f"{experts}.{quant}", experts, "decode.fixed_moe")),
        latent_factor=value(efficiency.first(f"decode.fixed_latent.{path.family}", "decode.fixed_latent")),
        recurrent_factor=value(efficiency.first(f"decode.fixed_recurrent.{path.family}", "decode.fixed_recurrent")),
        sparse_factor=efficiency.factor(f"decode.fixed_sparse.{path.family}"),
        reduce_seconds=value(efficiency.first(f"{link}.{path.fixed}", link)),
        reduce_more=value(efficiency.first(f"{link}_more.{path.fixed}", f"{link}_more.{path.family}", f"{link}_more")),
        sequence_seconds=value(sequence) if (sequence := f"decode.sequence.{path.family}") in parameters else 0.0,
        rows=efficiency.factor(f"decode.rows.{path.family}.{'packed' if is_packed(quant) else device.generation}"),
        priors=int(parameters[bandwidth].prior) + int(parameters[fixed].prior),
    )


def cached_tokens(scenario: Scenario) -> float:
    """Mean cached tokens while decoding: prompt and half the answer."""
    read = 0 if scenario.model.architecture.source is not None else scenario.prompt
    return read + answer_tokens(scenario) / 2


def sequences_per_replica(scenario: Scenario) -> float:
    """Sequences that one copy of the model decodes together."""
    return scenario.concurrency / writers(scenario)


def passes_at_once(scenario: Scenario) -> int:
    """Passes that stages of one copy work on at once: a server keeps one under way for each, others wait for one."""
    path = inference_path(scenario.device, scenario.engine_record.serving.speed)
    return scenario.pp if path.family == "server" else 1


def sequences_in_pass(scenario: Scenario) -> float:
    """Sequences that pass the layers together."""
    return max(1.0, sequences_per_replica(scenario) / passes_at_once(scenario))


def is_packed(quant: str) -> bool:
    """Whether weights must be unpacked before they are multiplied (fp8 and nvfp4 are multiplied as they are)."""
    return quant not in ("none", "fp8", "nvfp4")


def is_low(quant: str) -> bool:
    """Whether a format has 2 or 3 bits, whose decoding takes more steps."""
    return quant.removeprefix("ud-").startswith(("q2", "q3", "iq1", "iq2", "iq3", "exl2-2", "exl2-3"))


def cache_bytes(scenario: Scenario, sums: Sums, tokens: float, ranks: int = 1) -> float:
    """Cache bytes that one of `ranks` reads for one token of a sequence after `tokens` tokens, and its recurrent state,
    both ways.
    """
    return sums.cached_values(tokens, ranks) * cached_value_bytes(scenario) + 2 * sums.state_bytes / ranks


def cache_passes(scenario: Scenario, rates: DecodeRates) -> float:
    """How often cached values pass through memory, relative to code that reads the heads of a group together.

    transformers 4 repeats keys and values for each head of a group, and reads those; its cache was joined before.
    """
    a = scenario.model.architecture
    if not rates.ahead or scenario.transformers != "4" or a.mla is not None or a.heads == a.kv_heads:
        return 1.0
    return 1 + 2 * a.heads / a.kv_heads / JOINED_PASSES


def device_weights(scenario: Scenario, sums: Sums) -> float:
    """Matrix weights that one token meets, without those of experts that the host computes."""
    return sums.active + sums.head_weights - sums.routed_active * experts_share(scenario)


def reduce_seconds(scenario: Scenario, sums: Sums, rates: DecodeRates) -> float:
    """Two all-reduces a block, or ways to shared experts and back: what each takes however few tokens there are."""
    copy = summed_over_copy(scenario, sums) * _latency_seconds(scenario, rates, scenario.tp, tree=True)
    spread = _latency_seconds(scenario, rates, scenario.tp * peers(scenario), tree=False)
    return copy + exchanges(scenario, sums) * spread


def _latency_seconds(scenario: Scenario, rates: DecodeRates, ranks: int, *, tree: bool) -> float:
    """Of one all-reduce: it grows with each card of a machine, and each doubling of machines (`tree`) or once."""
    inside = min(ranks, scenario.devices_per_node)
    alone = rates.reduce_seconds * (1 + rates.reduce_more * (inside - 2)) if inside > 1 else 0.0
    doublings = math.log2(math.ceil(ranks / inside))
    return alone + min(doublings, math.inf if tree else 1.0) * scenario.tables.efficiency.value("decode.link.network")


def sum_seconds(scenario: Scenario, sums: Sums, *, reads: bool = False) -> float:
    """Two all-reduces a block: what the 16-bit activations of one token take in a ring of tensor-parallel ranks, and on
    the way to shared experts and back. `reads`: tokens of prompts, not those that are decoded.
    """
    tp, device, sent = scenario.tp, scenario.device, exchanged_seconds(scenario, sums, forwarded=reads)
    if tp == 1:
        return sent
    links = device_links(scenario.tables.efficiency, device, scenario.devices_per_node, scenario.network_bytes_per_s)
    moved = 2 * (tp - 1) / tp * 2 * scenario.model.architecture.hidden
    return summed_over_copy(scenario, sums) * moved / links.ring(tp) + sent


def filled_rows(rates: DecodeRates, positions: float) -> float:
    """Rows that the matrix units work on; 0 where reading the weights hides the work of one token."""
    filled = max(positions, rates.rows)
    return filled if filled > 1 else 0.0


def latent_layers(scenario: Scenario, sums: Sums) -> int:
    """Layers with latent attention."""
    return 0 if scenario.model.architecture.mla is None else sums.layers


def looped_experts(scenario: Scenario, sums: Sums) -> tuple[int, float]:
    """Experts that code visits one after the other in a step, reached or not, and the seconds of each."""
    value, speed = scenario.tables.efficiency.value, scenario.engine_record.serving.speed
    if sums.experts and loops_over_experts(scenario):
        return sums.moe_layers * sums.experts, value("decode.eager_expert")
    if sums.experts and speed.launches_experts and scenario.quant.startswith(PACKED):
        return sums.moe_layers * sums.experts, value("decode.expert_launch")
    return 0, 0.0


def layers_seconds(scenario: Scenario, sums: Sums, rates: DecodeRates) -> float:
    """What no byte explains: launches of each layer, of its experts, and of a loop over all of them."""
    experts = (rates.moe_factor - 1) * sums.moe_layers
    latent = (rates.latent_factor - 1) * latent_layers(scenario, sums)
    looped, each = looped_experts(scenario, sums)
    recurrent = (rates.recurrent_factor - 1) * sums.recurrent_layers
    sparse = (rates.sparse_factor - 1) * sums.picking_blocks
    return rates.layer_seconds * (sums.layers + experts + latent + recurrent + sparse) + looped * each


def decode_parts(scenario: Scenario, tokens: float, sequences: float, busy: float | None = None) -> dict[str, float]:
    """Seconds of one decoding step of `sequences` on one replica, after `tokens` tokens each, by part; they add up.

    `busy`: copies that share its experts and have as many; all where nobody says.
    """
    unequal = [(decode_parts(part, tokens, sequences), share) for part, share in parts_with_shares(scenario)]
    if unequal:
        return summed(unequal)
    step = _steady(scenario)
    sums, rates, on_host = step.sums, step.rates, step.on_host
    tp, positions = scenario.tp, sequences * (1 + scenario.drafted)
    apart = host_experts_bytes(scenario, positions)
    weights = tp * rank_weights_bytes(scenario, positions, positions * (busy or peers(scenario))) - apart
    read = weights * (1 - on_host) / rates.read / tp
    cache = cache_bytes(scenario, sums, tokens, tp) * sequences * (1 - on_host) / rates.cache
    cache *= cache_passes(scenario, rates)
    # all heads on one latent: more products than its bytes take to read
    cache = max(cache, sums.decode_flop(tokens) * sequences * (1 - on_host) / rates.attention / tp)
    sent = layers_cross(scenario, positions)
    row = 2 * step.matrices * (1.0 if sent else 1 - on_host) / rates.work / tp
    work, alone = (row * filled_rows(rates, rows) for rows in (positions, 1.0))
    if not sent:  # no later than one after the other
        work = min(work, positions * max(read, alone))
    moved = read + cache
    unpack = step.unpack if positions <= 1 or not rates.expand else step.matrices * (1 - on_host) / rates.expand / tp
    device = (max(moved, work) ** SHARP + unpack**SHARP) ** (1 / SHARP)
    experts = {"host_experts": host_experts_seconds(scenario, positions)} if apart else {}
    drafts = {"draft": scenario.drafted * draft_seconds(scenario, tokens, sequences)} if scenario.drafted else {}
    return {
        **drafts,
        "weights": read,
        "cache": cache,
        "compute": device - moved,
        **experts,
        "host_layers": host_layer_seconds(scenario, weights, positions),
        "offload": streamed_seconds(scenario, sequences),
        "fixed": fixed_seconds(rates, step.fixed, sequences, device),
        "link": step.link + positions * step.summed,
    }


def fixed_seconds(rates: DecodeRates, launches: float, sequences: float, device: float) -> float:
    """What launches and the host's work on sequences add to a step in which the device is busy so long."""
    if rates.ahead:
        return math.hypot(device, launches) - device
    return launches + sequences * rates.sequence_seconds


@dataclass(frozen=True, slots=True)
class _Steady:
    """What of a decoding step depends neither on its sequences nor on what they have cached; seconds."""

    sums: Sums
    rates: DecodeRates
    on_host: float
    """Share of the layers."""
    matrices: float
    """Weights that one token meets on the device."""
    unpack: float
    fixed: float
    link: float
    summed: float
    """Of the sums over ranks, what each token adds."""


@cached_across_batches
def _steady(scenario: Scenario) -> _Steady:
    efficiency, on_host = scenario.tables.efficiency, host_share(scenario)
    sums = architecture_sums(scenario.model.architecture)
    fused = scenario.attention == "flash"
    speed = scenario.engine_record.serving.speed
    rates = decode_rates(efficiency, scenario.device, speed, scenario.precision, scenario.quant, fused)
    matrices, unpack = device_weights(scenario, sums), 0.0
    if rates.unpack and is_packed(scenario.quant):
        low = efficiency.value("decode.unpack_low") if is_low(scenario.quant) else 1.0
        unpack = 2 * matrices * (1 - on_host) * low / rates.unpack / scenario.tp
    return _Steady(
        sums=sums,
        rates=rates,
        on_host=on_host,
        matrices=matrices,
        unpack=unpack,
        fixed=layers_seconds(scenario, sums, rates),
        link=reduce_seconds(scenario, sums, rates),
        summed=sum_seconds(scenario, sums),
    )


def summed(shared: list[tuple[dict[str, float], float]]) -> dict[str, float]:
    """Seconds by part, of which each device contributes its share."""
    return {name: sum(share * parts[name] for parts, share in shared) for name in shared[0][0]}


@cached_across_batches
def drafting(scenario: Scenario) -> Scenario:
    """What drafts, as a question of its own: the drafting model, else the model itself."""
    alone = {"draft": None, "draft_model": None, "spec_tokens": None, "acceptance": None}
    if scenario.draft_model is None:
        return replace(scenario, **alone)  # type: ignore[arg-type]
    quant = scenario.draft_model.published_quant or "none"
    return replace(scenario, **alone, model=scenario.draft_model, stored=None, quant=quant, ep=1)  # type: ignore[arg-type]


def draft_seconds(scenario: Scenario, tokens: float, sequences: float) -> float:
    """Seconds to draft one token of some sequences: a step of the drafting model, or of one layer and the head."""
    alone = drafting(scenario)
    parts = sum(decode_parts(alone, tokens, sequences).values())
    if scenario.draft_model is not None:
        return parts
    head = 2 * scenario.model.architecture.vocab * scenario.model.architecture.hidden
    return parts / scenario.model.architecture.layers + head / (scenario.device.bandwidth_bytes_per_s * scenario.tp)

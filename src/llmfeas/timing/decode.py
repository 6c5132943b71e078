"""Seconds of one decoding step of all sequences: read weights and cache, unpack, multiply, launch, synchronise.

    step = (max(read + cache, work)^3 + unpack^3)^(1/3) + fixed + link + host        (physics of decoding)

Reading and unpacking overlap as a soft maximum; work counts with several sequences only. What waits for the host: host.
Eager code launches ahead of the device: there `fixed` is what the root of the sum of both squares adds. bitsandbytes
writes 4-bit weights out in 16 bits where several tokens pass, and reads those.
"""

from __future__ import annotations

import math

from ..derivation import (
    BANDWIDTH,
    EFFICIENCY,
    MODEL,
    SETTING,
    Note,
    Say,
    largest,
    plain,
    smallest,
    soft_maximum,
    unnoted,
)
from ..findings import cached_across_batches
from ..model.sums import Sums, architecture_sums
from ..record import dataclass, replace
from ..scenario import Scenario
from ..workload.kernels import loops_over_experts
from ..workload.serving import answer_tokens, cached_value_bytes, peers, writers
from .decode_rates import PACKED, DecodeRates, decode_rates, is_low, is_packed
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
from .paths import inference_path
from .spread import exchanged_seconds, exchanges, rank_weights_bytes, summed_over_copy

SHARP = 3
JOINED_PASSES = 3
"""Eager code reads and writes a cache to join it with what is new, and reads it again."""


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


def layers_seconds(scenario: Scenario, sums: Sums, rates: DecodeRates, say: Say = plain) -> float:
    """What no byte explains: launches of each layer, of its experts, and of a loop over all of them."""
    layers = say("layers", sums.layers, "", MODEL)
    for name, factor, count in (
        ("expert", rates.moe_factor, sums.moe_layers),
        ("latent", rates.latent_factor, latent_layers(scenario, sums)),
        ("recurrent", rates.recurrent_factor, sums.recurrent_layers),
        ("sparse", rates.sparse_factor, sums.picking_blocks),
    ):
        if count and factor != 1:
            more = say(f"{name}_factor", factor, "", EFFICIENCY) - 1
            layers += more * say(f"{name}_layers", count, "", MODEL)
    seconds = say("seconds_a_layer", rates.layer_seconds, "s", EFFICIENCY) * layers
    looped, each = looped_experts(scenario, sums)
    if looped:
        seconds += say("experts", looped, "", MODEL) * say("expert_seconds", each, "s", EFFICIENCY)
    return seconds


def decode_parts(
    scenario: Scenario, tokens: float, sequences: float, busy: float | None = None, note: Note = unnoted
) -> dict[str, float]:
    """Seconds of one decoding step of `sequences` on one replica, after `tokens` tokens each, by part; they add up.

    `busy`: copies that share its experts and have as many; all where nobody says. `note` names the numbers.
    """
    unequal = [(decode_parts(part, tokens, sequences), share) for part, share in parts_with_shares(scenario)]
    if unequal:
        return summed(unequal, note)
    step, positions, parts = _steady(scenario), sequences * (1 + scenario.drafted), dict[str, float]()
    apart = host_experts_bytes(scenario, positions)
    weights = scenario.tp * rank_weights_bytes(scenario, positions, positions * (busy or peers(scenario))) - apart
    if scenario.drafted:
        drafting = note("draft")("draft_seconds", draft_seconds(scenario, tokens, sequences), "s")
        parts["draft"] = note("draft")("drafted", scenario.drafted, "tokens") * drafting
    say = note("weights")
    read = step.of_rank(
        say("weights", weights, "bytes", MODEL) / say("efficiency", step.rates.read, "", BANDWIDTH), say
    )
    parts |= {"weights": read, "cache": _cache_seconds(scenario, step, tokens, sequences, note("cache"))}
    parts["compute"] = _compute_seconds(scenario, step, positions, read, parts["cache"], note("compute"))
    device = read + parts["cache"] + parts["compute"]
    if apart:
        parts["host_experts"] = host_experts_seconds(scenario, positions, note("host_experts"))
    parts["host_layers"] = host_layer_seconds(scenario, weights, positions, note("host_layers"))
    parts["offload"] = streamed_seconds(scenario, sequences, note("offload"))
    say, launches = note("fixed"), step.fixed
    if note is not unnoted:
        launches = layers_seconds(scenario, step.sums, step.rates, say)
    parts["fixed"] = fixed_seconds(step.rates, launches, sequences, device, say)
    say = note("link")
    added = say("positions", positions) * say("sum_seconds", step.summed, "s a token", EFFICIENCY)
    parts["link"] = say("latency", step.link, "s", EFFICIENCY) + added
    return parts


def _cache_seconds(scenario: Scenario, step: _Steady, tokens: float, sequences: float, say: Say) -> float:
    """Read the cache of all sequences, or where all heads work on one latent the products, where those take longer."""
    rates, tp = step.rates, scenario.tp
    read, rate = cache_bytes(scenario, step.sums, tokens, tp), rates.cache / cache_passes(scenario, rates)
    flop = step.sums.decode_flop(tokens) / tp
    if flop / rates.attention > read / rate:
        each = say("attention_flop", flop, "FLOP a sequence", MODEL) / say(
            "rate", rates.attention, "FLOP/s", EFFICIENCY
        )
    else:
        each = say("cached", read, "bytes a sequence", MODEL) / say("efficiency", rate, "bytes/s", BANDWIDTH)
    return step.on_device(say("sequences", sequences) * each, say)


def _compute_seconds(scenario: Scenario, step: _Steady, positions: float, read: float, cache: float, say: Say) -> float:
    """What work and unpacking add to reading; all rows at once are no later than one after the other."""
    rates, moved = step.rates, say("read_seconds", read + cache, "s")
    weights, tp = say("weights", step.matrices, "", MODEL), say("tp", scenario.tp, "devices", SETTING)
    row = 2 * weights / say("rate", rates.work, "FLOP/s", EFFICIENCY) / tp
    if layers_cross(scenario, positions):
        work = row * say("rows", filled_rows(rates, positions))
    else:
        row = step.on_device(row, say)
        alone = row * say("rows_alone", filled_rows(rates, 1.0))
        work = row * say("rows", filled_rows(rates, positions))
        work = smallest(work, say("positions", positions) * largest(say("weights_seconds", read, "s"), alone))
    work = largest(moved, work)
    if rates.expand and positions > 1:
        written = weights / say("written_out", rates.expand, "weights/s", EFFICIENCY)
        return soft_maximum(work, step.of_rank(written, say), SHARP) - moved
    if step.unpacking:
        unpacking = say("unpacking", step.unpacking, "operations a weight", EFFICIENCY) * weights
        unpacked = unpacking / say("integer_rate", rates.unpack, "operations/s", EFFICIENCY)
        return soft_maximum(work, step.of_rank(unpacked, say), SHARP) - moved
    return work - moved


def fixed_seconds(rates: DecodeRates, launches: float, sequences: float, device: float, say: Say = plain) -> float:
    """What launches and the host's work on sequences add to a step in which the device is busy so long."""
    if rates.ahead:
        busy = say("busy_seconds", device, "s")
        return soft_maximum(busy, launches, 2) - busy
    if rates.sequence_seconds:
        launches += say("sequences", sequences) * say("seconds_a_sequence", rates.sequence_seconds, "s", EFFICIENCY)
    return launches


@dataclass(frozen=True, slots=True)
class _Steady:
    """What of a decoding step depends neither on its sequences nor on what they have cached; seconds."""

    sums: Sums
    rates: DecodeRates
    on_host: float
    """Share of the layers."""
    matrices: float
    """Weights that one token meets on the device."""
    unpacking: float
    """Operations that turn a stored weight into a number where the engine's kernels do not hide them."""
    fixed: float
    link: float
    summed: float
    """Of the sums over ranks, what each token adds."""
    tp: int

    def on_device(self, seconds: float, say: Say) -> float:
        """Of the seconds of all layers those of the layers on the device."""
        return seconds * say("on_device", 1 - self.on_host, "of the layers") if self.on_host else seconds

    def of_rank(self, seconds: float, say: Say) -> float:
        """The same of one of the tensor-parallel ranks."""
        return self.on_device(seconds, say) / say("tp", self.tp, "devices", SETTING)


@cached_across_batches
def _steady(scenario: Scenario) -> _Steady:
    efficiency, on_host = scenario.tables.efficiency, host_share(scenario)
    sums = architecture_sums(scenario.model.architecture)
    fused = scenario.attention == "flash"
    speed = scenario.engine_record.serving.speed
    rates = decode_rates(efficiency, scenario.device, speed, scenario.precision, scenario.quant, fused)
    low = efficiency.value("decode.unpack_low") if is_low(scenario.quant) else 1.0
    return _Steady(
        sums=sums,
        rates=rates,
        on_host=on_host,
        matrices=device_weights(scenario, sums),
        unpacking=2 * low if rates.unpack and is_packed(scenario.quant) else 0.0,
        fixed=layers_seconds(scenario, sums, rates),
        link=reduce_seconds(scenario, sums, rates),
        summed=sum_seconds(scenario, sums),
        tp=scenario.tp,
    )


def summed(shared: list[tuple[dict[str, float], float]], note: Note = unnoted) -> dict[str, float]:
    """Seconds by part, of which each device contributes its share."""
    return {
        name: sum(
            note(name)(f"share_{index}", share, "of the weights") * note(name)(f"seconds_{index}", parts[name], "s")
            for index, (parts, share) in enumerate(shared, start=1)
        )
        for name in shared[0][0]
    }


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

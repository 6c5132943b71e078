"""What mixtures of experts cost beside their products: tokens sorted, copied and sent to where their experts are."""

from __future__ import annotations

from ..derivation import BANDWIDTH, EFFICIENCY, MODEL, SETTING, Say, largest, plain
from ..scenario import Scenario
from .links import Links
from .rates import TrainingRates
from .work import Work, on_slowest_stage, passed


def fullest(work: Work, rates: TrainingRates) -> float:
    """Routed work of the rank that the others wait for, relative to the mean."""
    return rates.experts.imbalance if work.uneven else 1.0


def routing_widths(work: Work, rates: TrainingRates) -> float:
    """Elements that are moved for one copy in a pass: what an expert reads, many times, and what lies between its
    products, twice or more often.
    """
    sums = work.sums
    inside = sums.routed_weights / (sums.experts * sums.moe_layers * sums.expert_reads)
    moves = rates.experts.moves_plain if work.plain_routing else rates.experts.moves
    return moves * sums.expert_reads + work.inside_moves * inside


def copy_bytes(work: Work) -> float:
    """Bytes of an element of a token's copy for an expert."""
    return 4.0 if work.wide_experts else 2.0


def product_rate(work: Work, rates: TrainingRates) -> float:
    """FLOP/s in products of routed experts."""
    if work.wide_experts:
        return rates.experts.wide
    return rates.experts.spread if work.spread else rates.experts.local


def fill_tokens(work: Work, rates: TrainingRates) -> float:
    """Tokens of an expert at which its products run at half of that rate: fewer where the rate is lower."""
    return rates.experts.fill_tokens * min(1.0, product_rate(work, rates) / rates.experts.local)


PICKING_FLOP = 443.0
"""Work of vector units for an element of a copy and pass where PyTorch picks rows by their numbers (index, and its way
back): nine kernels in four passes, each of which picks 1.3 elements a clock on a multiprocessor of 256 FLOP a clock,
whatever the bandwidth: 394 us of OLMoE with 8 x 1024 tokens on an H100, 187 us of gpt-oss 20B with 4 x 1024, 56 us of
Qwen1.5-MoE with 2 x 1024 (data/measurements/own_h100.yaml)."""


def picking_flop(work: Work) -> float:
    """What picking the rows of one copy is worth in a pass, in FLOPs of vector units."""
    return PICKING_FLOP * work.sums.expert_reads if work.plain_routing else 0.0


def routing_seconds(work: Work, rates: TrainingRates, say: Say = plain) -> float:
    """Sort the tokens by their experts and back, a copy for each: moved, and picked row by row by PyTorch.

    The gradients of experts' biases, which rows had picked, are added up many rows to one, one after the other.
    """
    sums = work.sums
    if not sums.experts or not sums.expert_reads:
        return 0.0
    copies = say("copies", work.met * sums.experts_per_token * sums.moe_layers, "a token", MODEL)
    moved = copy_bytes(work) * say("width", routing_widths(work, rates), "elements", EFFICIENCY)
    seconds = moved / say("efficiency", rates.memory, "bytes/s", BANDWIDTH)
    if work.plain_routing:
        seconds += say("picking_flop", picking_flop(work), "FLOP a copy") / say("vector_peak", rates.vector, "FLOP/s")
    passes = passed(work, 2, say) + say("replayed", work.replayed)
    seconds = say("unevenness", fullest(work, rates), "", EFFICIENCY) * copies * passes * seconds
    if work.added_biases:
        added = say("added", work.added_biases, "elements a token", MODEL)
        seconds += added * say("adding", rates.experts.added_seconds, "s", EFFICIENCY)
    return on_slowest_stage(say("tokens", work.tokens, "tokens") * seconds, work, say)


def expert_parallel_seconds(scenario: Scenario, work: Work, links: Links, say: Say = plain) -> float:
    """Two all-to-alls a layer of experts and pass: every token to the devices of its experts and back.

    Forward, backward, and once more where layers are run again. Tensor-parallel ranks send a part of the sequence each.
    Inside a node a token travels once for each of its experts; so it does between nodes, but where it is sent once to
    each other node that holds one of them (`(n - 1)(1 - (1 - 1/n)^k)` under even routing), and is handed on over the
    fast link (DeepEP).
    """
    if scenario.ep == 1:
        return 0.0
    sums, nodes, ep = work.sums, expert_nodes(scenario, links), say("ep", scenario.ep, "devices", SETTING)
    layers = say("layers", sums.moe_layers, "", MODEL) * say("exchanges", exchanges(work), "a layer")
    sent = layers * say("tokens", work.tokens, "tokens") * say("width", sums.expert_reads, "", MODEL) * 2
    inside = say("experts_a_token", sums.experts_per_token, "", MODEL) * (ep - 1) / ep
    inside /= say("link", links.node_bytes_per_s, "bytes/s", EFFICIENCY)
    across = say("copies_across", copies_across(scenario, nodes, sums.experts_per_token), "a token")
    across /= say("network", links.network_bytes_per_s, "bytes/s", EFFICIENCY)
    calls = layers * work.stage / scenario.pp
    calls *= say("call_seconds", links.call(scenario.ep * scenario.expert_tp), "s", EFFICIENCY)
    return on_slowest_stage(sent * largest(inside, across), work, say) + calls


def exchanges(work: Work) -> float:
    """All-to-alls of a layer of experts in a micro-step."""
    return 2 * (1 + work.graded + work.replayed)


def copies_across(scenario: Scenario, nodes: float, experts: float) -> float:
    """Times that a token leaves its node on its way to `experts` of them."""
    if scenario.engine_record.training.sends_once:
        return float((nodes - 1) * (1 - (1 - 1 / nodes) ** experts))
    return experts * (nodes - 1) / nodes


def expert_nodes(scenario: Scenario, links: Links) -> float:
    """Nodes over which the ranks that share all experts of a layer lie, side by side."""
    return max(1.0, scenario.ep * scenario.expert_tp / links.devices_per_node)

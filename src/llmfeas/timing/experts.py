"""What mixtures of experts cost beside their products: tokens sorted, copied and sent to where their experts are."""

from __future__ import annotations

from ..scenario import Scenario
from .links import Links
from .rates import TrainingRates
from .work import Work


def fullest(work: Work, rates: TrainingRates) -> float:
    """Routed work of the rank that the others wait for, relative to the mean."""
    return rates.experts.imbalance if work.uneven else 1.0


def routing_widths(work: Work, rates: TrainingRates) -> float:
    """Elements that are moved for one copy in a pass: what an expert reads, many times, and what lies between its
    products, twice.
    """
    sums = work.sums
    inside = sums.routed_weights / (sums.experts * sums.moe_layers * sums.expert_reads)
    moves = rates.experts.moves_plain if work.plain_routing else rates.experts.moves
    return moves * sums.expert_reads + 2 * inside


def routing_seconds(work: Work, rates: TrainingRates) -> float:
    """Sort the tokens by their experts and back: `2 bytes x copies x widths x passes / bandwidth`, a copy for each."""
    sums = work.sums
    if not sums.experts or not sums.expert_reads:
        return 0.0
    copies = work.met * work.tokens * sums.experts_per_token * sums.moe_layers * work.stage / work.divisor
    passes = 1 + 2 * work.graded + work.replayed
    return fullest(work, rates) * 2 * copies * routing_widths(work, rates) * passes / rates.memory


def expert_parallel_seconds(scenario: Scenario, work: Work, links: Links) -> float:
    """Four all-to-alls a layer of experts: every token to the devices of its experts and back, both directions.

    Tensor-parallel ranks send a part of the sequence each. Inside a node a token travels once for each of its experts;
    between nodes once for each other node that holds one of them (`(n - 1)(1 - (1 - 1/n)^k)` under even routing), and
    is handed on over the fast link (DeepEP).
    """
    ep = scenario.ep
    if ep == 1:
        return 0.0
    sums, nodes = work.sums, expert_nodes(scenario, links)
    token_bytes = 4 * sums.moe_layers * work.stage / work.divisor * work.tokens * sums.expert_reads * 2
    inside = sums.experts_per_token * (ep - 1) / ep / links.node_bytes_per_s
    across: float = (nodes - 1) * (1 - (1 - 1 / nodes) ** sums.experts_per_token) / links.network_bytes_per_s
    return token_bytes * max(inside, across)


def expert_nodes(scenario: Scenario, links: Links) -> float:
    """Nodes over which the ranks that share all experts of a layer lie, side by side."""
    return max(1.0, scenario.ep * scenario.expert_tp / links.devices_per_node)

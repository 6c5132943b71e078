"""Data-parallel attention: copies of a model that share one set of routed experts and step together.

Each copy (`tp` ranks) has requests and a cache of its own; of the experts every rank holds a part, to which the tokens
of all copies go and from which they come back, twice in each layer with experts. All take a step when the fullest has
done it. Sources: vLLM's docs/serving/expert_parallel_deployment.md and data_parallel_deployment.md, SGLang's
--enable-dp-attention, TensorRT-LLM's enable_attention_dp, read 2026-11.
"""

from __future__ import annotations

from ..model.sums import Sums
from ..scenario import Scenario
from ..workload.serving import peers
from .host import weights_read_bytes
from .links import device_links

SENT_BYTES, BACK_BYTES = 2, 2
"""Of an activation on its way to experts and back, 16 bits."""
EIGHT_BIT_BYTES = 1
"""The same on its way to experts in fp8 on another machine."""


def rank_weights_bytes(scenario: Scenario, positions: float, together: float) -> float:
    """Bytes of weights that one rank reads in a pass of `positions` tokens of its copy, of `together` of all copies
    that share the experts.
    """
    if peers(scenario) == 1:
        return weights_read_bytes(scenario, positions) / scenario.tp
    dense = weights_read_bytes(scenario, 0.0)
    routed = weights_read_bytes(scenario, together) - dense
    return dense / scenario.tp + routed / (scenario.ep * scenario.expert_tp)


def summed_over_copy(scenario: Scenario, sums: Sums) -> int:
    """Sums over the ranks of a copy in a pass: two a block, but one where experts are shared with others."""
    return 2 * sums.blocks - (sums.moe_layers if peers(scenario) > 1 else 0)


def exchanges(scenario: Scenario, sums: Sums) -> int:
    """Times that tokens go to shared experts or come back in a pass."""
    return 2 * sums.moe_layers if peers(scenario) > 1 else 0


def copies_reached(others: float, experts_per_token: float) -> float:
    """How many of `others` copies (or machines) hold an expert of a token, if routing is even over them and its own."""
    return float(others * (1 - (others / (others + 1)) ** experts_per_token))


def exchanged_seconds(scenario: Scenario, sums: Sums, *, forwarded: bool) -> float:
    """Seconds in which a rank sends one token of its copy to all ranks with its experts and gets the results, a pass.

    Between machines each device has a network card of its own, and experts in fp8 are sent their inputs so. Prompts
    pass the network once for each machine, which forwards them inside (`forwarded`); tokens that are decoded go to each
    rank by themselves. Source: DeepEP's normal and low-latency kernels (README@main, read 2026-11).
    """
    count = peers(scenario)
    if count == 1:
        return 0.0
    numbers, device = scenario.tables.efficiency, scenario.device
    links = device_links(numbers, device, scenario.devices_per_node, scenario.network_bytes_per_s)
    each = max(1, min(count, scenario.devices_per_node // scenario.tp))
    machines, experts = count / each, sums.experts_per_token
    near = copies_reached(count - 1, experts) * (each - 1) / (count - 1)
    far = copies_reached(machines - 1, experts) if forwarded else copies_reached(count - 1, experts) - near
    sent = EIGHT_BIT_BYTES if scenario.quant.startswith("fp8") else SENT_BYTES
    inside = near * (SENT_BYTES + BACK_BYTES) / links.node_bytes_per_s
    outside = far * (sent + BACK_BYTES) / links.network_bytes_per_s
    return sums.moe_layers * scenario.model.architecture.hidden / scenario.tp * (inside + outside)

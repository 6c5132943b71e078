"""The seconds of one optimizer step, part by part, on the slowest device (physics of training time).

Everything a device does divides by `tp * pp`. Parts are pure functions of sums (weights, widths), tokens and rates;
`step_parts` puts them together: device work and host work overlap as a soft maximum, gathers hide behind work except a
share, pipelines add a bubble. The parts that it returns add up to the step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

from ..catalog.efficiency import Efficiency
from ..findings import cached_across_batches, cached_across_devices
from ..model.sums import Sums, trained_sums
from ..optimizers import OPTIMIZERS
from ..record import dataclass, replace
from ..scenario import Scenario
from ..workload.kernels import launched_singly, multiplies_integers
from ..workload.parameters import decodes_base
from .adapters import adapter_seconds, merging_seconds
from .attention import attention_seconds, recurrence_seconds
from .experts import expert_parallel_seconds, routing_seconds
from .host import memory_bytes_per_s, products_flop_per_s
from .launches import launches_of
from .links import Links, device_links
from .offload import (
    activation_seconds,
    drive_seconds_per_byte,
    offload_seconds,
    swapped_bytes,
    weight_bytes_gathered,
)
from .products import matrix_seconds, streaming_seconds, unpacking_seconds
from .rates import TrainingRates, host_rates, rates_of
from .rollouts import rollout_seconds
from .work import Work, forwards_beside, slowest_stage, work_of


def host_seconds(scenario: Scenario, work: Work) -> float:
    """Launches and bookkeeping of a micro-step on the host: of public code by kernel, of other code by layer; plain
    engines do more where weights are sharded, and where each weight's gradient is collected in a bucket by Python
    (DeepSpeed).

    Experts that run one after the other each cost some more, whatever they compute.
    """
    value, host = scenario.tables.efficiency.value, host_rates(scenario)
    factor = value("training.host.sharded") if scenario.zero >= 3 and scenario.shards > 1 and host.eager else 1.0
    if scenario.engine_record.training.scheme.bucket and not scenario.trains_adapters:
        factor *= value("training.host.hooks")
    # A step is a forward pass and a backward one of twice the work; forward passes come on top that are run again.
    passes = (1 + 2 * work.graded + work.replayed) / 3
    singly = host.eager and launched_singly(scenario)
    calls = host.seconds_each * work.expert_calls
    each = host.seconds_waited if singly else host.seconds_with_experts
    inside = passes * (calls + each * work.sums.moe_layers)
    inside += value("training.host.launch") * work.turns * work.sums.loop_launches * 3 * passes
    inside += 0.0 if singly else passes * host.seconds_per_layer * work.sums.blocks
    launches = value("training.host.launch") * launches_of(scenario) if singly else 0.0
    unpacking = unpacking_launch_seconds(scenario, work) * work.sums.blocks
    return factor * launches + (factor * inside + unpacking) * work.stage / scenario.pp


def sharpness(scenario: Scenario, work: Work) -> float:
    """Exponent of the soft maximum of device and host time: experts are waited for where a host reads how many tokens
    each gets. Public code that groups their products does not, where no token travels (transformers 5,
    integrations/moe.py: offsets stay on the device).
    """
    host = host_rates(scenario)
    grouped = host.eager and launched_singly(scenario) and not (work.spread or work.expert_calls)
    return host.sharpness_of_mixtures if work.sums.experts and not grouped else host.sharpness


def together(device: float, host: float, sharp: float) -> float:
    """Seconds of two that work side by side, as a soft maximum."""
    seconds: float = (device**sharp + host**sharp) ** (1 / sharp)
    return seconds


def unpacking_launch_seconds(scenario: Scenario, work: Work) -> float:
    """What the host does more for a layer in a micro-step where the base is in few bits."""
    if multiplies_integers(scenario):
        return (1 + work.replayed) * integer_launch_seconds(scenario.tables.efficiency)
    if decodes_base(scenario) and host_rates(scenario).eager:
        return (1 + work.graded + work.replayed) * decoding_launch_seconds(scenario, work)
    return 0.0


def decoding_launch_seconds(scenario: Scenario, work: Work) -> float:
    """What the host does more for a layer in each pass that reads a base in NF4: scales decoded, weights written out.

    bitsandbytes does so from Python, matrix by matrix; kernels of others as was measured where tokens are decoded.
    """
    value = scenario.tables.efficiency.value
    if work.adapters.matrices:
        return value("training.host.decoding") * work.sums.matrices / work.sums.blocks
    return value("decode.fixed.eager") * (value("decode.eager_4bit") - 1)


def integer_launch_seconds(efficiency: Efficiency) -> float:
    """What the host does more in a forward pass of a layer whose base is in 8 bits, as measured where tokens are
    decoded: inputs quantized, outliers searched for and multiplied by themselves.
    """
    return efficiency.value("decode.fixed.eager") * (efficiency.value("decode.eager_8bit") - 1)


def tensor_parallel_seconds(work: Work, links: Links, tp: int, pp: int) -> float:
    """Four all-reduces a layer of the residual stream in 16 bits: `2 (tp-1)/tp` of its bytes each (Narayanan 2021)."""
    if tp == 1:
        return 0.0
    bytes_moved = 4 * work.sums.blocks * work.stage / pp * work.tokens * work.sums.hidden * 2 * 2 * (tp - 1) / tp
    return bytes_moved / links.ring(tp)


def shard_weights(scenario: Scenario, sums: Sums) -> float:
    """Weights on one rank before ZeRO: experts divide over ep, and over the ranks that share one."""
    dense = (sums.parameters - sums.routed_weights) / scenario.tp
    return (dense + sums.routed_weights / (scenario.ep * scenario.expert_tp)) / scenario.pp


def shared_weights(scenario: Scenario, sums: Sums) -> float:
    """Of these what all data-parallel ranks have alike, and of experts, of which fewer ranks have the same, the part
    that their smaller rings come to.
    """
    ranks = scenario.shards
    alike = max(1.0, ranks * scenario.tp / (scenario.ep * scenario.expert_tp))
    if scenario.ep == 1 or ranks == 1:
        return shard_weights(scenario, sums)
    part = (1 - 1 / alike) / (1 - 1 / ranks)
    experts = sums.routed_weights / (scenario.ep * scenario.expert_tp)
    return ((sums.parameters - sums.routed_weights) / scenario.tp + part * experts) / scenario.pp


def gathered_weights(scenario: Scenario, sums: Sums) -> float:
    """Weights of one rank that a pass gathers under ZeRO-3: what layers share for each of them."""
    return shared_weights(scenario, sums) + sums.again / (scenario.tp * scenario.pp)


def zero_seconds(scenario: Scenario, shard: float, links: Links, ranks: int) -> float:
    """ZeRO-3: two gathers of the weights and one reduction of 16-bit gradients a micro-step (none for adapters)."""
    if scenario.zero < 3 or ranks == 1:
        return 0.0
    wire = weight_bytes_gathered(scenario)
    moved = (2 + forwards_beside(scenario)) * wire + (0.0 if scenario.trains_adapters else wire)
    return shard * (ranks - 1) / ranks * moved / links.ring(ranks, scenario.tp)


def gradient_sync_seconds(scenario: Scenario, sums: Sums, links: Links, ranks: int) -> float:
    """Reduce fp32 gradients once a step where ZeRO-3 does not do it on the way; adapters have next to none.

    Those of experts pass between the ranks that have the same ones, which lie as far apart as all experts of a layer.
    """
    if scenario.zero >= 3 or ranks == 1 or scenario.trains_adapters:
        return 0.0
    rings = gradient_rings(scenario, sums, ranks)
    return (
        links.exposed
        * 4
        * sum(weights * (members - 1) / members / links.ring(members, stride) for weights, members, stride in rings)
    )


def gradient_rings(scenario: Scenario, sums: Sums, ranks: int) -> tuple[tuple[float, int, int], ...]:
    """Weights of one rank, the ranks that have them alike, and how far apart these lie: of experts and of the rest."""
    apart = scenario.ep * scenario.expert_tp
    experts = sums.routed_weights / apart / scenario.pp
    rest = (sums.parameters - sums.routed_weights) / scenario.tp / scenario.pp
    alike = max(1, ranks * scenario.tp // apart)
    return (rest, ranks, scenario.tp), (experts, alike, apart)


def optimizer_seconds(scenario: Scenario, shard: float, rates: TrainingRates, links: Links, ranks: int) -> float:
    """Stream weights, gradients and states once a step, and what an optimizer computes: on vector units (codes of 8-bit
    states), in products (Muon's orthogonalising), on the host (a call for each tensor).

    Where states lie on the host, its processor streams and multiplies, and gradients and weights travel.
    """
    if scenario.trains_adapters:
        return 0.0
    owned = shard / (ranks if scenario.zero >= 1 else 1)
    optimizer = OPTIMIZERS[scenario.optimizer]
    moved = optimizer.step_bytes * owned
    if scenario.precision in ("bf16", "fp16") and not optimizer.wide:
        moved /= 2
    flop = optimizer.flop_per_width * scenario.model.architecture.hidden * owned
    if scenario.states_on_host:
        travel = 4 * owned / links.host_bytes_per_s
        travel += swapped_bytes(scenario) * owned * drive_seconds_per_byte(scenario)
        return moved / memory_bytes_per_s(scenario) + flop / products_flop_per_s(scenario) + travel
    vectors = optimizer.vector_flop * owned / rates.vector
    calls = optimizer.tensor_seconds * trained_sums(scenario.model.architecture, scenario.seq_len).tensors / scenario.pp
    return moved / rates.memory + vectors + flop / rates.matrix + calls


def bubble_share(scenario: Scenario) -> float:
    """Idle share of a pipeline, `(pp - 1) / (micro-batches x chunks)` of the work (Narayanan 2021).

    A local batch of fewer than two sequences a stage is one that the pipeline itself splits into sequences.
    """
    if scenario.pp == 1:
        return 0.0
    steps = scenario.micro_steps
    if steps < 2 * scenario.pp:
        steps *= scenario.micro_batch
    return (scenario.pp - 1) / (steps * scenario.interleave)


PLENTY_TOKENS = 1e18
"""So many in a micro-step that what does not grow with them is next to nothing."""


@lru_cache(maxsize=4096)
def least_token_seconds(work: Work, rates: TrainingRates, fused: bool, stages: range) -> float:
    """The seconds of devices that a token takes at least, in pipelines of these numbers of stages, however laid out.

    Products, attention, pointwise work and routing in micro-steps without end, experts where they are faster; nothing
    waits. A token meets its own experts alone, in 16 bits, as it may in some layout, where a framework's code runs in
    place of public code and weights are gathered.
    """
    least = math.inf
    work = replace(work, tokens=PLENTY_TOKENS, divisor=1.0, crowding=0.0, met=1.0, merged=0.0)
    work = replace(work, wide_experts=False, inside_moves=min(2.0, work.inside_moves))
    for stage, head in _least_shares(work.sums, stages):
        staged = replace(work, stage=stage, head=head)
        products = min(matrix_seconds(replace(staged, spread=spread), rates) for spread in (False, True))
        beside = streaming_seconds(staged, rates) + routing_seconds(staged, rates) + recurrence_seconds(staged, rates)
        seconds = products + attention_seconds(staged, rates, fused=fused) + beside
        least = min(least, seconds / PLENTY_TOKENS)
    return least


@lru_cache(maxsize=1024)
def _least_shares(sums: Sums, stages: range) -> list[tuple[float, float]]:
    """The shares of layers and head that the slowest stage has, times the stages, in pipelines of so many: those that
    no other number beats in both, since work grows with either.
    """
    slowest = ((count, slowest_stage(sums, count)) for count in stages)
    shares = {(stage.layers * count / sums.layers, float(stage.heads * count)) for count, stage in slowest}
    return [one for one in shares if not any(a <= one[0] and b <= one[1] for a, b in shares - {one})]


@cached_across_batches
def device_links_of(scenario: Scenario) -> Links:
    """The links of a scenario's devices."""
    efficiency = scenario.tables.efficiency
    return device_links(efficiency, scenario.device, scenario.devices_per_node, scenario.network_bytes_per_s)


@dataclass(frozen=True, slots=True)
class AskedOfDevices:
    """What a micro-step asks of any device, and of its host."""

    work: Work
    host_seconds: float
    sharpness: float
    overlap: float
    """Share of what tensor- and expert-parallel ranks exchange that nothing hides."""
    shard: float
    """Weights of one rank before ZeRO divides them."""
    gathered: float
    """Of them those that a pass gathers under ZeRO-3."""


def asked_of(scenario: Scenario) -> AskedOfDevices:
    """What a scenario asks of its devices in a micro-step, found once for all of a kind."""
    return _asked(scenario, scenario.micro_batch, scenario.global_batch)


@cached_across_devices
def _asked(scenario: Scenario, _micro_batch: int, _global_batch: int) -> AskedOfDevices:
    work, tuned = work_of(scenario), host_rates(scenario).tuned
    return AskedOfDevices(
        work=work,
        host_seconds=host_seconds(scenario, work),
        sharpness=sharpness(scenario, work),
        overlap=scenario.tables.efficiency.value("link.overlap_tuned") if tuned else 1.0,
        shard=shard_weights(scenario, work.sums),
        gathered=gathered_weights(scenario, work.sums),
    )


def step_parts(scenario: Scenario) -> Mapping[str, float]:
    """The seconds of one optimizer step by part; they add up to the step."""
    return _step_parts(scenario, scenario.micro_batch, scenario.global_batch)


@cached_across_batches
def _step_parts(scenario: Scenario, _micro_batch: int, _global_batch: int) -> Mapping[str, float]:
    rates, links, asked = rates_of(scenario), device_links_of(scenario), asked_of(scenario)
    work, shard, ranks = asked.work, asked.shard, scenario.shards
    parts = {
        "matrix": matrix_seconds(work, rates),
        "attention": attention_seconds(work, rates, fused=scenario.attention == "flash"),
        "recurrence": recurrence_seconds(work, rates),
        "streaming": streaming_seconds(work, rates),
        "routing": routing_seconds(work, rates),
        "decoding": unpacking_seconds(scenario, work, rates),
        "adapters": adapter_seconds(work, rates),
        "merging": merging_seconds(work, rates) if work.merged or work.normed else 0.0,
    }
    device = sum(parts.values())
    busy = together(device, asked.host_seconds, asked.sharpness)
    parts["host"] = busy - device
    parts["tensor_parallel"] = asked.overlap * tensor_parallel_seconds(work, links, scenario.tp, scenario.pp)
    parts["expert_parallel"] = asked.overlap * expert_parallel_seconds(scenario, work, links)
    busy += parts["tensor_parallel"] + parts["expert_parallel"]
    gathers = zero_seconds(scenario, asked.gathered, links, ranks)
    copies = activation_seconds(scenario, links)
    parts["zero"] = max(links.exposed * gathers, gathers - busy)
    parts["offload"] = offload_seconds(scenario, shard, links) + max(links.exposed * copies, copies - busy)
    busy += parts["zero"] + parts["offload"]
    steps = scenario.micro_steps
    parts = {name: seconds * steps for name, seconds in parts.items()}
    parts["bubble"] = busy * steps * bubble_share(scenario)
    parts["gradient_sync"] = gradient_sync_seconds(scenario, work.sums, links, ranks)
    parts["optimizer"] = optimizer_seconds(scenario, shard, rates, links, ranks)
    parts["rollout"] = rollout_seconds(scenario)
    return parts

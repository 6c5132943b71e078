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
from ..derivation import (
    BANDWIDTH,
    DEVICE,
    EFFICIENCY,
    MODEL,
    PEAK,
    SETTING,
    Note,
    Say,
    largest,
    plain,
    soft_maximum,
    unnoted,
)
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
from .parallel import context_parallel_seconds, tensor_parallel_seconds
from .products import matrix_seconds, streaming_seconds, unpacking_seconds
from .rates import TrainingRates, host_rates, rates_of
from .rollouts import rollout_seconds
from .work import Work, forwards_beside, slowest_stage, work_of


def host_seconds(scenario: Scenario, work: Work) -> float:
    """Launches and bookkeeping of a micro-step on the host: of public code by kernel, of other code by layer; plain
    engines do more where weights are sharded, and where each weight's gradient is collected in a bucket by Python
    (DeepSpeed).

    Experts that run one after the other each cost some more, whatever they compute; of FSDP they are no units. Where a
    graph records a whole step, kernels wait for each other alone.
    """
    value, host = scenario.tables.efficiency.value, host_rates(scenario)
    # A step is a forward pass and a backward one of twice the work; forward passes come on top that are run again.
    passes = (1 + 2 * work.graded + work.replayed) / 3
    if scenario.engine_record.training.graphs:
        layers = (work.sums.blocks + work.sums.moe_layers) * work.stage / scenario.pp
        return passes * value("training.host.graph") * layers
    factor = value("training.host.sharded") if scenario.zero >= 3 and scenario.shards > 1 and host.eager else 1.0
    if scenario.engine_record.training.scheme.bucket and not scenario.trains_adapters:
        factor *= value("training.host.hooks")
    singly = host.eager and launched_singly(scenario)
    calls = passes * host.seconds_each * work.expert_calls
    each = host.seconds_waited if singly else host.seconds_with_experts
    inside = passes * each * work.sums.moe_layers
    inside += value("training.host.launch") * work.turns * work.sums.loop_launches * 3 * passes
    inside += 0.0 if singly else passes * host.seconds_per_layer * work.sums.blocks
    launches = value("training.host.launch") * launches_of(scenario) if singly else 0.0
    beside = unpacking_launch_seconds(scenario, work) * work.sums.blocks + unit_seconds(scenario, work)
    beside += calls * (factor if scenario.engine_record.training.scheme.bucket else 1.0)
    return factor * launches + (factor * inside + beside) * work.stage / scenario.pp


def unit_seconds(scenario: Scenario, work: Work) -> float:
    """What the host does more in a micro-step where FSDP makes a unit of each factor of an adapter, as transformers'
    Trainer asks of it (trainer.py of release 4, peft's fsdp_auto_wrap_policy).
    """
    engine = scenario.engine_record.training
    sharded = scenario.zero >= 3 and scenario.shards > 1 and engine.trainer and not engine.scheme.bucket
    if not sharded or scenario.transformers == "5":
        return 0.0
    each = scenario.tables.efficiency.value("training.host.unit")
    return 2 * work.adapters.matrices * each * (1 + work.graded + work.replayed)


def sharpness(scenario: Scenario, work: Work) -> float:
    """Exponent of the soft maximum of device and host time: experts are waited for where a host reads how many tokens
    each gets. Public code that groups their products does not, where no token travels (transformers 5,
    integrations/moe.py: offsets stay on the device).
    """
    host = host_rates(scenario)
    grouped = host.eager and launched_singly(scenario) and not (work.spread or work.expert_calls)
    return host.sharpness_of_mixtures if work.sums.experts and not grouped else host.sharpness


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


def zero_seconds(scenario: Scenario, asked: AskedOfDevices, links: Links, say: Say = plain) -> float:
    """ZeRO-3: two gathers of the weights and one reduction of 16-bit gradients a micro-step (none for adapters), each
    layer by layer round the ring.
    """
    if scenario.zero < 3 or scenario.shards == 1:
        return 0.0
    wire, ranks = weight_bytes_gathered(scenario), say("ranks", scenario.shards, "devices")
    turns = 2 + forwards_beside(scenario) + (0 if scenario.trains_adapters else 1)
    sent = say("weights", asked.gathered, "", MODEL) * (ranks - 1) / ranks
    sent *= turns * say("wire", wire, "bytes a weight")
    layers = say("layers", asked.work.sums.blocks / scenario.pp, "", MODEL)
    passed = turns * layers * say("ring_seconds", links.hops(scenario.shards, scenario.tp), "s", EFFICIENCY)
    return sent / say("link", links.ring(scenario.shards, scenario.tp), "bytes/s", EFFICIENCY) + passed


def gradient_sync_seconds(scenario: Scenario, sums: Sums, links: Links, say: Say) -> float:
    """Reduce fp32 gradients once a step where ZeRO-3 does not do it on the way, bucket by bucket; adapters have next to
    none.

    Those of experts pass between the ranks that have the same ones, which lie as far apart as all experts of a layer.
    """
    if scenario.zero >= 3 or scenario.shards == 1 or scenario.trains_adapters:
        return 0.0
    seconds = 0.0
    for kind, (held, count, stride) in zip(
        ("", "expert_"), gradient_rings(scenario, sums, scenario.shards), strict=True
    ):
        if held and count > 1:
            members = say(f"{kind}ranks", count, "devices")
            sent = say(f"{kind}weights", held, "", MODEL) * (members - 1) / members
            seconds += 4 * sent / say(f"{kind}link", links.ring(count, stride), "bytes/s", EFFICIENCY)
            turns = 2 * say(f"{kind}buckets", held / bucket_weights(scenario, count))
            seconds += turns * say(f"{kind}ring_seconds", links.hops(count, stride), "s", EFFICIENCY)
    return say("exposed", links.exposed, "", EFFICIENCY) * seconds


def bucket_weights(scenario: Scenario, ranks: int) -> float:
    """Weights whose gradients travel together: DeepSpeed's buckets, else Megatron's, which grow with the ring so that
    no collective is all latency (DistributedDataParallelConfig.bucket_size, Megatron core 0.7).
    """
    return scenario.engine_record.training.scheme.bucket or max(40e6, 1e6 * ranks)


def gradient_rings(scenario: Scenario, sums: Sums, ranks: int) -> tuple[tuple[float, int, int], ...]:
    """Weights of one rank, the ranks that have them alike, and how far apart these lie: of experts and of the rest."""
    apart = scenario.ep * scenario.expert_tp
    experts = sums.routed_weights / apart / scenario.pp
    rest = (sums.parameters - sums.routed_weights) / scenario.tp / scenario.pp
    alike = max(1, ranks * scenario.tp // apart)
    return (rest, ranks, scenario.tp), (experts, alike, apart)


def optimizer_seconds(scenario: Scenario, shard: float, rates: TrainingRates, links: Links, say: Say) -> float:
    """Stream weights, gradients and states once a step, and what an optimizer computes: on vector units (codes of 8-bit
    states), in products (Muon's orthogonalising), on the host (a call for each tensor).

    Where states lie on the host, its processor streams and multiplies, and gradients and weights travel.
    """
    if scenario.trains_adapters:
        return 0.0
    weights = say("weights", shard / (scenario.shards if scenario.zero >= 1 else 1), "", MODEL)
    optimizer = OPTIMIZERS[scenario.optimizer]
    halved = scenario.precision in ("bf16", "fp16") and not optimizer.wide
    moved = weights * say("moved", optimizer.step_bytes / (2 if halved else 1), "bytes a weight")
    rounds = optimizer.flop_per_width * scenario.model.architecture.hidden
    flop = weights * say("rounds", rounds, "FLOP a weight") if rounds else 0.0
    if scenario.states_on_host:
        seconds = moved / say("host_bandwidth", memory_bytes_per_s(scenario), "bytes/s", EFFICIENCY)
        seconds += 4 * weights / say("link", links.host_bytes_per_s, "bytes/s", EFFICIENCY)
        if scenario.drive_gb_per_s is not None:
            swapped = weights * say("swapped", swapped_bytes(scenario), "bytes a weight")
            seconds += swapped * say("drive", drive_seconds_per_byte(scenario), "s a byte", SETTING)
        return seconds + (flop / say("host_rate", products_flop_per_s(scenario), "FLOP/s", EFFICIENCY) if rounds else 0)
    seconds = moved / say("efficiency", rates.memory, "bytes/s", BANDWIDTH)
    if optimizer.vector_flop:
        vectors = weights * say("vector_flop", optimizer.vector_flop, "FLOP a weight")
        seconds += vectors / say("vector_peak", rates.vector, "FLOP/s", DEVICE)
    if optimizer.tensor_seconds:
        tensors = trained_sums(scenario.model.architecture, scenario.seq_len).tensors / scenario.pp
        seconds += say("tensor_seconds", optimizer.tensor_seconds, "s") * say("tensors", tensors, "", MODEL)
    return seconds + (flop / say("matrix_efficiency", rates.matrix, "FLOP/s", PEAK) if rounds else 0.0)


def bubble_share(scenario: Scenario, say: Say) -> float:
    """Idle share of a pipeline, `(pp - 1) / (micro-batches x chunks)` of the work (Narayanan 2021).

    A local batch of fewer than two sequences a stage is one that the pipeline itself splits into sequences.
    """
    if scenario.pp == 1:
        return 0.0
    steps = scenario.micro_steps
    if steps < 2 * scenario.pp:
        steps *= scenario.micro_batch
    return (say("stages", scenario.pp) - 1) / say("slots", steps * scenario.interleave)


def unhidden(seconds: float, links: Links, busy: float, say: Say) -> float:
    """What of a transfer no work hides: a share of it at least, and what is longer than the work."""
    if not seconds:
        return 0.0
    return largest(say("exposed", links.exposed, "", EFFICIENCY) * seconds, seconds - say("busy_seconds", busy, "s"))


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
    work = replace(work, tokens=PLENTY_TOKENS, divisor=1.0, tp=1, crowding=0.0, met=1.0, merged=0.0)
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
    return noted_parts(scenario, unnoted)


def noted_parts(scenario: Scenario, note: Note) -> dict[str, float]:
    """The seconds of one optimizer step by part, of numbers that `note` names."""
    rates, links, asked = rates_of(scenario), device_links_of(scenario), asked_of(scenario)
    work, shard, fused = asked.work, asked.shard, scenario.attention == "flash"
    parts = {
        "matrix": matrix_seconds(work, rates, note("matrix")),
        "attention": attention_seconds(work, rates, fused=fused, say=note("attention")),
        "recurrence": recurrence_seconds(work, rates, note("recurrence")),
        "streaming": streaming_seconds(work, rates, note("streaming")),
        "routing": routing_seconds(work, rates, note("routing")),
        "decoding": unpacking_seconds(scenario, work, rates, note("decoding")),
        "adapters": adapter_seconds(work, rates, note("adapters")),
        "merging": merging_seconds(work, rates, note("merging")),
    }
    parts["host"] = waited_seconds(asked, sum(parts.values()), note("host"))
    context = context_parallel_seconds(scenario, work, links, note("context_parallel"))
    parts["context_parallel"] = unhidden(context, links, parts["attention"], note("context_parallel"))
    for name, found in (
        ("tensor_parallel", tensor_parallel_seconds(scenario, work, links, note("tensor_parallel"))),
        ("expert_parallel", expert_parallel_seconds(scenario, work, links, note("expert_parallel"))),
    ):
        parts[name] = note(name)("exposed", asked.overlap, "", EFFICIENCY) * found if found else 0.0
    busy = sum(parts.values())
    gathers = zero_seconds(scenario, asked, links, note("zero"))
    parts["zero"] = unhidden(gathers, links, busy, note("zero"))
    parts["offload"] = copied_seconds(scenario, shard, links, busy, note("offload"))
    busy = sum(parts.values())
    if scenario.pp > 1:
        parts["bubble"] = note("bubble")("busy_seconds", busy, "s") * bubble_share(scenario, note("bubble"))
    steps = scenario.micro_steps
    parts = {name: note(name)("micro_steps", steps) * seconds for name, seconds in parts.items()}
    parts.setdefault("bubble", 0.0)
    parts["gradient_sync"] = gradient_sync_seconds(scenario, work.sums, links, note("gradient_sync"))
    parts["optimizer"] = optimizer_seconds(scenario, shard, rates, links, note("optimizer"))
    parts["rollout"] = rollout_seconds(scenario, note("rollout"))
    return parts


def waited_seconds(asked: AskedOfDevices, device: float, say: Say) -> float:
    """What the host's launches add to a micro-step in which the device works so long."""
    device = say("device_seconds", device, "s")
    host = say("host_seconds", asked.host_seconds, "s", EFFICIENCY)
    return soft_maximum(device, host, say("sharpness", asked.sharpness, "", EFFICIENCY)) - device


def copied_seconds(scenario: Scenario, shard: float, links: Links, busy: float, say: Say) -> float:
    """Weights and activations that travel between device and main memory in a micro-step."""
    if scenario.offload not in ("all", "activations"):
        return 0.0
    weights, copies = offload_seconds(scenario, shard, links), activation_seconds(scenario, links)
    seconds = unhidden(say("copy_seconds", copies, "s") if copies else 0.0, links, busy, say)
    return seconds + (say("weight_seconds", weights, "s") if weights else 0.0)

"""What serving waits for at the host: layers that run there, and weights that cross PCIe for each pass.

A share of the layers may stay on the host (`--gpu-layers`): decoding computes them there, a prompt sends them to the
device. With `--offload all` the layers' weights lie in host memory and cross once a pass: a decoding step, or a pass
over the prompt. Nothing is taken to be hidden: the crossing is many times longer than the work.
"""

from __future__ import annotations

from ..catalog.joined import Joined
from ..derivation import EFFICIENCY, MODEL, SETTING, Say, plain
from ..findings import cached_across_batches
from ..model.sums import architecture_sums
from ..scenario import Scenario
from ..units import GB, GIB
from ..workload.kernels import dialect_of
from ..workload.serving import streams_weights
from ..workload.stages import stages_by_memory
from ..workload.weights import WeightBytes, decode_read_bytes, distinct_experts, native_bytes, weight_bytes
from .links import pcie_bytes_per_s

TWO_CHANNELS_BYTES = 256 * GIB
"""The largest main memory of a board with two channels: four slots of 64 GiB."""
DESK_EXPERTS_BYTES = 192 * GIB
"""Experts that people keep beside two channels at most: published runs with more of them have eight and twelve."""


def host_share(scenario: Scenario) -> float:
    """Share of the layers that llama.cpp leaves on the host."""
    if scenario.gpu_layers is None:
        return 0.0
    return max(0.0, 1 - scenario.gpu_layers / scenario.model.architecture.layers)


def held_experts_bytes(scenario: Scenario) -> float:
    """Bytes of the experts that lie on the host."""
    if not scenario.n_cpu_moe:
        return 0.0
    return sum(layer.routed for layer in held_weights(scenario).layers[: scenario.n_cpu_moe])


def experts_share(scenario: Scenario) -> float:
    """Share of the routed experts' bytes that llama.cpp leaves on the host (`--n-cpu-moe`)."""
    held = held_experts_bytes(scenario)
    if not held:
        return 0.0
    return held / held_weights(scenario).routed


def host_expert_layers(scenario: Scenario) -> float:
    """Layers whose experts lie on the host, by their bytes."""
    return experts_share(scenario) * architecture_sums(scenario.model.architecture).moe_layers


def host_experts_bytes(scenario: Scenario, tokens: float) -> float:
    """Bytes of the experts on the host that a pass of `tokens` tokens reaches, if routing is even."""
    held, experts = held_experts_bytes(scenario), scenario.model.architecture.experts
    return held * distinct_experts(scenario.model.architecture, tokens) / experts.count if held and experts else 0.0


def host_experts_seconds(scenario: Scenario, tokens: float, say: Say = plain) -> float:
    """What a decoding step waits for the experts on the host: read, unpacked by its cores, handed over layer by layer.

    Nobody states the cores, so that what they unpack a second is that of all hosts.
    """
    read, value = host_experts_bytes(scenario, tokens), scenario.tables.efficiency.value
    if not read:
        return 0.0
    read = say("experts", read, "bytes", MODEL)
    reached = host_bandwidth(scenario, say) * say("efficiency", value("host.experts"), "", EFFICIENCY)
    reading = read / reached + read / say("unpacked", value("host.unpack"), "bytes/s", EFFICIENCY)
    layers = say("layers", host_expert_layers(scenario), "", MODEL)
    return reading + layers * say("handover", value("host.handover"), "s", EFFICIENCY)


def host_bandwidth(scenario: Scenario, say: Say) -> float:
    """The bandwidth of the host's memory, with where it comes from."""
    origin = SETTING if scenario.host_gb_per_s is not None else EFFICIENCY
    return say("host_bandwidth", memory_bytes_per_s(scenario), "bytes/s", origin)


def weights_read_bytes(scenario: Scenario, tokens: float) -> float:
    """Bytes of weights that a pass of `tokens` tokens reads, in the stored format: the experts they reach, the head."""
    return decode_read_bytes(held_weights(scenario), scenario.model.architecture, tokens)


def head_bytes(scenario: Scenario) -> float:
    """Bytes of the output head in the stored format."""
    return held_weights(scenario).head


def parts_with_shares(scenario: Scenario) -> list[tuple[Scenario, float]]:
    """The question on each of unequal devices, and the share of the device's weights that lies there.

    Nothing where devices are equal. One works after the other, so that the time of a pass is the sum over them of this
    share of what the whole pass would take there.
    """
    if not isinstance(scenario.device, Joined):
        return []
    return [
        (scenario.on(part), share)
        for part, share in zip(scenario.device.parts, _shares(scenario), strict=True)
        if share
    ]


@cached_across_batches
def _shares(scenario: Scenario) -> tuple[float, ...]:
    assert isinstance(scenario.device, Joined)
    held = held_weights(scenario)
    layers, kept = held.layers, scenario.model.architecture.layers
    if scenario.gpu_layers is not None:
        kept = min(kept, scenario.gpu_layers)
    head = int(kept == len(layers) and held.head > 0)
    own = [layer.on_rank(1, 1) for layer in layers[len(layers) - kept :]]
    dealt = stages_by_memory(kept, scenario.device.split, head)
    sizes = [sum(own[stage.first : stage.end]) + head * stage.heads * held.head for stage in dealt]
    whole = sum(sizes)
    return tuple(size / whole for size in sizes) if whole else (1.0, *(0.0 for _ in sizes[1:]))


@cached_across_batches
def held_weights(scenario: Scenario) -> WeightBytes:
    """The bytes of the model's weights as the engine holds them."""
    formats, architecture = scenario.tables.quantization, scenario.model.architecture
    native = native_bytes(scenario.precision)
    return weight_bytes(formats, architecture, scenario.quant, dialect_of(scenario), native, scenario.stored)


def memory_bytes_per_s(scenario: Scenario) -> float:
    """Bandwidth of the host's memory: as given, else a default of the data for two channels or for a server."""
    given = scenario.host_gb_per_s
    return _of_host(scenario, "bandwidth") if given is None else given * GB


def products_flop_per_s(scenario: Scenario) -> float:
    """What the host's processor reaches in matrix products, FLOP/s; nobody states the processor either."""
    return _of_host(scenario, "products")


def _of_host(scenario: Scenario, name: str) -> float:
    """A default of the data for a board with two channels of memory, or for a server.

    A server's is the memory that no board with two channels holds, that of an engine which is made for servers, and
    what keeps more experts than people keep on a desk.
    """
    made_for = scenario.device.kind == "datacenter" or scenario.engine_record.serving.server_host
    large = scenario.host_memory_bytes > TWO_CHANNELS_BYTES or held_experts_bytes(scenario) > DESK_EXPERTS_BYTES
    server = "_server" if made_for or large else ""
    return scenario.tables.efficiency.value(f"host.{name}{server}")


def crossing_bytes_per_s(scenario: Scenario) -> float:
    """Bandwidth of copies from the host to one device: PCIe, or its part of the host's memory where that is less."""
    busy = min(scenario.devices_per_node, max(1, scenario.num_devices // scenario.pp))
    pcie = pcie_bytes_per_s(scenario.device) * scenario.tables.efficiency.value("link.offload")
    return min(pcie, memory_bytes_per_s(scenario) / max(1, busy))


def streamed_seconds(scenario: Scenario, tokens: float, say: Say = plain) -> float:
    """Seconds to bring the layers' weights that a pass of `tokens` tokens reaches to the device; 0 if they are there.

    Pipeline stages take turns.
    """
    if not streams_weights(scenario):
        return 0.0
    layers = say("crossing_layers", weights_read_bytes(scenario, tokens) - head_bytes(scenario), "bytes", MODEL)
    moved = layers * say("on_device", 1 - host_share(scenario), "of the layers") / say("tp", scenario.tp, "", SETTING)
    return moved / say("crossing", crossing_bytes_per_s(scenario), "bytes/s", EFFICIENCY)


def sent_seconds(scenario: Scenario, weights: float, tokens: float) -> float:
    """Seconds of one batch to send the host's layers and experts to the devices, which multiply them too.

    Tensor-parallel ranks fetch their parts at once, no faster than the host fills the buffers that devices copy. It
    computes the experts of a batch that is too small to be worth their way.
    """
    experts = host_experts_bytes(scenario, tokens)
    layers, computed = (weights - experts) * host_share(scenario), 0.0
    if experts and not experts_cross(scenario, tokens):
        computed, experts = host_experts_seconds(scenario, tokens) + host_products_seconds(scenario, tokens), 0.0
    if not layers + experts:
        return computed
    return (layers + experts) / sending_bytes_per_s(scenario) + computed


def sending_bytes_per_s(scenario: Scenario) -> float:
    """Bytes of weights a second that all devices together fetch from the host."""
    value = scenario.tables.efficiency.value
    return min(pcie_bytes_per_s(scenario.device) * value("link.offload") * scenario.tp, value("host.staging"))


def experts_cross(scenario: Scenario, tokens: float) -> bool:
    """Whether a batch of so many tokens brings the experts of the host to the device."""
    serving, experts = scenario.engine_record.serving, scenario.model.architecture.experts
    if experts is None or not serving.crossing_by_expert:
        return bool(tokens >= serving.crossing_tokens)
    return bool(tokens * experts.top_k >= experts.count * serving.crossing_tokens)


def host_products_seconds(scenario: Scenario, tokens: float) -> float:
    """What the host's products of a batch with its experts take beyond those of one token, which reading hides."""
    routed = architecture_sums(scenario.model.architecture).routed_active * experts_share(scenario)
    rate = products_flop_per_s(scenario) * scenario.tables.efficiency.value("host.prompts")
    return 2 * routed * (tokens - 1) / rate


def layers_cross(scenario: Scenario, tokens: float) -> bool:
    """Whether a decoding step of so many tokens brings the host's layers to the device, which then multiplies them."""
    return bool(1 < scenario.engine_record.serving.crossing_tokens <= tokens and host_share(scenario))


def host_layer_seconds(scenario: Scenario, weights: float, tokens: float, say: Say = plain) -> float:
    """The host's layers of a decoding step of so many tokens: read and computed there, from a number of tokens on sent
    to the device, as those of a prompt are.
    """
    if not host_share(scenario):
        return 0.0
    value, share = scenario.tables.efficiency.value, say("on_host", host_share(scenario), "of the layers")
    left = say("weights", weights, "bytes", MODEL) * share
    if layers_cross(scenario, tokens):
        return left / say("sending", sending_bytes_per_s(scenario), "bytes/s", EFFICIENCY)
    positions, rate = say("positions", tokens), products_flop_per_s(scenario) * value("host.prompts")
    products = 2 * say("active", architecture_sums(scenario.model.architecture).active, "", MODEL) * share
    crossing = 2 * say("hidden", scenario.model.architecture.hidden, "", MODEL) * 4 * positions
    reading = left / (host_bandwidth(scenario, say) * say("efficiency", value("host.layers"), "", EFFICIENCY))
    computed = products * (positions - 1) / say("host_rate", rate, "FLOP/s", EFFICIENCY)
    return reading + crossing / say("pcie", pcie_bytes_per_s(scenario.device), "bytes/s", "device") + computed

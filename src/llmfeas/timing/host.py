"""What serving waits for at the host: layers that run there, and weights that cross PCIe for each pass.

A share of the layers may stay on the host (`--gpu-layers`): decoding computes them there, a prompt sends them to the
device. With `--offload all` the layers' weights lie in host memory and cross once a pass: a decoding step, or a pass
over the prompt. Nothing is taken to be hidden: the crossing is many times longer than the work.
"""

from __future__ import annotations

from ..catalog.architecture import Architecture
from ..catalog.quantization import Quantization
from ..scenario import Scenario
from ..workload.kernels import dialect_of
from ..workload.serving import streams_weights
from ..workload.weights import decode_read_bytes, native_bytes, weight_bytes
from .links import pcie_bytes_per_s


def host_share(scenario: Scenario) -> float:
    """Share of the layers that llama.cpp leaves on the host."""
    if scenario.gpu_layers is None:
        return 0.0
    return max(0.0, 1 - scenario.gpu_layers / scenario.model.architecture.layers)


def weights_read_bytes(scenario: Scenario, tokens: float) -> float:
    """Bytes of weights that a pass of `tokens` tokens reads, in the stored format: the experts they reach, the head."""
    return decode_read_bytes(*_asked(scenario), tokens, scenario.stored)


def head_bytes(scenario: Scenario) -> float:
    """Bytes of the output head in the stored format."""
    return weight_bytes(*_asked(scenario), scenario.stored).head


def _asked(scenario: Scenario) -> tuple[Quantization, Architecture, str, str, float]:
    """What the bytes of weights depend on but for a file that holds them."""
    held = scenario.tables.quantization, scenario.model.architecture
    return *held, scenario.quant, dialect_of(scenario), native_bytes(scenario.precision)


def memory_bytes_per_s(scenario: Scenario) -> float:
    """Bandwidth of the host's memory; nobody states it: a default of the data."""
    server = "_server" if scenario.device.kind == "datacenter" else ""
    return scenario.tables.efficiency.value(f"host.bandwidth{server}")


def crossing_bytes_per_s(scenario: Scenario) -> float:
    """Bandwidth of copies from the host to one device: PCIe, or its part of the host's memory where that is less."""
    busy = min(scenario.devices_per_node, max(1, scenario.num_devices // scenario.pp))
    pcie = pcie_bytes_per_s(scenario.device) * scenario.tables.efficiency.value("link.offload")
    return min(pcie, memory_bytes_per_s(scenario) / max(1, busy))


def streamed_seconds(scenario: Scenario, tokens: float) -> float:
    """Seconds to bring the layers' weights that a pass of `tokens` tokens reaches to the device; 0 if they are there.

    Formula: (weights read - head) / tp / crossing; pipeline stages take turns.
    """
    if not streams_weights(scenario):
        return 0.0
    layers = weights_read_bytes(scenario, tokens) - head_bytes(scenario)
    return layers * (1 - host_share(scenario)) / scenario.tp / crossing_bytes_per_s(scenario)


def sent_seconds(scenario: Scenario, weights: float) -> float:
    """Seconds of one batch to send the host's layers to the device, which multiplies them too."""
    share = host_share(scenario)
    if not share:
        return 0.0
    return weights * share / (pcie_bytes_per_s(scenario.device) * scenario.tables.efficiency.value("link.offload"))


def host_layer_seconds(scenario: Scenario, weights: float) -> float:
    """Read the host's layers of a decoding step at the host's bandwidth, and cross PCIe."""
    read = weights * host_share(scenario)
    if not read:
        return 0.0
    bandwidth = memory_bytes_per_s(scenario) * scenario.tables.efficiency.value("decode.bandwidth.cpu")
    crossing = 2 * scenario.model.architecture.hidden * 4 / pcie_bytes_per_s(scenario.device)
    return read / bandwidth + crossing

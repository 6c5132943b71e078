"""Which calibrated path an inference engine takes on a device: its family, its backend, the class of its memory."""

from __future__ import annotations

from functools import lru_cache

from ...catalog.device import Device
from ...catalog.efficiency import Efficiency, InferenceEngine
from ...record import dataclass
from .rates import is_unified

EAGER = InferenceEngine()
ACCELERATORS = ("hpu", "tpu", "npu", "neuron")
"""Backends whose serving stacks are compiled graphs, whatever the engine is called."""


@dataclass(frozen=True, slots=True)
class Path:
    """How a model runs: engine family, software backend, class of memory bandwidth."""

    family: str
    backend: str
    bandwidth: str
    unpacks: bool
    fixed: str


@lru_cache(maxsize=4096)
def inference_path(efficiency: Efficiency, device: Device, engine: str) -> Path:
    """Give the path of an engine on a device; an engine without an entry runs like eager PyTorch."""
    entry = efficiency.inference_engines.get(engine, EAGER)
    family = "server" if device.backend in ACCELERATORS and entry.family == "eager" else entry.family
    backend = entry.backend or ("sycl" if device.backend == "xpu" else device.backend)
    return Path(family, backend, _bandwidth_class(device, family, backend), entry.unpacks, entry.fixed or family)


def _bandwidth_class(device: Device, family: str, backend: str) -> str:
    if family == "mlx":
        return "mlx"
    if backend in ("metal", "cpu", "hpu", "tpu", "vulkan", "sycl") and not (backend == "vulkan" and is_unified(device)):
        return backend
    if is_unified(device):
        return "unified"
    if backend == "cuda" and device.kind == "datacenter":
        return "cuda-datacenter"
    return backend if backend in ("cuda", "rocm") else "other"

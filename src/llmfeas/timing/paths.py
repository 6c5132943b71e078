"""Which calibrated path an inference engine takes on a device, and that of an older release where nobody named one."""

from __future__ import annotations

from functools import lru_cache

from ..catalog.device import Device
from ..catalog.engine import ServingSpeed
from ..findings import cached_across_batches
from ..record import dataclass, replace
from ..scenario import Scenario

ACCELERATORS = ("hpu", "tpu", "npu", "neuron", "port")
"""Backends whose serving stacks are compiled graphs, whatever the engine is called."""


WIDE_BYTES_PER_S = 310e9
"""Bandwidth from which a chip of Apple's has that of a Max or Ultra, of which its GPU reaches a smaller share."""


EAGER = ("eager", "autoawq")
"""Families of engines that run a model's public code, operator by operator."""


@dataclass(frozen=True, slots=True)
class Path:
    """How a model runs: engine family, software backend, class of memory bandwidth."""

    family: str
    backend: str
    bandwidth: str
    unpacks: bool
    fixed: str
    products: str
    vectors: bool = False
    """Its kernels leave the device's matrix units alone."""


@lru_cache(maxsize=4096)
def inference_path(device: Device, speed: ServingSpeed) -> Path:
    """The path of an engine on a device."""
    family = "server" if device.backend in ACCELERATORS and speed.family == "eager" else speed.family
    backend = speed.backend or ("sycl" if device.backend == "xpu" else device.backend)
    fixed = speed.fixed or family
    bandwidth = _bandwidth_class(device, family, backend)
    vectors = device.generation in speed.vectors
    return Path(family, backend, bandwidth, speed.unpacks, fixed, speed.products or fixed, vectors)


def _bandwidth_class(device: Device, family: str, backend: str) -> str:
    if family == "mlx":
        return "mlx"
    if backend == "metal" and device.bandwidth_bytes_per_s >= WIDE_BYTES_PER_S:
        return "metal-wide"
    if backend in ("metal", "cpu", "hpu", "tpu", "vulkan", "sycl") and not (backend == "vulkan" and device.is_unified):
        return backend
    if device.is_unified:
        return "unified"
    if backend in ("cuda", "rocm") and device.kind == "datacenter":
        return f"{backend}-datacenter"
    return backend if backend in ("cuda", "rocm") else "other"


def earlier(scenario: Scenario) -> Scenario | None:
    """The same under the latest earlier release that runs at another speed; None where the release was said."""
    found = _earlier(scenario)
    return None if found is None else found.in_batch_of(scenario)


@cached_across_batches
def _earlier(scenario: Scenario) -> Scenario | None:
    """The same for any batch."""
    engine = scenario.engine_record
    if scenario.engine_version is not None or not engine.older:
        return None
    older = scenario.tables.engine(list(engine.older.values())[-1])
    mine, theirs = engine.serving.speed, older.serving.speed
    if theirs.fixed == mine.fixed or (theirs.family, theirs.backend) != (mine.family, mine.backend):
        return None
    return replace(scenario, engine=older.id, attention="eager" if older.serving.asks_fused else scenario.attention)

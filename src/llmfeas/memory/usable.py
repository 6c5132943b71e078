"""How much of a device's memory a process can take."""

from __future__ import annotations

from ..catalog.device import Device
from ..catalog.tables import Runtime
from ..findings import cached_across_batches
from ..scenario import Scenario
from ..units import GIB
from ..workload.serving import draws_on_host


@cached_across_batches
def usable_bytes(scenario: Scenario) -> float:
    """The usable bytes of one device: what a process may take, and no more than others leave; 0 where they hold all.

    A share that stands for an unknown figure of the driver, or that a system sets, has room for others already.
    """
    device, capacity = scenario.device, scenario.memory_bytes
    left = reported_bytes(device, capacity) - scenario.reserve_bytes
    taken = usable_part(scenario.tables.runtime, device, capacity)
    return max(min(taken if scenario.wired_limit_bytes is None else scenario.wired_limit_bytes, left), 0.0)


def pool_bytes(scenario: Scenario) -> float:
    """What device and processor may take together of one memory, of which Metal limits the device's part alone."""
    return max(scenario.memory_bytes * scenario.tables.runtime.usable["shared"], scenario.wired_limit_bytes or 0.0)


def reported_bytes(device: Device, capacity: float) -> float:
    """What the driver reports where the catalog has it and nobody said another size; else the capacity."""
    reported = device.reported_bytes
    return reported if reported is not None and capacity == device.memory_bytes else capacity


def wired_bytes(runtime: Runtime, capacity: float) -> float:
    """What macOS lets the GPU have of so much memory where nobody has told it otherwise: data/runtime.yaml."""
    return capacity * runtime.of_mac(capacity / GIB).share


def usable_part(runtime: Runtime, device: Device, capacity: float) -> float:
    """What is usable of so many bytes of a device.

    The driver's figure where the catalog has it; else 97 % of the capacity, 90 % where the system shares it (CPU,
    unified memory), on Metal what macOS lets the GPU have, or iOS an app. A memory size that the user gave replaces
    the capacity.
    Source: data/runtime.yaml.
    """
    if device.reported_bytes is not None and capacity == device.memory_bytes:
        return device.reported_bytes
    shares = runtime.usable
    if device.is_phone:
        return capacity * shares["phone"]
    if device.backend == "metal":
        return wired_bytes(runtime, capacity)
    if device.backend == "cpu":
        return capacity * shares["cpu"]
    return capacity * shares["shared" if draws_on_host(device) else "default"]

"""What a probe found out about one device of this machine; None wherever nothing said it."""

from __future__ import annotations

from ..catalog.device import BackendId
from ..record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One kind of device as tools or the system describe it, with how many there are of it."""

    backend: BackendId
    vendor: str
    name: str
    count: int = 1
    memory_bytes: int | None = None
    """What the driver or the system calls its total memory."""
    target: str | None = None
    """CUDA compute capability or ROCm target."""
    cores: int | None = None
    gpu_cores: int | None = None
    clock_ghz: float | None = None
    simd: tuple[str, ...] = ()
    generation: str | None = None
    """Micro-architecture where the processor's family and model number tell it."""
    memory_type: str | None = None
    memory_channels: int | None = None
    memory_mt_per_s: float | None = None
    power_w: float | None = None
    driver: str | None = None
    source: str = ""
    """The tool or file that said so."""


def grouped(devices: list[Found]) -> list[Found]:
    """Put equal devices together, with their count; order of first appearance."""
    counts: dict[Found, int] = {}
    for device in devices:
        counts[device] = counts.get(device, 0) + device.count
    return [_with_count(device, count) for device, count in counts.items()]


def _with_count(device: Found, count: int) -> Found:
    from dataclasses import replace

    return replace(device, count=count)

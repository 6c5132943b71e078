"""The memory sizes that a machine is sold in, and what each of them does with a question that names none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..feasibility.result import Estimate, MemorySize
from ..units import GIB
from .asked import Asked


def memory_sizes(request: Mapping[str, object], estimated: Estimate, beside: Asked) -> Iterator[MemorySize]:
    """Yield the sizes, the smallest first, each as the request with that `memory`; none where a size was said."""
    scenario = estimated.scenario
    options = sorted(scenario.device.memory_options_gib)
    if len(options) < 2 or scenario.origins.get("memory") != "device":
        return
    for size in options:
        if size * GIB == scenario.memory_bytes:
            yield MemorySize(size * GIB, estimated.verdict.status, assumed=True)
            continue
        found = beside.estimate({**request, "memory": f"{size:g}GiB"})
        if found is not None:
            yield MemorySize(size * GIB, found.verdict.status, assumed=False)

"""The memory sizes that a machine is sold in, and what each of them does with a question that names none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..catalog.store import Catalog
from ..errors import LlmfeasError
from ..feasibility.core import estimate
from ..feasibility.result import Estimate, MemorySize
from ..settle import resolution
from ..units import GIB


def memory_sizes(request: Mapping[str, object], estimated: Estimate, catalog: Catalog) -> Iterator[MemorySize]:
    """Yield the sizes, the smallest first, each as the request with that `memory`; none where a size was said."""
    scenario = estimated.scenario
    options = sorted(scenario.device.memory_options_gib)
    if len(options) < 2 or scenario.origins.get("memory") != "device":
        return
    for size in options:
        if size * GIB == scenario.memory_bytes:
            yield MemorySize(size * GIB, estimated.verdict.status, assumed=True)
            continue
        try:
            found = estimate(resolution({**request, "memory": f"{size:g}GiB"}, catalog))
        except LlmfeasError:
            continue
        yield MemorySize(size * GIB, found.verdict.status, assumed=False)

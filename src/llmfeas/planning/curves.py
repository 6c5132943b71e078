"""Memory of one device over the length of sequences: the same question at other lengths."""

from __future__ import annotations

from collections.abc import Mapping

from ..catalog.store import Catalog
from ..errors import UsageError
from ..feasibility.result import Estimate
from ..memory.peak import memory
from ..ranges import Range
from ..settle import resolution

SHORTEST, MOST = 512, 12
TRAINED = ("micro_batch", "zero", "tp", "pp", "cp", "ep", "checkpointing", "engine")
SERVED = ("quant", "gpu_layers", "tp", "pp", "engine")
"""What is decided by the length, and stays as the answer has it."""


def memory_over_length(
    request: Mapping[str, object], found: Estimate, catalog: Catalog
) -> tuple[str, tuple[tuple[float, Range], ...]]:
    """The setting that says the length, and the peak of one device at powers of two of it and at the one asked for.

    Everything else stays as the answer has it; lengths that the model does not take are left out.
    """
    scenario = found.scenario
    length_name = "seq_len" if scenario.is_training else "context"
    fixed = {name: getattr(scenario, name) for name in (TRAINED if scenario.is_training else SERVED)}
    asked = int(getattr(scenario, length_name))
    lengths = sorted({asked, *(SHORTEST << step for step in range(MOST))})
    points = []
    for length in lengths:
        if length > 16 * asked and length > 2**15:
            break
        try:
            settled = resolution({**request, **fixed, length_name: length}, catalog)
        except UsageError:
            continue
        points.append((float(length), memory(settled.scenario).memory.peak_bytes))
    return length_name, tuple(points)

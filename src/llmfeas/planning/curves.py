"""The same question at other lengths, batches and numbers of users: what pictures draw as curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..catalog.store import Catalog
from ..errors import UsageError
from ..feasibility.core import estimate
from ..feasibility.result import Estimate
from ..memory.peak import Memory, memory
from ..settle import resolution

SHORTEST, MOST = 512, 12
MOST_AT_ONCE = 10
"""Powers of two of a batch or of users that are tried."""
TRAINED = ("micro_batch", "zero", "tp", "pp", "cp", "ep", "checkpointing", "engine")
SERVED = ("quant", "gpu_layers", "tp", "pp", "engine")
"""What is decided by the length, and stays as the answer has it."""
LOADED = ("rate", "requests", "ttft", "tpot")
"""What says how requests come; users at once are another way to say it."""


def memory_over_length(
    request: Mapping[str, object], found: Estimate, catalog: Catalog
) -> tuple[str, tuple[tuple[float, Memory], ...]]:
    """The setting that says the length, and memory of one device at powers of two of it and at the one asked for.

    Everything else stays as the answer has it; lengths that the model does not take are left out.
    """
    scenario = found.scenario
    length_name = "seq_len" if scenario.is_training else "context"
    fixed = _fixed(found, TRAINED if scenario.is_training else SERVED)
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
        points.append((float(length), memory(settled.scenario).memory))
    return length_name, tuple(points)


def speed_over_batch(
    request: Mapping[str, object], found: Estimate, catalog: Catalog
) -> tuple[str, tuple[tuple[float, Estimate], ...]]:
    """The setting that says what is worked on at once, and the answers at powers of two of it and at the one asked for.

    Sequences of a micro-batch, or users of a server. Everything else stays as the answer has it; it ends where memory
    does.
    """
    scenario = found.scenario
    name = "micro_batch" if scenario.is_training else "concurrency"
    left = {key: value for key, value in request.items() if scenario.is_training or key not in LOADED}
    fixed = _fixed(found, tuple(one for one in TRAINED if one != name) if scenario.is_training else SERVED)
    return name, tuple(_answers({**left, **fixed}, name, int(getattr(scenario, name)), catalog))


def _answers(
    request: Mapping[str, object], name: str, asked: int, catalog: Catalog
) -> Iterator[tuple[float, Estimate]]:
    for count in sorted({asked, *(1 << step for step in range(MOST_AT_ONCE))}):
        try:
            found = estimate(resolution({**request, name: count}, catalog))
        except UsageError:
            continue
        if found.verdict.memory == "exceeds":
            return
        yield float(count), found


def _fixed(found: Estimate, names: tuple[str, ...]) -> dict[str, object]:
    """Settings that were decided for the answer, as they were decided; null is no value to ask for."""
    values = {name: getattr(found.scenario, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}

"""What is chosen together where nobody says it: a part of it that is said must not turn the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..scenario import Origin, Scenario

SPREAD = ("tp", "pp", "cp", "ep", "interleave", "zero", "micro_batch", "global_batch")
"""Of a training over several devices."""
PLACED = ("gpu_layers", "n_cpu_moe")
"""Of a server; on a desk its engine decides over the format too."""


def left_out(
    given: Mapping[str, Any], recorded: Mapping[str, Origin], scenario: Scenario, *, is_open: bool
) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield the question without what is chosen together, then with one of it, and what was left out.

    `is_open`: whether a layout is still to be chosen.
    """
    names: tuple[str, ...] = ("engine", *PLACED) if scenario.device.kind != "datacenter" else PLACED
    if scenario.is_training:
        names = SPREAD if scenario.num_devices > 1 and is_open else ()
    said = [name for name in names if name in given and recorded.get(name, "given") == "given"]
    for kept in (None, *said) if len(said) > 1 else said and (None,):
        chosen = [name for name in said if name != kept]
        yield {name: value for name, value in given.items() if name not in chosen}, chosen

"""Copies of a model where one over all devices of a server misses what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Container

from ..scenario import Scenario
from .formats import fits
from .valid_layout import tensor_parallel_sizes

LOADS = ("rate", "ttft", "tpot")
"""What a layout has to keep, where it was said."""


def tp_for_load(scenario: Scenario, given: Container[str], with_tp: Callable[[int], Scenario | None]) -> int | None:
    """The most devices a copy (without stages) on which copies keep a load and its targets that one over all misses.

    None where that one keeps them, where copies miss them too, and where nobody asked or somebody said the layout.
    `with_tp` settles the same request with a size, if that is possible.
    """
    if scenario.is_training or not any(name in given for name in LOADS):
        return None
    sizes = _sizes(scenario, given)
    if not sizes or not scenario.has_load:
        return None
    from ..timing.served import keeps_up  # and with it all that follows a load

    if keeps_up(scenario):
        return None
    tried = ((size, with_tp(size)) for size in sizes)
    return next((size for size, copied in tried if copied is not None and fits(copied) and keeps_up(copied)), None)


def _sizes(scenario: Scenario, given: Container[str]) -> list[int]:
    """The sizes of tensor parallelism that make copies, the largest first."""
    said = any(name in given for name in ("tp", "pp", "ep", "cp"))
    if said or scenario.disaggregate or scenario.engine_record.serving.split != "tensors":
        return []
    n, now = scenario.num_devices, scenario.tp * scenario.pp
    sizes = tensor_parallel_sizes(scenario.model.architecture, scenario.tp)
    return sorted((size for size in sizes if size < now and n % size == 0), reverse=True)

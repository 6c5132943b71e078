"""Copies of a model where one over all devices of a server misses what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Container

from ..scenario import Scenario
from .formats import fits
from .valid_layout import tensor_parallel_sizes

LOADS = ("rate", "ttft", "tpot")
"""What a layout has to keep, where it was said."""


def tp_for_load(scenario: Scenario, given: Container[str], with_tp: Callable[[int], Scenario | None]) -> int | None:
    """The devices of a copy (without stages) where one over all misses a load and its targets and copies keep them,
    of several numbers the one that keeps them best.

    None where that one keeps them, where copies miss them too, and where nobody asked or somebody said the layout.
    `with_tp` settles the same request with a size, if that is possible.
    """
    if scenario.is_training or not any(name in given for name in LOADS):
        return None
    sizes = _sizes(scenario, given)
    if not sizes or not scenario.has_load:
        return None
    from ..timing.served import keeps_up, share_of_targets  # and with it all that follows a load

    if keeps_up(scenario):
        return None
    tried = {size: with_tp(size) for size in sizes}
    kept = {size: copied for size, copied in tried.items() if copied is not None and fits(copied) and keeps_up(copied)}
    return min(kept, key=lambda size: share_of_targets(kept[size]), default=None)


def _sizes(scenario: Scenario, given: Container[str]) -> list[int]:
    """The sizes of tensor parallelism that make copies."""
    said = any(name in given for name in ("tp", "pp", "ep", "cp"))
    if said or scenario.disaggregate or scenario.engine_record.serving.split != "tensors":
        return []
    n, now = scenario.num_devices, scenario.tp * scenario.pp
    sizes = tensor_parallel_sizes(scenario.model.architecture, scenario.tp)
    return [size for size in sizes if size < now and n % size == 0]

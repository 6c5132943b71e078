"""Copies of a model where one over all devices of a server misses what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from ..memory.peak import memory
from ..scenario import Scenario
from ..workload.serving import peers, replicas
from .formats import fits
from .valid_layout import tensor_parallel_sizes

LOADS = ("rate", "ttft", "tpot")
"""What a layout has to keep, where it was said."""

REPEATED = 1.5
"""Ranks that hold together so many times the cache of their requests hold much of it more than once."""

Layout = dict[str, int]


def copies_instead(
    scenario: Scenario, given: Container[str], settled: Callable[[Layout], Scenario | None]
) -> Layout | None:
    """The layout of copies where one copy over all devices misses what is asked of it and they keep it.

    It has no room for the requests at once, since its ranks repeat their cache: the fewest copies that have room are
    taken. Or it misses a load and its targets: the copies that keep them best. None where it keeps what is asked, where
    copies miss it too, and where somebody said the layout. `settled` settles the same request with a layout, if that is
    possible.
    """
    laid_out = [] if scenario.is_training else list(_layouts(scenario, given))
    if not laid_out:
        return None
    if _repeats_cache(scenario) and not fits(scenario):
        return next((layout for layout in laid_out if (copied := settled(layout)) and fits(copied)), None)
    if not scenario.has_load or not any(name in given for name in LOADS):
        return None
    from ..timing.served import keeps_up, share_of_targets  # and with it all that follows a load

    if keeps_up(scenario):
        return None
    shares: list[tuple[float, int]] = []
    for at, layout in enumerate(laid_out):
        copied = settled(layout)
        if copied is not None and fits(copied) and keeps_up(copied):
            shares.append((share_of_targets(copied), at))
    return laid_out[min(shares)[1]] if shares else None


def shared_experts(scenario: Scenario, devices: int, tp: int = 1) -> Layout | None:
    """The layout of so many devices in which copies of `tp` ranks attend each by themselves and all share the experts
    (data-parallel attention).

    None where the engine has none, the experts do not divide, or tensor parallel ranks divide the cache as well.
    """
    architecture = scenario.model.architecture
    copied = architecture.mla is not None or architecture.kv_heads < devices
    if architecture.experts is None or devices <= tp or not copied or peers(scenario) > 1:
        return None
    if not scenario.engine_record.serving.shares_experts or architecture.experts.count % devices:
        return None
    return {"tp": tp, "pp": 1, "ep": devices}


def _layouts(scenario: Scenario, given: Container[str]) -> Iterator[Layout]:
    """Yield layouts of copies, the fewest copies first; none where somebody said the layout."""
    said = any(name in given for name in ("tp", "pp", "ep", "cp"))
    if said or scenario.disaggregate or scenario.engine_record.serving.split != "tensors":
        return
    n, now = scenario.num_devices, scenario.tp * scenario.pp
    for size in reversed(tensor_parallel_sizes(scenario.model.architecture, scenario.tp)):
        if size < now and n % size == 0:
            yield {"tp": size, "pp": 1}
            shared = shared_experts(scenario, n, size)
            if shared is not None:
                yield shared


def _repeats_cache(scenario: Scenario) -> bool:
    """Whether ranks hold the same cache of several requests."""
    if scenario.concurrency <= replicas(scenario):
        return False
    counted = memory(scenario).memory
    held = counted.components["kv_cache_bytes"] * scenario.num_devices
    return held > REPEATED * (counted.kv_cache_bytes or held)

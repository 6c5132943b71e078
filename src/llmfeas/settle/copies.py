"""Copies of a model where one over all devices of a server misses what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from ..memory.peak import memory
from ..scenario import Scenario
from ..workload.serving import answer_tokens, peers, replicas
from .formats import fits
from .valid_layout import divisors, tensor_parallel_sizes

LOADS = ("rate", "ttft", "tpot")
"""What a layout has to keep, where it was said."""

WRITES_MORE = 1.2
"""Copies are taken unasked where they write so many times as much, and no user waits longer for a whole answer."""

REPEATED = 1.5
"""Ranks that hold together so many times the cache of their requests hold much of it more than once."""

Layout = dict[str, int]


def copies_instead(
    scenario: Scenario, given: Container[str], settled: Callable[[Layout], Scenario | None]
) -> Layout | None:
    """The layout of copies where one copy over all devices misses what is asked of it and they keep it.

    Stages that nobody asked for are as few as hold it, since more make no answer sooner. One copy has no room for the
    requests at once, since its ranks repeat their cache: the fewest copies that have room are taken. Or it misses a
    load and its targets: the copies that keep them best. Or users were named alone, and copies write more to all and
    no answer ends later. None where it keeps what is asked, where copies miss it too, and where somebody said the
    layout. `settled` settles the same request with a layout, if that is possible.
    """
    if scenario.is_training:
        return None
    fewer = _fewer_stages(scenario, given, settled)
    held = (settled(fewer) if fewer else None) or scenario
    return _instead(held, given, settled) or fewer


def _fewer_stages(
    scenario: Scenario, given: Container[str], settled: Callable[[Layout], Scenario | None]
) -> Layout | None:
    """The fewest stages that surely hold the model with its requests, if fewer than there are and nobody said."""
    if "pp" in given or scenario.disaggregate or scenario.engine_record.serving.split != "tensors":
        return None
    tried = ({"pp": stages} for stages in divisors(scenario.pp, scenario.pp) if stages < scenario.pp)
    return next((layout for layout in tried if (found := settled(layout)) and fits(found)), None)


def _instead(scenario: Scenario, given: Container[str], settled: Callable[[Layout], Scenario | None]) -> Layout | None:
    laid_out = list(_layouts(scenario, given))
    if not laid_out:
        return None
    if _repeats_cache(scenario) and not fits(scenario):
        return next((layout for layout in laid_out if (copied := settled(layout)) and fits(copied)), None)
    if not scenario.has_load:
        return None
    if not any(name in given for name in LOADS):
        return _better(scenario, laid_out, settled) if "concurrency" in given else None
    from ..timing.served import keeps_up, share_of_targets  # and with it all that follows a load

    if keeps_up(scenario):
        return None
    shares: list[tuple[float, int]] = []
    for at, layout in enumerate(laid_out):
        copied = settled(layout)
        if copied is not None and fits(copied) and keeps_up(copied):
            shares.append((share_of_targets(copied), at))
    return laid_out[min(shares)[1]] if shares else None


def _better(scenario: Scenario, laid_out: list[Layout], settled: Callable[[Layout], Scenario | None]) -> Layout | None:
    """The copies that write most to all users, where that is much more and no answer ends later."""
    from ..load.figures import Load
    from ..timing.served import load_of

    def waited(load: Load) -> float:
        return load.ttft_seconds.p50 + answer_tokens(scenario) * load.tpot_seconds.p50

    one, best, found = load_of(scenario, 1.0, 1.0), None, 0.0
    for layout in laid_out:
        copied = settled(layout)
        if copied is None or replicas(copied) > copied.concurrency or not fits(copied):
            continue
        load = load_of(copied, 1.0, 1.0)
        wanted = max(found, WRITES_MORE * one.output_tokens_per_second)
        if waited(load) <= waited(one) and load.output_tokens_per_second > wanted:
            best, found = layout, load.output_tokens_per_second
    return best


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

"""Settings of a server by its own words: its share of a device, requests and tokens at once, graphs, release."""

from __future__ import annotations

from ..catalog.device import Device
from ..catalog.engine import Engine
from ..catalog.serving_pool import NEWEST, ServingPool, default_gib, release, step_value
from ..catalog.store import Catalog
from ..errors import UsageError
from ..memory.inference import inference_memory
from ..memory.serving_room import served_memory
from ..options import BY_NAME, flag_of
from ..record import replace
from ..scenario import Origin, Scenario
from ..text import printable
from ..units import GIB
from ..workload.serving import pool_of
from .draft import Draft

SETTINGS = ("gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "enforce_eager")
"""What only servers with a share of their own have."""


def asks_for_server(draft: Draft) -> bool:
    """Whether something was said that only such servers have."""
    return draft.values["task"] == "inference" and bool(_said(draft))


def _said(draft: Draft) -> list[str]:
    """What the user said; not what an earlier answer had recorded of another engine."""
    return [name for name in SETTINGS if draft.was_said(name)]


def has_pool(engine: Engine, device: Device) -> bool:
    """Whether an engine sizes the room for its cache by a share of such a device."""
    pool = engine.serving.memory.pool
    return pool is not None and device.backend in pool.backends


def settle_server(draft: Draft, engine: Engine, catalog: Catalog) -> None:
    """Settle what a server was told, else its own defaults by release and device.

    Raises:
        UsageError: for a setting that the engine does not have.
    """
    version = draft.settle("engine_version", None)
    if version is not None:
        version = engine.release_at(version)
        draft.override("engine_version", version, draft.origins["engine_version"])
    pool, device = engine.serving.memory.pool, draft.values["device"]
    if pool is None or not has_pool(engine, device):
        _refuse(draft, engine, catalog)
        for name in SETTINGS:
            draft.override(name, None, "derived")
        if version is not None and not _has_releases(engine, catalog):
            draft.warn("option-unused", f"no release of {engine.id} is known to differ: --engine-version was ignored")
        return
    if version is not None and release(version) == NEWEST:
        draft.warn("unknown-release", f"--engine-version {printable(version, 40)}: no release, taken for today's")
    pool = pool.of(version)
    draft.values["enforce_eager"] = draft.settle("enforce_eager", "false") == "true"
    gib = default_gib(pool, device, draft.values["memory_bytes"])
    tokens, context = step_value(pool.tokens, gib), draft.values["context"]
    if tokens < context <= pool.whole_prompts:
        tokens = context
    tokens = max(tokens, draft.given.get("max_num_seqs") or 0)
    tokens = draft.settle("max_num_batched_tokens", tokens, "device")
    sequences = draft.settle("max_num_seqs", min(tokens, step_value(pool.sequences, gib)), "device")
    if sequences > tokens:
        raise UsageError(
            "contradiction",
            f"--max-num-batched-tokens {tokens} has no token for each of --max-num-seqs {sequences}",
            f"use at least {sequences} tokens, or fewer requests",
        )
    draft.settle("gpu_memory_utilization", _share(draft, pool, gib), "backend")


def _has_releases(engine: Engine, catalog: Catalog) -> bool:
    """Whether releases of an engine differ: it has older ones, or is one."""
    return bool(engine.older) or any(engine.id in known.older.values() for known in catalog.engines.values())


def _share(draft: Draft, pool: ServingPool, gib: float) -> float:
    """The share of a device that a server takes where nobody says."""
    reserve = pool.reserve
    if reserve is None:
        return 0.9 if pool.share is None else pool.share
    memory, graphs = float(draft.values["memory_bytes"]), step_value(pool.captured, gib)
    held = reserve.fixed_bytes + reserve.token_bytes * draft.values["max_num_batched_tokens"]
    held += reserve.sequence_bytes * graphs + reserve.rank_bytes * draft.values["num_devices"]
    if memory / GIB > reserve.large_from_gib:
        held = max(held, reserve.large_bytes)
    return max(0.01, round(1 - float(held) / memory, 3))


def _refuse(draft: Draft, engine: Engine, catalog: Catalog) -> None:
    said = _said(draft)
    if not said:
        return
    flags = " and ".join(flag_of(BY_NAME[name].name) for name in said)
    device = draft.values["device"]
    able = [known.id for known in catalog.engines.values() if has_pool(known, device) and "serving" in known.does]
    where = f"engines that have it on {device.name}: {', '.join(able)}" if able else "leave it out"
    raise UsageError("contradiction", f"{flags} is no setting of {engine.id}", where, able)


def within_what_is_free(scenario: Scenario) -> Scenario:
    """The same with the largest share at which a server surely starts, where it would refuse its own default.

    On a card that has no screen nothing changes, nor where somebody said a share.
    """
    share, pool = scenario.gpu_memory_utilization, None if scenario.is_training else pool_of(scenario)
    if pool is None or share is None or not pool.needs_free or not scenario.reserve_bytes:
        return scenario
    if scenario.was_given("gpu_memory_utilization"):
        return scenario
    room = served_memory(scenario, inference_memory(scenario)).room
    sure = room.sure_share
    if room.is_free or sure is None or sure <= 0:
        return scenario
    origins: dict[str, Origin] = {**scenario.origins, "gpu_memory_utilization": "derived"}
    return replace(scenario, gpu_memory_utilization=sure, origins=origins)

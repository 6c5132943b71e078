"""Compute-optimal model size and tokens, for what a device does in a time or for a budget."""

from __future__ import annotations

import math

from ...catalog.architecture import Architecture, Model
from ...catalog.store import Catalog
from ...errors import UsageError
from ...feasibility.core import estimate
from ...feasibility.result import Estimate
from ...settle import resolution
from ...units import format_count
from ...workload.parameters import parameters
from ...workload.scaling import HOFFMANN, Optimum, optimum, optimum_by_rule
from .answer import Answer, Request, without

ALIKE = 1.25
"""A model of the catalog speaks for sizes up to so much smaller or larger than its own."""
PROBE_TOKENS = 1e9


def _flop_available(request: Request, catalog: Catalog, model: str) -> tuple[float, Estimate]:
    """6 N D that the hardware does within deadline or budget while it trains `model`."""
    probed = {**request, "model": model, "tokens": PROBE_TOKENS}
    probe = estimate(resolution(without(probed, "deadline", "budget"), catalog))
    limited = resolution(probed, catalog).scenario
    limits = []
    if limited.deadline_seconds is not None and probe.total_seconds is not None:
        limits.append(limited.deadline_seconds / probe.total_seconds.expected)
    if limited.budget_usd is not None:
        if probe.cost.usd is None or probe.cost.usd.expected <= 0:
            raise UsageError("no-price", "no price is known for this device", "Give one with --price or --electricity.")
        limits.append(limited.budget_usd / probe.cost.usd.expected)
    return min(limits) * probe.flops.rule_of_thumb, probe


def _fits(request: Request, catalog: Catalog, model: str) -> bool:
    probed = {**without(request, "deadline", "budget"), "model": model, "tokens": PROBE_TOKENS}
    return estimate(resolution(probed, catalog)).memory.verdict != "exceeds"


def _speaking_model(request: Request, catalog: Catalog, size: float) -> str:
    """Name the dense model nearest in size, of those that are alike one that fits memory if any does."""
    ordered = sorted(_dense(catalog), key=lambda model: abs(parameters(model).total / size - 1))
    alike = [model for model in ordered if size / ALIKE <= parameters(model).total <= size * ALIKE]
    return next((model.id for model in alike[:8] if _fits(request, catalog, model.id)), ordered[0].id)


def _dense(catalog: Catalog) -> list[Model]:
    """Dense models of one stack that write, without towers: what the law was measured on."""
    return [model for model in catalog.models.values() if _is_plain(model.architecture)]


def _is_plain(built: Architecture) -> bool:
    return built.writes and built.experts is None and built.source is None and not built.tower_parameters


def _settled(request: Request, catalog: Catalog) -> tuple[float, Estimate]:
    """The compute that there is, at the speed of a model of the optimal size, found by iteration."""
    given = request.get("model")
    nearest = str(given or "gpt2-xl")
    seen: set[str] = set()
    while True:
        flop, probe = _flop_available(request, catalog, nearest)
        if given is not None or nearest in seen:
            return flop, probe
        seen.add(nearest)
        nearest = _speaking_model(request, catalog, optimum(flop).parameters)


def optimal(request: Request, catalog: Catalog) -> Answer:
    """The compute-optimal size and tokens for a device, count and deadline, or for a budget.

    The speed is that of the catalog's dense model nearest in size, since larger models run nearer to the peak.
    `tokens` says how much data there is. Where data or memory binds before compute, `limited` is the best within it:
    all the data for a larger model, or the largest model that fits on more data.

    Raises:
        UsageError: without deadline and budget, or for another task than pre-training.
    """
    if request.get("deadline") is None and request.get("budget") is None:
        raise UsageError("missing-option", "solve optimal needs --deadline or --budget", "For example --deadline 30d.")
    if request.get("task", "pretrain") != "pretrain":
        raise UsageError("contradiction", "solve optimal is about pre-training", "Leave --task out.")
    request = {**request, "task": "pretrain"}
    flop, probe = _settled(request, catalog)
    data = resolution({**request, "model": probe.scenario.model.id}, catalog).scenario
    available = data.tokens if data.was_given("tokens") else None
    binds, limited, model, notes = _binding(request, catalog, flop, probe, available)
    answer: dict[str, object] = {
        "best": optimum(flop).to_dict(),
        "hoffmann": optimum(flop, HOFFMANN).to_dict(),
        "rule_of_20": optimum_by_rule(flop).to_dict(),
        "flop": flop,
        "nearest_model": probe.scenario.model.id,
        "binds": binds,
        "limited": limited.to_dict() if limited else None,
    }
    count = min(flop / 6 / probe.parameters.active, available or math.inf) if limited is None else limited.tokens
    at = estimate(resolution({**request, "model": model, "tokens": count * (1 - 1e-9)}, catalog))
    return Answer(
        "optimal", answer, at, None, (f"the speed is that of {probe.scenario.model.name}, the nearest in size", *notes)
    )


def _binding(
    request: Request, catalog: Catalog, flop: float, probe: Estimate, available: float | None
) -> tuple[str, Optimum | None, str, tuple[str, ...]]:
    """Say what binds: compute, memory (no model of that size fits) or data (fewer tokens than would be best).

    Gives also the best size and tokens within that, and the model of the catalog that stands for it.
    """
    best = optimum(flop)
    if available is not None and available < best.tokens:
        text = f"data binds before compute: {format_count(available)} of {format_count(best.tokens)} tokens"
        name = _largest_that_fits(request, catalog, flop / 6 / available * ALIKE, available)
        if name is None:
            return "data", None, probe.scenario.model.id, (text, "no dense model of the catalog reads all of it")
        size = float(parameters(catalog.models[name]).total)
        return "data", Optimum(size, available), name, (text, f"the largest dense model for that is {name}")
    if probe.memory.verdict != "exceeds":
        return "compute", None, probe.scenario.model.id, ()
    fitting = _largest_that_fits(request, catalog, best.parameters)
    if fitting is None:
        return "memory", None, probe.scenario.model.id, ("memory binds before compute: no dense model fits",)
    size = float(parameters(catalog.models[fitting]).total)
    own, there = _flop_available(request, catalog, fitting)
    text = f"memory binds before compute: the largest dense model that fits is {fitting}"
    return "memory", Optimum(size, own / 6 / there.parameters.active), fitting, (text,)


def _largest_that_fits(request: Request, catalog: Catalog, below: float, tokens: float = 0.0) -> str | None:
    """Name the largest dense model below a size that fits, and reads so many tokens within deadline and budget."""
    smaller = [model for model in _dense(catalog) if parameters(model).total < below]
    smaller.sort(key=lambda model: -parameters(model).total)
    room = _room_bytes(request, catalog, smaller)

    def reads(name: str) -> bool:
        flop, there = (0.0, None) if not tokens else _flop_available(request, catalog, name)
        return there is None or tokens <= flop / 6 / there.parameters.active

    able = (model for model in smaller if parameters(model).total * 2 < room)
    return next((model.id for model in able if _fits(request, catalog, model.id) and reads(model.id)), None)


def _room_bytes(request: Request, catalog: Catalog, models: list[Model]) -> float:
    """The memory of all devices together, bytes; host memory may take the rest of the weights where offloaded."""
    if not models or request.get("offload") not in (None, "none"):
        return float("inf")
    probed = {**without(request, "deadline", "budget"), "model": models[-1].id, "tokens": PROBE_TOKENS}
    scenario = resolution(probed, catalog).scenario
    return scenario.memory_bytes * scenario.num_devices

"""Which models of the catalog a device takes for a task."""

from __future__ import annotations

from ...catalog.architecture import Model
from ...catalog.store import Catalog
from ...errors import UsageError
from ...estimate.bounds import memory_lower_bound
from ...estimate.parameters import parameters
from ...estimate.resolve import resolution
from .answer import Answer, Request, estimated, is_feasible, outcome, without

SHOWN = 10


def max_model(request: Request, catalog: Catalog) -> Answer:
    """The catalog's models that work, the largest first, and the smallest larger one that does not.

    Each runs as asked, training at micro-batch 1 where nothing is said.

    Raises:
        UsageError: where a model is given.
    """
    if request.get("model") is not None:
        raise UsageError("contradiction", "solve max-model searches --model", "Leave --model out.")
    fixed = without(request, "model")
    if request.get("task") != "inference":
        fixed = {"micro_batch": 1, **fixed}
    ordered = sorted(catalog.models.values(), key=lambda model: (parameters(model).total, model.id))
    works = [model for model in ordered if _works(model, fixed, catalog)]
    if not works:
        smallest = ordered[0].id
        beyond = {"model": smallest, **outcome({**fixed, "model": smallest}, catalog)}
        return Answer("max-model", {"model": None}, None, beyond, ("not even the smallest model works",))
    best = works[-1]
    limit = parameters(best).total
    answer = {
        "model": best.id,
        "parameters": limit,
        "works": len(works),
        "of": len(ordered),
        "models": [{"model": model.id, "parameters": parameters(model).total} for model in reversed(works[-SHOWN:])],
    }
    larger = [model for model in ordered if parameters(model).total > limit]
    beyond_ = {"model": larger[0].id, **outcome({**fixed, "model": larger[0].id}, catalog)} if larger else None
    return Answer("max-model", answer, estimated({**fixed, "model": best.id}, catalog), beyond_)


def _works(model: Model, fixed: Request, catalog: Catalog) -> bool:
    """Whether a model works; those whose weights alone are too much are not walked."""
    tried = {**fixed, "model": model.id}
    if fixed.get("num_devices") is None:
        scenario = resolution(tried, catalog).scenario
        if memory_lower_bound({}, scenario) > scenario.memory_bytes:
            return False
    return is_feasible(tried, catalog)

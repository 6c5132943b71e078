"""The largest model that works."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from ...catalog.architecture import Architecture, Model
from ...catalog.joined import Joined
from ...catalog.store import Catalog
from ...errors import UsageError
from ...feasibility.bounds import least_miss, time_limit_seconds
from ...feasibility.core import is_feasible
from ...feasibility.software import software_support
from ...record import replace
from ...settle import Resolution, before_layout, resolution
from ...settle.some_layout import that_fits
from ...settle.task import tasks_of
from ...timing.training import training_time
from ...workload.parameters import parameters
from ...workload.serving import spills
from ..asked import REFUSALS, skipped
from .answer import Answer, Request, estimated, outcome, without
from .fleet import LAYOUT
from .ways import with_recipes

SHOWN = 10
UNSAID = "--task inference was taken, since no task was said: --task qlora or pretrain asks for the largest to train"
MOST_TRIED = 100
"""Models of which one that surely works is looked for."""


def max_model(request: Request, catalog: Catalog) -> Answer:
    """The catalog's models that work, the largest first, and the smallest larger one that does not: those whose weights
    were published, and which write (but where vectors or scores are asked for).

    Each runs as asked, chatting where no task is said or meant, training at micro-batch 1 where nothing is said;
    recipes with which a larger one trains stand beside.

    Raises:
        UsageError: where a model is given.
    """
    if request.get("model") is not None:
        raise UsageError("contradiction", "solve max-model searches --model", "Leave --model out.")
    fixed = without(request, "model")
    unsaid = request.get("task") is None and _may_chat(fixed, catalog)
    if unsaid:
        fixed = {**fixed, "task": "inference"}
    if fixed.get("task") != "inference":
        fixed = {"micro_batch": 1, **fixed}
    found = _largest(fixed, catalog)
    larger = () if found.at is None else _larger(fixed, float(str(found.answer["parameters"])), catalog)
    found = with_recipes(fixed, found, larger, catalog, _largest_alone, "parameters")
    return replace(found, notes=(UNSAID, *found.notes)) if unsaid else found


def _largest(fixed: Request, catalog: Catalog) -> Answer:
    """The largest model that runs as asked, in one recipe."""
    refused: dict[str, UsageError] = {}
    seen = bool(fixed.get("images"))
    ordered = _by_size(fixed, catalog, seen)
    working = [model for model in ordered if _works({**fixed, "model": model.id}, catalog, refused)]
    ordered = [model for model in ordered if model.id not in refused]
    notes = (skipped(list(refused.values()), "models"),) if refused else ()
    if not working:
        smallest = ordered[0].id if ordered else next(iter(refused))
        beyond = {"model": smallest, **outcome({**fixed, "model": smallest}, catalog)}
        return Answer("max-model", {"model": None}, None, beyond, ("not even the smallest model works", *notes))
    best, limit = working[-1], _held(working[-1], seen)
    answer = {
        "model": best.id,
        "parameters": limit,
        "works": len(working),
        "of": len(ordered),
        "models": _rows(fixed, working, catalog),
    }
    larger = [model for model in ordered if _held(model, seen) > limit]
    beyond_ = {"model": larger[0].id, **outcome({**fixed, "model": larger[0].id}, catalog)} if larger else None
    return Answer("max-model", answer, estimated({**fixed, "model": best.id}, catalog), beyond_, notes)


def _largest_alone(fixed: Request, catalog: Catalog) -> Answer:
    """The largest model without those beside it: most that are larger are refused by bounds, and little is walked."""
    seen, refused = bool(fixed.get("images")), dict[str, UsageError]()
    for model in reversed(_by_size(fixed, catalog, seen)):
        asked = {**fixed, "model": model.id}
        if _works(asked, catalog, refused):
            answer = {"model": model.id, "parameters": _held(model, seen)}
            return Answer("max-model", answer, estimated(asked, catalog))
    return Answer("max-model", {"model": None})


TIMES = (1.0, 2.0)
"""So many times over the largest model's parameters lie those for which other recipes are looked for."""


def _larger(fixed: Request, parameters: float, catalog: Catalog) -> list[Request]:
    """The questions of larger models: the smallest ones with more than so many times the parameters."""
    seen = bool(fixed.get("images"))
    ordered = _by_size(fixed, catalog, seen)
    found = (next((each for each in ordered if _held(each, seen) > times * parameters), None) for times in TIMES)
    return [{**fixed, "model": model.id} for model in found if model is not None]


def _by_size(request: Request, catalog: Catalog, seen: bool) -> list[Model]:
    """The models that are asked about, the smallest first; of as large ones the newest last."""
    read = request.get("task") in ("embed", "rerank", "reward")
    published = (each for each in catalog.models.values() if each.has_weights and (read or each.architecture.writes))
    return sorted(published, key=lambda model: (_held(model, seen), model.released, model.id))


def _may_chat(request: Request, catalog: Catalog) -> bool:
    """Whether all that was said means something to a model that answers."""
    return all("inference" in tasks_of(name, value, catalog) for name, value in request.items() if value is not None)


def _rows(fixed: Request, working: Sequence[Model], catalog: Catalog) -> list[dict[str, object]]:
    """The largest models that work, of those alike the newest, none outdated, and the largest that surely does."""
    alike: dict[Architecture, Model] = {}
    for model in reversed(working):
        alike.setdefault(model.architecture, model)
    largest = _not_outdated([*alike.values()])
    rows = [_row({**fixed, "model": model.id}, catalog) for model in largest[:SHOWN]]
    if not any(row["status"] == "feasible" for row in rows):
        others = (_row({**fixed, "model": model.id}, catalog) for model in largest[SHOWN:MOST_TRIED])
        rows += islice((row for row in others if row["status"] == "feasible"), 1)
    return rows


def _not_outdated(largest: Sequence[Model]) -> list[Model]:
    """Those models, the largest first, of which no larger one is more than a year newer."""
    kept, since = [], ""
    for model in largest:
        if model.released >= since:
            kept.append(model)
        if model.released:
            year, rest = model.released[:4], model.released[4:]
            since = max(since, f"{int(year) - 1}{rest}")
    return kept


def _row(request: Request, catalog: Catalog) -> dict[str, object]:
    """A model that works, with the format of its weights, what it takes and how fast it is."""
    found = estimated(request, catalog)
    assert found is not None
    scenario, total = found.scenario, found.total_seconds
    return {
        "model": scenario.model.id,
        "parameters": _held(scenario.model, bool(request.get("images"))),
        "format": scenario.precision if scenario.quant == "none" else scenario.quant,
        "status": found.verdict.status,
        "peak_bytes": found.memory.peak_bytes.expected,
        "tokens_per_second": found.speed.expected,
        "total_seconds": None if total is None else total.expected,
    }


def _held(model: Model, seen: bool) -> int:
    """Parameters, without those of encoders where none reads: formats of few bits leave them in a file of their own."""
    return parameters(model).total - (0 if seen else model.architecture.tower_parameters)


def _works(request: Request, catalog: Catalog, refused: dict[str, UsageError]) -> bool:
    """Whether a model works on the device alone; what cannot be asked goes to `refused`."""
    try:
        known = before_layout(request, catalog)
        surely = _in_any_layout(request, known)
        if surely is not None:
            return surely
        settled = resolution(request, catalog)
        return not spills(settled.scenario) and is_feasible(settled)
    except UsageError as error:
        if error.code not in REFUSALS:
            raise
        refused[str(request["model"])] = error
        return False


AT_EASE = 4.0
"""So many times over a training ends in time in a layout that fits: it does in the one that is chosen, which is not
slower than others by more than a fifth, but for what is calibrated apart."""


def _in_any_layout(request: Request, known: Resolution) -> bool | None:
    """Whether a training over several devices works however it is laid out; None where only the layout tells, or one
    may be refused.
    """
    scenario = known.scenario
    if known.open_draft is None or not scenario.is_training or isinstance(scenario.device, Joined):
        return None
    if any(request.get(name) is not None for name in LAYOUT):
        return None
    if software_support(scenario, known.backend)[0] == "unsupported" or least_miss(scenario) > 1:
        return False
    if scenario.offload != "none" or scenario.loss is not None or scenario.budget_usd is not None:
        return None
    fits = that_fits(request, known)
    if fits is None or AT_EASE * training_time(fits.scenario).total_seconds.expected > time_limit_seconds(scenario):
        return None
    return True

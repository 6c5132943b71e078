"""From what was asked to a scenario in which every setting is decided."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..catalog.architecture import Model
from ..catalog.backend import Backend
from ..catalog.engine import OLLAMA, Engine
from ..catalog.hardware import Hardware, find_hardware
from ..catalog.named import find_model, find_published_file
from ..catalog.store import Catalog
from ..contract import Note
from ..errors import LlmfeasError, UsageError
from ..options import BY_NAME, OF_A_JOB, TRAINING
from ..record import dataclass, replace
from ..request import parsed, recorded_origins
from ..scenario import BATCH, Origin, Scenario
from ..workload.parameters import parameters
from . import engine as engines
from . import formats, layout, lengths, recipe, requests, said, served, valid_layout
from .cache import needs_fused, settle_cache, settle_passes
from .copies import Layout, copies_instead
from .draft import Draft
from .hardware import settle_hardware
from .models_beside import settle_models_beside
from .offload import settle_experts, settle_moved, settle_offload
from .pools import check_pools, count_pools
from .requests import settle_load, settle_uneven, widen_server
from .server import settle_server, within_what_is_free
from .speculation import settle_speculation
from .task import settle_task
from .weighed import weighed_layout

if TYPE_CHECKING:
    from ..importers.tensors import ImportedModel

MAX_QUESTIONS = 128
"""Questions that are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Resolution:
    """A decided scenario and what the user should know about how it was decided. Compared by identity."""

    scenario: Scenario
    backend: Backend
    warnings: tuple[Note, ...] = ()
    digest: str = ""
    """Names the data that it was settled from."""
    open_draft: Draft | None = None
    """What a layout is still chosen from for each batch; None where all is settled."""
    work: int = 1
    """Stages of the layouts that were weighed, more where their walks are long: what settling cost."""


def _is_path(text: str, catalog: Catalog) -> bool:
    """Whether a text names a file or folder, not a catalog entry, without importing the readers for plain names."""
    if text in catalog.models or text[:3].lower() == "hf:":
        return False
    plain = not ("/" in text or "\\" in text or "." in text)
    if plain and not os.path.isdir(text):  # noqa: PTH112 - pathlib costs more than the test
        return False
    from ..importers.model_file import is_model_path

    return is_model_path(text)


def _in_a_store(text: str) -> tuple[str, str] | None:
    """The path of a model that another program has under this id, and whose store that is."""
    if ("/" not in text and ":" not in text) or os.path.exists(text):  # noqa: PTH110
        return None
    from ..importers.stores.local import local_model

    found = local_model(text)
    return None if found is None else (str(found.path), found.store)


@lru_cache(maxsize=64)
def _imported(text: str, stamp: object, catalog: Catalog) -> ImportedModel:
    """Read a model file once, however many questions are asked of it; `stamp` tells one state of it from another."""
    from ..importers.model_file import model_from_file
    from ..workload.published import with_published_bytes

    return with_published_bytes(model_from_file(text, catalog.models.values(), catalog.tables.quantization.formats))


def _model(draft: Draft, catalog: Catalog) -> Model:
    """Find the model: a file or folder, else a catalog name.

    Raises:
        UsageError: for an unknown name.
        DataError: for a file that cannot be used.
    """
    text = draft.given["model"]
    if text[:3].lower() == "hf:":
        return _fetched(draft, text, catalog)
    stored = None if text in catalog.models else _in_a_store(text)
    if stored is not None:
        draft.warn("model-variant", f"'{text}' lies in {stored[1]}: its files count")
        text = stored[0]
    match = None if stored is not None else find_published_file(text, catalog)
    if match is None and (stored is not None or _is_path(text, catalog)):
        from ..importers.model_file import stamps

        model = _from_files(draft, text, _imported(text, stamps(text), catalog))
    else:
        pulled = str(draft.given.get("engine", "")).lower().startswith(OLLAMA)
        match = match or find_model(text, catalog, pulled=pulled)
        if match.note:
            draft.warn("model-variant", match.note)
        draft.values["asked_by"] = text
        model = match.record
    draft.override("model", model, "given")
    return model


def _in_context(draft: Draft, model: Model, catalog: Catalog) -> Model:
    """Settle `model_context`: as said, else by the model's name where that says another than its id has."""
    known = catalog.models.get(model.id) if "asked_by" in draft.values else None
    by_name = known is not None and model.context != known.context
    context = draft.settle("model_context", model.context if by_name else None, "given" if by_name else "model")
    if context in (None, model.context):
        return model
    model = replace(model, context=context)
    draft.override("model", model, "given")
    return model


def _fetched(draft: Draft, text: str, catalog: Catalog) -> Model:
    """The model of the hub that a text asks for.

    Raises:
        DataError: it cannot be had.
    """
    from ..importers.stores.hub import folder_from_hub
    from ..importers.weights.safetensors_model import HEADER_ALONE

    model = _from_files(draft, text, _imported(str(folder_from_hub(text)), text, catalog), known=HEADER_ALONE)
    draft.override("model", model, "given")
    return model


def _from_files(draft: Draft, text: str, found: ImportedModel, known: str = "") -> Model:
    """What was read of the files that a text names; `known`: a remark that need not be made."""
    draft.values["model_path"] = text
    draft.values["stored"] = found.stored
    for note in found.notes:
        if note != known:
            draft.warn("imported-model", note)
    return found.model


def hardware_named(text: str, catalog: Catalog) -> Hardware:
    """Find the device: a catalog name, or `this` for the machine that the program runs on.

    Raises:
        UsageError: for an unknown name.
    """
    if text.strip().lower() != "this":
        return find_hardware(text, catalog)
    from ..machine import this_hardware

    return this_hardware(catalog)


def _unused(draft: Draft, asked: Iterable[str], model: Model) -> None:
    """Warn of options that have no meaning for the task, and forget them."""
    task = draft.values["task"]
    ends = OF_A_JOB if task == "inference" and not model.architecture.writes else ()
    unused = [name for name in asked if task not in BY_NAME[name].tasks and name not in ("quant", *ends)]
    for name in unused:
        draft.warn("option-unused", f"{BY_NAME[name].flag} has no meaning for --task {task} and was ignored")
    draft.given = {name: value for name, value in draft.given.items() if name not in unused}


def resolution(request: Mapping[str, object], catalog: Catalog) -> Resolution:
    """Settle a request: find model and device, fill in what was not said, refuse what cannot be.

    Raises:
        UsageError: for unknown names, values out of bounds, contradictions, impossible layouts.
        DataError: for a model file that cannot be used.
    """
    given, recorded = parsed(request, catalog.tables.quantization), recorded_origins(request)
    known = _known(given, recorded, catalog)
    found = _as_chosen(given, recorded, known, catalog) or _of_batch(given, recorded, known)
    return _in_copies(given, recorded, found, catalog)


def as_said(request: Mapping[str, object], catalog: Catalog) -> Scenario:
    """The scenario of a request in any layout that fits, if one does: enough to tell that. Raises as `resolution`."""
    given, recorded = parsed(request, catalog.tables.quantization), recorded_origins(request)
    return _of_batch(given, recorded, _known(given, recorded, catalog), by_speed=False).scenario


def _as_chosen(
    given: Mapping[str, Any], recorded: Mapping[str, Origin], known: Resolution, catalog: Catalog
) -> Resolution | None:
    """The answer to the question without what is chosen together, if it chooses what was said: then saying changes
    nothing, though fewer choices might weigh the others differently. None where it does not.
    """
    for rest, chosen in said.left_out(given, recorded, known.scenario, is_open=known.open_draft is not None):
        try:
            open_known, wanted = _known(rest, recorded, catalog), {name: given[name] for name in chosen}
            weighed = open_known.open_draft if open_known.scenario.is_training else None
            if weighed and not said.may_choose(open_known.scenario, weighed, rest, recorded, wanted):
                continue
            found = _of_batch(rest, recorded, open_known)
        except LlmfeasError:
            continue
        if all(getattr(found.scenario, name) == given[name] for name in chosen):
            origins: dict[str, Origin] = dict.fromkeys(chosen, "given")
            return replace(found, scenario=found.scenario.with_batch({}, origins))
    return None


def _in_copies(
    given: Mapping[str, Any], recorded: Mapping[str, Origin], found: Resolution, catalog: Catalog
) -> Resolution:
    """The same, or copies of the model on fewer devices each where those keep what one over all misses."""

    def laid_out(layout: Layout) -> Resolution:
        asked = {**given, **layout}
        return _of_batch(asked, recorded, _known(asked, recorded, catalog))

    def settled(layout: Layout) -> Scenario | None:
        try:
            return laid_out(layout).scenario
        except LlmfeasError:
            return None

    layout = copies_instead(found.scenario, given, settled)
    if layout is None:
        return found
    copied = laid_out(layout)
    return replace(copied, scenario=copied.scenario.with_batch({}, dict.fromkeys(layout, "derived")))


def _of_batch(
    given: Mapping[str, Any], recorded: Mapping[str, Origin], known: Resolution, *, by_speed: bool = True
) -> Resolution:
    """What depends on the batch: the layout, formats and layers for it, and the batch itself."""
    scenario, work = known.scenario, 1
    if known.open_draft is not None and scenario.is_training:
        scenario, work = _for_batch(known, given.get("micro_batch", 0), given.get("global_batch", 0), by_speed)
    elif known.open_draft is not None:
        scenario = _for_requests(known, _together(given, scenario)[0])
    draft = Draft(given, recorded)
    if scenario.interleave > scenario.pp == 1:
        draft.warn("option-unused", "--interleave has no meaning without pipeline stages (--pp) and was ignored")
    if scenario.is_training:
        lengths.settle_batches(draft, scenario)
    else:
        draft.settle("concurrency", *_together(given, scenario))
        widen_server(scenario, draft)
        settle_uneven(scenario, draft)
    settled = scenario.with_batch(draft.values, draft.origins)
    lengths.check_sensible(settled)
    return Resolution(settled, known.backend, (*known.warnings, *draft.warnings), known.digest, work=work)


def _at_once(given: Mapping[str, Any]) -> int:
    """Requests that are sent at once: as said, else all of a number of requests that no rate spreads."""
    begin = 1 if "rate" in given else given.get("requests", 1)
    return int(given.get("concurrency", begin))


def _together(given: Mapping[str, Any], scenario: Scenario) -> tuple[int, Origin]:
    """Requests that are sent at once, and who says so; texts are read in batches where nobody does."""
    said = _at_once(given)
    return (said, "derived") if said > 1 or "concurrency" in given else (requests.texts_at_once(scenario), "default")


def before_layout(request: Mapping[str, object], catalog: Catalog) -> Resolution:
    """The same before batch and layout, which take longest: what runs it, and in which formats, is decided.

    Raises:
        UsageError, DataError: as `resolution`.
    """
    return _known(parsed(request, catalog.tables.quantization), recorded_origins(request), catalog)


def _known(given: Mapping[str, Any], recorded: Mapping[str, Any], catalog: Catalog) -> Resolution:
    """Settle all that does not depend on the batch; equal questions once."""
    for name in ("model", "device"):
        if name not in given:
            raise UsageError("missing-option", f"no --{name} was given", f"try 'llmfeas {name}s list'")
    rest = [item for item in given.items() if item[0] not in BATCH]
    if "concurrency" in given or _at_once(given) > 1:
        rest.append(("concurrency", engines.many_requests(_at_once(given), given["device"], catalog)))
    # a file may change between two questions
    ask = _settled.__wrapped__ if _is_path(str(given["model"]), catalog) else _settled
    task = given.get("task")
    told = tuple(name for name in given if name not in BATCH or task not in BY_NAME[name].tasks)
    return ask(catalog, told, tuple(recorded.items()), *chain.from_iterable(rest))


@lru_cache(maxsize=MAX_QUESTIONS, typed=True)
def _settled(catalog: Catalog, asked: tuple[str, ...], recorded: Any, *items: Any) -> Resolution:
    """Settle all but the batch, and the layout that it decides; `items` are names and values in turn.

    Of requests at once they hold as many as tell which engine it is; `asked` names the batch's settings too, where they
    may mean nothing to the task, or decide it. It raises what `resolution` does.
    """
    draft = Draft(dict(zip(items[::2], items[1::2], strict=True)), dict(recorded))
    for remark in catalog.remarks:
        draft.warn("overlay", remark)
    model = _in_context(draft, _model(draft, catalog), catalog)
    hardware = hardware_named(draft.given["device"], catalog)
    settle_task(draft, asked, hardware.device, catalog)
    _unused(draft, asked, model)
    model = recipe.settle_objective(draft, model)
    settle_models_beside(draft, model, catalog)
    count_pools(draft)
    settle_hardware(draft, hardware, catalog)
    settle_offload(draft, draft.values["device"])
    engine = engines.settle_engine(draft, model, catalog)
    backend = catalog.backends[draft.values["device"].backend]
    recipe.settle_precision(draft, model, draft.values["device"], engine)
    recipe.settle_formats(draft, model, engine, catalog)
    recipe.settle_attention(draft, engines.eager_reason(draft, model, engine))
    if engine.serving.asks_fused and not (draft.was_given("attention") or needs_fused(draft)):
        draft.override("attention", "eager", "backend")
    for name, default in (("mfu", None), ("tp", 1), ("pp", 1), ("interleave", 1), ("ep", 1), ("cp", 1)):
        draft.settle(name, default)
    if draft.values["task"] in TRAINING:
        _settle_training(draft, model, engine, catalog)
    else:
        _settle_serving(draft, model, backend, engine, catalog)
    if model.architecture.source is not None:
        requests.settle_source(draft, model)
    scenario = Scenario(**draft.values, tables=catalog.tables, origins=draft.origins)
    is_open = scenario.is_training and scenario.num_devices > 1 and engine.training.layout != "batches"
    if not scenario.is_training:
        scenario = served.serving_layout(scenario, draft, engine.serving.split)
    scenario = scenario if is_open else within_what_is_free(_laid_out(scenario, draft))
    is_open = is_open or formats.is_open(scenario, draft)
    return Resolution(scenario, backend, tuple(draft.warnings), catalog.digest, draft if is_open else None)


def _settle_training(draft: Draft, model: Model, engine: Engine, catalog: Catalog) -> None:
    valid_layout.check_engine(draft, engine)
    recipe.settle_training_recipe(draft, model, engine, catalog)
    settle_moved(draft, model, engine, catalog)
    lengths.settle_sequence(draft, model)
    recipe.settle_rollouts(draft, engine)
    lengths.settle_tokens(draft, model, parameters(model).active)
    draft.settle("zero", layout.default_zero(engine.training.zero, draft.values["num_devices"]), "backend")


def _settle_serving(draft: Draft, model: Model, backend: Backend, engine: Engine, catalog: Catalog) -> None:
    requests.settle_lengths(draft, model, engine)
    settle_cache(draft, model, engine, catalog, fp8=backend.fp8_cache)
    settle_passes(draft, engine)
    draft.settle("gpu_layers", None, "derived")
    settle_experts(draft, model, engine)
    settle_server(draft, engine, catalog)
    settle_load(draft)
    draft.settle("disaggregate", None)
    settle_speculation(draft, model, catalog)


@lru_cache(maxsize=MAX_QUESTIONS)
def _for_batch(known: Resolution, micro_batch: int, batch: int, by_speed: bool) -> tuple[Scenario, int]:
    """Spread a training over its devices for a micro-batch and a global batch (0: not given); layouts weighed for it.

    Raises:
        UsageError: no layout is possible as asked.
    """
    assert known.open_draft is not None
    settled, work = weighed_layout(known.scenario, known.open_draft, micro_batch, batch, by_speed)
    probe = known.scenario.with_batch({"micro_batch": micro_batch or 1, "global_batch": lengths.MANY}, {})
    return _laid_out(replace(probe, **settled), known.open_draft), work


@lru_cache(maxsize=MAX_QUESTIONS)
def _for_requests(known: Resolution, concurrency: int) -> Scenario:
    """Choose format and layers on the device for so many requests at once."""
    assert known.open_draft is not None
    return formats.chosen(known.scenario.with_batch({"concurrency": concurrency}, {}), known.open_draft)


def _laid_out(scenario: Scenario, draft: Draft) -> Scenario:
    check_pools(scenario)
    valid_layout.check_layout(scenario)
    origin: Origin = "derived" if scenario.num_devices > 1 else "default"
    settled = {name: origin for name in ("tp", "pp", "interleave", "ep", "cp") if not draft.was_given(name)}
    if scenario.task == "pretrain" and scenario.num_devices > 1 and not draft.was_given("checkpointing"):
        settled["checkpointing"] = origin
    batch = {"global_batch": lengths.MANY} if scenario.is_training else {}
    return scenario.with_batch(batch, settled)


__all__ = ["Resolution", "resolution"]

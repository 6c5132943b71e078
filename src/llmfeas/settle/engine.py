"""Which software runs it: what people use on that backend for that task and format."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

from ..catalog.architecture import Model
from ..catalog.backend import Backend, built_for, default_engine, traits_of
from ..catalog.device import Device
from ..catalog.engine import Engine
from ..catalog.implementation import UNNAMED_KERNELS
from ..catalog.joined import Joined
from ..catalog.named import engine_named
from ..catalog.quantization import StoredWeights
from ..catalog.serving_pool import release
from ..catalog.store import Catalog
from ..errors import DataError, UsageError, did_you_mean
from ..options import flag_of
from ..text import printable
from .cache import asks_for_blocks
from .draft import Draft
from .server import asks_for_server, has_pool

SOME_GGUF_FORMAT = "q8_0"
"""Stands for all formats of GGUF where only the software matters."""
PUBLIC_CODE, PUBLIC_TRAINING = "transformers", "pytorch"
"""What serves a model of any architecture, and what trains it, by its public code."""
STREAMING = PUBLIC_CODE
"""What streams weights from the host on every backend, where people's usual choice does not."""
MANY_DEVICES = 64
"""Above this count training runs on a tuned engine where nobody says which."""
READER = "sentence-transformers"
"""What people take for a model that reads texts and writes none."""
MISTYPED = 0.8
"""From this likeness on a name that is not known is a known one with a slip of the hand (`difflib`)."""
PLACES = ("gpu_layers", "n_cpu_moe")
"""Settings of what the host computes."""
OWN = (*PLACES, "ubatch")
"""Settings of engines that can leave something to the host."""
FOR_MANY = "engine-for-many"
"""The note that another engine was taken because of many requests at once."""
SERVER = "vllm"
"""Who is meant where a server's settings are given and no engine."""


def settle_engine(draft: Draft, model: Model, catalog: Catalog) -> Engine:
    """Settle `engine` by backend, task, format, requests at once and, for training, the number of devices.

    Raises:
        UsageError: where the engine cannot do the task, or `--gpu-layers` or `--n-cpu-moe` ask for what it cannot do.
        DataError: where the engine's record names what there is not.
    """
    device: Device = draft.values["device"]
    _take_named_format(draft, model, catalog)
    default = _cluster_engine(draft, model, device, catalog)
    if default is None:
        default = _engine_of_use(draft, model, catalog)
    named = _where_divided(draft, engine_named(draft.settle("engine", default, "backend"), catalog), catalog)
    known = catalog.tables.engine(_of_release(draft, named, catalog))
    named = built_for(known.id, known.builds, device)
    draft.values["engine"] = named
    engine = catalog.tables.engine(named)
    _known(draft, engine, catalog)
    if _streams(draft) and not engine.serving.streams and engine.id in catalog.engines:
        able = ", ".join(known.id for known in catalog.engines.values() if known.serving.streams)
        way = "; its own way is --gpu-layers" if engine.serving.partial else ""
        draft.warn("engine-offload", f"{engine.name} is not known to stream weights from the host{way}; {able} would")
    _check_parts(draft, device, engine, catalog)
    placed = _said_places(draft)
    if placed and not engine.serving.partial:
        able = ", ".join(known.id for known in catalog.engines.values() if known.serving.partial)
        raise UsageError(
            "contradiction", f"{flag_of(placed[0])} is not something {engine.id} can do", f"engines that can: {able}"
        )
    return engine


def _where_divided(draft: Draft, named: str, catalog: Catalog) -> str:
    """The engine that a name means in training, and where it is said how layers, experts or tensors are divided."""
    divides = any(int(draft.given.get(name) or 1) > 1 for name in ("tp", "pp", "ep"))
    engine = catalog.tables.engine(named)
    trains = draft.values["task"] != "inference" and engine.trains_as
    return trains or (divides and engine.divided) or named


def _of_release(draft: Draft, named: str, catalog: Catalog) -> str:
    """The engine that a release of the named one is, where older releases have a record of their own."""
    said = draft.given.get("engine_version")
    if said is None:
        return named
    engine = catalog.tables.engine(named)
    asked = release(engine.release_at(str(said)))
    before = [(release(bound), name) for bound, name in engine.older.items() if asked < release(bound)]
    return min(before)[1] if before else named


def _check_parts(draft: Draft, device: Device, engine: Engine, catalog: Catalog) -> None:
    """Refuse unequal devices where the work is divided into equal parts.

    Raises:
        UsageError: naming the engines that deal layers out by memory.
    """
    serves = draft.values["task"] == "inference"
    if not isinstance(device, Joined) or (serves and engine.serving.uneven):
        return
    least = min(device.parts, key=lambda each: (each.memory_bytes, each.bandwidth_bytes_per_s))
    name = engine.name
    if serves:
        why = f"{name} gives each device an equal part of the model"
        able = ", ".join(known.id for known in catalog.engines.values() if known.serving.uneven)
        ways = f"engines that deal out layers by memory: {able}; or"
    else:
        why, ways = f"training under {name} gives each device an equal part of the work", "take --task inference, or"
    raise UsageError(
        "unequal-devices",
        f"{why}, and {device.name} are unequal",
        f"{ways} ask as if all were the smallest: --device {len(device.parts)}x{least.id}",
        (),
    )


def _take_named_format(draft: Draft, model: Model, catalog: Catalog) -> None:
    """Take the format that a model's name says as asked for, where something people use there runs it; else say so."""
    known, quant = catalog.models.get(model.id), model.published_quant
    by_name = known is not None and "asked_by" in draft.values and quant != known.published_quant
    if not by_name or draft.values["task"] != "inference" or draft.was_given("quant"):
        return
    device = draft.values["device"]
    usual = [choice.engine for choice in catalog.backends[device.backend].engines]
    names = [engine_named(draft.given["engine"], catalog)] if draft.was_given("engine") else usual
    able = (each for each in map(catalog.tables.engine, names) if each.runs(model.architecture))
    if any(_reads(each, quant, device, catalog) for each in able):
        draft.given, draft.recorded = {**draft.given, "quant": quant}, {**draft.recorded, "quant": "model"}
    else:
        draft.warn("named-format", f"{quant} does not run there: a format that does was taken")


def _said_places(draft: Draft) -> list[str]:
    """What was said of layers or experts that the host computes."""
    return [name for name in PLACES if draft.was_given(name)]


def _engine_of_use(draft: Draft, model: Model, catalog: Catalog) -> str:
    """Name what people use for the format and what else was said."""
    backend = catalog.backends[draft.values["device"].backend]
    inference = draft.values["task"] == "inference"
    quant = str(draft.given.get("quant") or (model.published_quant if inference else "none"))
    if quant == "none" and inference and _is_gguf(draft):
        quant = SOME_GGUF_FORMAT
    if inference and quant == "none" and not model.architecture.writes and _reads_there(draft, model, catalog):
        return READER
    default = _usual(draft, backend, quant)
    if inference and quant != "none" and not draft.was_given("quant"):
        # who runs other models at a desk runs this one there too, in one of the usual formats
        desk = _usual(draft, backend, "none", aside=True)
        runs, plain = (catalog.tables.engine(name).serving.automatic for name in (desk, default))
        default = desk if runs and not plain else default
    default = _running(default, draft, model, quant, catalog)
    serving = catalog.tables.engine(default).serving
    if any(map(draft.was_given, OWN)) and not serving.partial:
        return "llama.cpp"
    if inference and isinstance(draft.values["device"], Joined) and not serving.uneven:
        return "llama.cpp"
    if asks_for_blocks(draft) and draft.given["kv_dtype"] not in catalog.tables.engine(default).serving.caches:
        return "llama.cpp"
    known = catalog.tables.engine(default)
    streamed = _streams(draft) and not known.serving.streams
    if streamed and _reads(catalog.tables.engine(STREAMING), quant, draft.values["device"], catalog):
        return STREAMING
    return SERVER if asks_for_server(draft) and not has_pool(known, draft.values["device"]) else default


def _reads_there(draft: Draft, model: Model, catalog: Catalog) -> bool:
    """Whether what people take for reading texts runs the model there, and nothing asks for what only others do."""
    engine, device = catalog.tables.engine(READER), draft.values["device"]
    others = any(map(draft.was_given, OWN)) or asks_for_server(draft) or isinstance(device, Joined)
    runs = engine.support(catalog.backends[device.backend], device).status != "unsupported"
    return runs and not others and engine.runs(model.architecture)


SEVERAL = 2
"""Requests at once from which on they are those of a load, with prompts and answers."""


def many_requests(concurrency: int, device: str, catalog: Catalog) -> int:
    """The least number of requests at once of which all but the batch is settled as of `concurrency` of them."""
    named = device if device in catalog.devices else None
    return max(step for step in _steps(named, catalog) if step <= concurrency)


@lru_cache(maxsize=4096)
def _steps(named: str | None, catalog: Catalog) -> frozenset[int]:
    """Numbers of requests at once from which on another engine may be chosen, and several; None: on any device."""
    if named is None:
        choices = [choice for each in catalog.backends.values() for choice in each.engines]
    else:
        device = catalog.devices[named]
        choices = [
            choice for choice in catalog.backends[device.backend].engines if choice.when.holds(traits_of(device))
        ]
    return frozenset({1, SEVERAL, *(choice.concurrency for choice in choices)})


def _usual(draft: Draft, backend: Backend, quant: str, *, aside: bool = False) -> str:
    """Name what people use, and say where that is because of many requests unless it is asked `aside`."""
    device, task, many = draft.values["device"], draft.method, draft.given.get("concurrency", 1)
    if isinstance(device, Joined):
        many = 1  # who serves many divides evenly
    few = default_engine(backend, device, task, quant)
    chosen = default_engine(backend, device, task, quant, many)
    if chosen != few and not aside and not any(draft.was_given(name) for name in ("engine", *PLACES)):
        draft.warn(FOR_MANY, f"for {many} or more requests at once {chosen} was taken; fewer run on {few}")
    return chosen


def _running(usual: str, draft: Draft, model: Model, quant: str, catalog: Catalog) -> str:
    """Name what people use there that has architecture and format of the model; the usual one where none has."""
    device, task, many = draft.values["device"], draft.method, draft.given.get("concurrency", 1)
    inference, backend = task == "inference", catalog.backends[device.backend]
    job = "serving" if inference else "training"

    def reads(engine: Engine) -> bool:
        own = engine.serving.automatic and not draft.was_given("quant")
        return not inference or own or _reads(engine, quant, device, catalog)

    def able(engine: Engine) -> bool:
        runs = engine.runs(model.architecture) and not engine.lacks_precision(model.architecture, device)
        return job in engine.does and runs and reads(engine)

    others = [choice.engine for choice in backend.engines if choice.fits(traits_of(device), task, quant, many)]
    names = (usual, *others, PUBLIC_CODE if inference else PUBLIC_TRAINING)
    found = next(filter(able, map(catalog.tables.engine, names)), None)
    if found is not None or reads(catalog.tables.engine(usual)):
        return usual if found is None else found.id
    rest = [each for each in catalog.engines.values() if able(each)]
    there = (each for each in rest if each.support(backend, device).status != "unsupported")
    formats = catalog.tables.quantization
    elsewhere = (each for each in catalog.engines.values() if each.reads(formats.format(quant, each.speaks)))
    return next(chain(there, rest, elsewhere), catalog.tables.engine(usual)).id


def _streams(draft: Draft) -> bool:
    """Whether a served model's weights are to lie on the host and to pass through the device."""
    return (draft.values["task"], draft.values["offload"]) == ("inference", "all")


def _reads(engine: Engine, quant: str, device: Device, catalog: Catalog) -> bool:
    """Whether an engine is known to run a format on a device."""
    form = catalog.tables.quantization.format(quant, engine.speaks)
    return quant == "none" or (engine.reads(form) and engine.format_support(form, device).status != "unsupported")


def _is_gguf(draft: Draft) -> bool:
    """Whether the model is a file that only llama.cpp and its kin open."""
    stored: StoredWeights | None = draft.values.get("stored")
    return stored is not None and stored.container == "gguf"


def _known(draft: Draft, engine: Engine, catalog: Catalog) -> None:
    """Warn of an engine that the catalog does not know.

    Raises:
        UsageError: where a known one does not do the task, or one that is not known reads like a known one.
        DataError: where its record names what there is not.
    """
    # a wheel's own were checked when it was built
    checked = not catalog.overlay_paths and engine.id in catalog.engines and catalog.engines.place(engine.id)[0] is None
    for fault in () if checked else catalog.tables.faults(engine):
        raise DataError("bad-data", f"engines[{printable(engine.id, 40)}]: {fault}", "See 'llmfeas catalog check'.")
    job = "serving" if draft.values["task"] == "inference" else "training"
    if job not in engine.does:
        able = ", ".join(known.id for known in catalog.engines.values() if job in known.does)
        here = f"--engine {engine.id} is known here for {' and '.join(engine.does)} alone, not for {job}"
        raise UsageError("contradiction", here, f"Leave --engine out, or take one of {able}.")
    if engine.id not in catalog.engines:
        from difflib import get_close_matches

        name = printable(engine.id, 40)
        near = get_close_matches(engine.id[:40], list(catalog.engines), n=2, cutoff=MISTYPED)
        if near:
            raise UsageError("unknown-engine", f"unknown engine '{name}'", did_you_mean(near), near)
        draft.warn("unknown-engine", f"engine '{name}' is not known: taken as a plain one")


def _cluster_engine(draft: Draft, model: Model, device: Device, catalog: Catalog) -> str | None:
    """The engine that people take on many devices; none where it has not the model, or the format of a frozen base."""
    if draft.values["task"] == "inference" or draft.values["num_devices"] <= MANY_DEVICES:
        return None
    base = str(draft.given.get("quant") or "nf4") if draft.method == "qlora" else "none"

    def able(engine: Engine) -> bool:
        if device.backend not in engine.training.clusters:
            return False
        if not engine.has_trainer(draft.values["task"], draft.values.get("loss")):
            return False
        if engine.optimizers and draft.given.get("optimizer", "adamw") not in engine.optimizers:
            return False
        if not engine.runs(model.architecture):
            return False
        form = catalog.tables.quantization.format(base, engine.speaks)
        return engine.format_support(form, device).status != "unsupported"

    return next((engine.id for engine in catalog.engines.values() if able(engine)), None)


def _has_sink_kernels(device: Device) -> bool:
    """Whether public code has a fused kernel with sinks there, which it takes where it is told to: of vLLM,
    FlashAttention 4, AITER (transformers 5.24, models/gpt_oss: _compatible_flash_implementations). Axolotl's examples
    run the first on cards of 48 GB, so from Ampere on.
    """
    return device.target in ("gfx942", "gfx950") or (device.backend == "cuda" and device.tflop_per_s.bf16 is not None)


def eager_reason(draft: Draft, model: Model, engine: Engine) -> str:
    """Say why fused attention does not run, by the engine's own kernels or by the model's public code; empty: it does.

    The flash kernels of training frameworks need the generation that brought bf16 (Dao 2023: Ampere and newer); some
    bring another kernel for older cards. With sinks public code runs fused where it is told to and a kernel is known.
    """
    architecture, device = model.architecture, draft.values["device"]
    if engine.fused:
        old = (
            draft.values["task"] != "inference"
            and engine.training.kernels not in UNNAMED_KERNELS
            and device.tflop_per_s.bf16 is None
            and not engine.training.fused_without_bf16
        )
        return f"{engine.name}'s fused attention does not run on {device.name}" if old else ""
    told = draft.given.get("attention") == "flash" and _has_sink_kernels(device)
    plain = not architecture.softcap and (told or not architecture.sinks) and architecture.positions != "relative-xl"
    return "" if plain else f"{model.name} refuses fused attention in its public code"

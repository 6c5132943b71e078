"""What a machine does with a model: one line for each use that people make of it, with the options that make it so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..catalog.architecture import Model
from ..catalog.parts import SourceEncoder
from ..feasibility.result import Estimate, Use
from ..memory.floor import rank_floor_bytes
from ..memory.usable import usable_bytes
from ..objectives import Task
from ..options import BY_NAME
from ..settle.formats import bits
from .asked import GIVES_WAY, Asked
from .changes.change import Source
from .changes.hardware import host_memory_changes, memory_changes
from .changes.serving import FORMATS
from .changes.training import engine_changes
from .faster import reads_heavy_weights
from .selection import GAIN

Settings = Mapping[str, object]

USES: tuple[tuple[str, Task], ...] = (
    ("chat", "inference"),
    ("QLoRA", "qlora"),
    ("LoRA", "lora"),
    ("full fine-tuning", "finetune"),
    ("pre-training", "pretrain"),
)
"""Each use and its task, what most people come for first."""

READING: tuple[tuple[str, Task], ...] = (
    ("embedding", "inference"),
    ("LoRA", "lora"),
    ("full fine-tuning", "finetune"),
    ("pre-training", "pretrain"),
)
"""Of a model that reads and writes nothing: of one that scores pairs the first is called `RERANKING`."""
RERANKING = "reranking"

LEANER: tuple[Settings, ...] = (
    {"micro_batch": 1},
    {"checkpointing": "full"},
    {"optimizer": "adamw-8bit"},
    {"precision": "bf16"},
    {"optimizer": "adafactor"},
)
"""What makes a training leaner, one after the other on top of those before: what costs least comes first."""

USUAL_BITS = (8, 6, 5, 4)
"""Widths of weights that people chat with, the best first."""


def uses_of(request: Mapping[str, object], estimated: Estimate, beside: Asked) -> Iterator[Use]:
    """Yield what the machine does with the model; `estimated` is the answer to the request itself.

    A use is the answer to the request with its task, and with what makes it feasible if it is not so by itself. One
    that cannot be asked at all is left out.
    """
    architecture = estimated.scenario.model.architecture
    for label, task in USES if architecture.writes else READING:
        asked = _asked(request, task)
        found = estimated if task == estimated.scenario.task else beside.estimate(asked)
        if found is None:
            asked = {name: value for name, value in asked.items() if name not in GIVES_WAY}
            found = beside.estimate(asked)
        if found is not None:
            changes, best = _best(asked, found, beside)
            named = _named(label, estimated.scenario.model)
            yield _use(named, changes, best, _part({**asked, **changes}, best, beside))
            if label == "chat":
                yield from _lighter(label, asked, changes, best, beside)


def _lighter(label: str, asked: Settings, changes: Settings, best: Estimate, beside: Asked) -> Iterator[Use]:
    """Yield the same in the smallest usual format, which most people run there, where that is much faster."""
    if not (best.verdict.status == "feasible" and reads_heavy_weights(best.scenario)):
        return
    lighter = {**changes, "quant": best.scenario.engine_record.serving.usual[-1]}
    found = _trial({**asked, **lighter}, best, beside)
    if found is None or found.verdict.status != "feasible" or found.speed.expected < GAIN * best.speed.expected:
        return
    width = round(bits(found.scenario.tables.quantization, found.scenario.quant))
    yield _use(f"{label}, {width} bits", lighter, found, None)


def _named(label: str, model: Model) -> str:
    """A use as it is called of a model."""
    if label == "embedding" and model.reranker is not None:
        return RERANKING
    source = model.architecture.source
    return _answers(source) if label == "chat" and source is not None else label


def _answers(source: SourceEncoder) -> str:
    """What an encoder-decoder writes: what was said in a sound, or a text of another one."""
    return "transcription" if source.bands else "writing"


def _asked(request: Mapping[str, object], task: Task) -> dict[str, object]:
    """The request for a task: without the settings that mean nothing to it."""
    kept = {name: value for name, value in request.items() if name in BY_NAME and task in BY_NAME[name].tasks}
    return {**kept, "task": task}


def _best(asked: Settings, plain: Estimate, beside: Asked) -> tuple[Settings, Estimate]:
    """The changes that make a use feasible, else tight, and its answer; without any, the use as it is."""
    best: tuple[Settings, Estimate] = ({}, plain)
    if plain.verdict.memory == "fits" or plain.verdict.software == "unsupported":
        return best
    trials = _formats(plain) if plain.scenario.task == "inference" else _leaner(plain, beside)
    for changes in trials:
        found = _trial({**asked, **changes}, plain, beside)
        if found is None or not found.verdict.works():
            continue
        if found.verdict.status == "feasible":
            return changes, found
        if best[1].verdict.status != "tight":
            best = changes, found
    return best


def _trial(asked: Settings, plain: Estimate, beside: Asked) -> Estimate | None:
    """The answer with changes; None where they are refused, change the engine, or memory does not do."""
    settled = beside.settled(asked)
    if settled is None:
        return None
    scenario = settled.scenario
    if scenario.engine != asked.get("engine", plain.scenario.engine):
        return None
    if scenario.is_training and rank_floor_bytes(scenario) > usable_bytes(scenario):
        return None
    return None if beside.counted(settled).memory.verdict == "exceeds" else beside.estimated(settled)


def _leaner(plain: Estimate, beside: Asked) -> Iterator[dict[str, object]]:
    """Yield leaner engines that cost nothing, then ever leaner recipes; what was said stays, as does what is lean."""
    scenario = plain.scenario
    if not scenario.was_given("engine"):
        yield from (dict(each.settings) for each in engine_changes(plain, beside.catalog) if each.tier == 0)
    changes: dict[str, object] = {}
    for step in LEANER:
        new = {n: v for n, v in step.items() if not scenario.was_given(n) and getattr(scenario, n) != v}
        if scenario.method not in ("pretrain", "finetune"):
            new.pop("precision", None)
            new.pop("optimizer", None)
        if new:
            changes = {**changes, **new}
            yield dict(changes)


def _formats(plain: Estimate) -> Iterator[dict[str, object]]:
    """Yield the usual formats of fewer bits than now, the widest first."""
    scenario = plain.scenario
    if scenario.was_given("quant") or scenario.stored is not None:
        return
    formats = scenario.tables.quantization
    now = formats.encoded_bits(scenario.quant)[0]
    for width in USUAL_BITS:
        for quant in FORMATS[width]:
            if formats.encoded_bits(quant)[0] < now:
                yield {"quant": quant}


def _part(asked: Settings, found: Estimate, beside: Asked) -> Settings | None:
    """The main memory, or the size that the machine is sold in, with which a use works that lacks nothing else.

    None where it works, or lacks more.
    """
    short = {reason.code for reason in found.verdict.reasons if reason.code.endswith("-exceeds")}
    source = LARGER_PARTS.get(frozenset(short))
    if source is None or found.scenario.was_given(source[0]):
        return None
    for change in source[1](found, beside.catalog):
        tried = beside.estimate({**asked, **change.settings})
        if tried is not None and tried.verdict.works():
            return change.settings
    return None


LARGER_PARTS: Mapping[frozenset[str], tuple[str, Source]] = {
    frozenset({"host-memory-exceeds"}): ("host_memory", host_memory_changes),
    frozenset({"memory-exceeds"}): ("memory", memory_changes),
}
"""By what alone is too small: the setting that says its size, and its larger ones."""


def _use(label: str, changes: Settings, found: Estimate, part: Settings | None) -> Use:
    scenario, total = found.scenario, found.total_seconds
    return Use(
        label=label,
        task=scenario.task,
        changes={"task": scenario.task, **changes},
        quant=None if scenario.quant == "none" else scenario.quant,
        gpu_layers=scenario.gpu_layers,
        n_cpu_moe=scenario.n_cpu_moe,
        verdict=found.verdict,
        peak_bytes=found.memory.peak_bytes.expected,
        tokens=scenario.tokens,
        total_seconds=None if total is None else total.expected,
        decode_tokens_per_second=None if total is not None else found.speed.expected,
        part=None if part is None else {"task": scenario.task, **changes, **part},
    )

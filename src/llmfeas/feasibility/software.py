"""Whether the software of a backend does what a scenario asks."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalog.backend import Backend, Support, support, traits_of
from ..catalog.backend import Status as Software
from ..catalog.device import Device
from ..catalog.engine import Engine
from ..catalog.joined import parts_of
from ..findings import cached_across_batches, cached_across_devices
from ..scenario import Scenario
from .result import Note
from .verdict import worst_software


def techniques(scenario: Scenario) -> Iterator[str]:
    """Yield what a scenario asks of a backend's software besides its engine, as data/backends.yaml names it.

    What the backend's libraries lack is no limit to an engine that brings it, or to a serving engine with attention
    kernels of its own, nor is slow 16-bit arithmetic to one that keeps layers on the host: it computes on quantized
    weights in whole numbers.
    """
    brought = scenario.engine_record.brings
    yield from (name for name in _asked(scenario) if name not in brought)


@cached_across_devices
def _techniques(scenario: Scenario) -> tuple[str, ...]:
    return tuple(techniques(scenario))


def _asked(scenario: Scenario) -> Iterator[str]:
    engine, is_served = scenario.engine_record, not scenario.is_training
    yield "device"
    yield scenario.method
    if not (is_served and engine.serving.partial and scenario.quant != "none"):
        yield scenario.precision
    if scenario.attention == "flash" and not (is_served and engine.fused):
        yield "flash"
    if scenario.quant != "none":
        yield scenario.quant
    if scenario.is_training:
        yield scenario.optimizer
        if scenario.num_devices > 1 and scenario.zero:
            yield "zero"
        if scenario.offload != "none":
            yield "offload"
        return
    if scenario.offload != "none":
        yield "offload"
    if scenario.kv_dtype not in ("fp16", "bf16"):
        yield f"kv-{scenario.kv_dtype}"


OF_THE_DEVICE = frozenset({"has", "is", "was", "needs", "runs", "emulates", "unpacks", "must"})
"""Words with which a note of data/backends.yaml begins that speaks of the device."""


MAX_FOUND = 4096
_found: dict[tuple[object, ...], tuple[Software, tuple[tuple[str, Support], ...]]] = {}
"""The worst level and the cases with limits found so far, by all that they depend on."""


@cached_across_batches
def software_support(scenario: Scenario, backend: Backend) -> tuple[Software, tuple[Note, ...]]:
    """The worst support level over all techniques, with a reason for each that has limits."""
    asked = _techniques(scenario)
    on_each = [_support(backend, part, scenario.engine_record, asked) for part in parts_of(scenario.device)]
    level, reasons = worst_software(one for one, _ in on_each), tuple(note for _, notes in on_each for note in notes)
    found = tuple(_of_engine(scenario))
    notes = (Note(f"software-{status}", text) for status, text in found)
    return worst_software((level, *(status for status, _ in found))), (*reasons, *notes)


def _of_engine(scenario: Scenario) -> Iterator[tuple[Software, str]]:
    """Yield what the engine by itself limits: formats, objectives, architectures."""
    engine, model = scenario.engine_record, scenario.model
    name = engine.name
    if scenario.quant != "none":
        form = scenario.tables.quantization.format(scenario.quant, engine.speaks)
        for part in parts_of(scenario.device):
            case = engine.format_support(form, part)
            if case.status != "supported":
                yield case.status, f"{scenario.quant} under {name}: {case.note}"
    if not engine.has_trainer(scenario.task, scenario.loss):
        yield "unsupported", f"{name} is not known to have a trainer for --task {scenario.task} --loss {scenario.loss}"
    if not scenario.is_training and model.architecture.writes and not engine.serving.writes:
        yield "unsupported", f"{name} makes vectors or scores of texts; {model.name} writes"
    if not engine.runs(model.architecture):
        yield "unsupported", f"{name} has no model of the architecture of {model.name}"
    if scenario.precision == "fp16" and engine.lacks_precision(model.architecture, scenario.device):
        text = f"{name} computes {model.name} in bf16 or fp32 alone, and {scenario.device.name} has no bf16"
        yield "unsupported", text


def _support(
    backend: Backend, device: Device, engine: Engine, names: tuple[str, ...]
) -> tuple[Software, tuple[Note, ...]]:
    key = backend, engine, names, traits_of(device)
    found = _found.get(key)
    if found is None:
        if len(_found) >= MAX_FOUND:
            _found.clear()
        cases = _cases(backend, device, engine, names)
        limits = tuple((name, case) for name, case in cases if case.status != "supported")
        found = _found[key] = worst_software(case.status for _, case in limits), limits
    level, limits = found
    return level, tuple(Note(f"software-{case.status}", _sentence(name, case, device)) for name, case in limits)


def _cases(backend: Backend, device: Device, engine: Engine, names: tuple[str, ...]) -> tuple[tuple[str, Support], ...]:
    """What backend and engine say of each technique, and of the engine."""
    cases = [(name, support(backend, device, name)) for name in names]
    found = [(name, case) for name, case in cases if engine.id not in case.but]
    found.insert(min(2, len(found)), (engine.id, engine.support(backend, device)))
    return tuple(found)


def _sentence(name: str, case: Support, device: Device) -> str:
    what, note = device.name if name == "device" else f"{name} on {device.name}", case.note or case.status
    return f"{what}: {'it ' if note.split(' ', 1)[0] in OF_THE_DEVICE else ''}{note}"

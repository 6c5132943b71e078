"""What engines of the desk decide by what fits: the weights' format, and how many layers stay on the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..catalog.quantization import Quantization
from ..memory.peak import memory, on_machine_bytes
from ..scenario import Origin, Scenario
from ..workload.serving import shares_memory
from .draft import Draft

FEWER = 0.98
"""A format of so many of another one's bits is a smaller one."""


def is_open(scenario: Scenario, draft: Draft) -> bool:
    """Whether memory decides something: the format, or which layers stay on the device."""
    if scenario.is_training:
        return False
    return _format_is_open(scenario, draft) or (not draft.said("gpu_layers") and may_be_placed(scenario))


def _format_is_open(scenario: Scenario, draft: Draft) -> bool:
    """Whether nobody named a format and the engine's people take the best usual one that fits."""
    return scenario.engine_record.serving.automatic and not draft.said("quant") and scenario.stored is None


def may_be_placed(scenario: Scenario) -> bool:
    """Whether layers that do not fit are left on the host by themselves.

    Only where there is nothing smaller to take first: the weights are those of a file, or of so few bits as the
    smallest usual format.
    """
    serving = scenario.engine_record.serving
    apart = not shares_memory(scenario) and scenario.device.kind not in ("unified", "apu")
    if not serving.partial or not apart or scenario.num_devices > 1:
        return False
    if scenario.stored is not None or not serving.usual:
        return scenario.stored is not None
    formats = scenario.tables.quantization
    return bits(formats, scenario.quant) * FEWER <= bits(formats, serving.usual[-1])


def bits(formats: Quantization, quant: str) -> float:
    """Bits of most weights in a format."""
    return formats.encoded_bits(quant)[0]


def formats_to_try(scenario: Scenario) -> Iterator[str]:
    """Yield the published format, then the usual ones of fewer bits; all of them where the engine reads no other."""
    formats, engine = scenario.tables.quantization, scenario.engine_record
    yield scenario.quant
    now = bits(formats, scenario.quant)
    yield from (each for each in engine.serving.usual if bits(formats, each) < FEWER * now)


def chosen(scenario: Scenario, draft: Draft) -> Scenario:
    """The scenario in the first format that surely fits; else in the last one with as many layers on the device as fit.

    What was said stays.
    """
    published, last = scenario.quant, scenario
    for quant in formats_to_try(scenario) if _format_is_open(scenario, draft) else (published,):
        last = _in_format(scenario, quant) if quant != published else scenario
        if fits(last):
            return last
    return last if draft.said("gpu_layers") or not may_be_placed(last) else _placed(last)


def fits(scenario: Scenario) -> bool:
    """Whether device and host surely hold it."""
    counted = memory(scenario).memory
    return counted.verdict == "fits" and on_machine_bytes(scenario, counted) <= scenario.host_memory_bytes


def _in_format(scenario: Scenario, quant: str) -> Scenario:
    return replace(scenario, quant=quant, origins={**scenario.origins, "quant": "derived"})


def _placed(scenario: Scenario) -> Scenario:
    """Keep as many layers on the device as surely fit there; all of them where none would make it fit."""

    def at(layers: int) -> Scenario:
        origins: dict[str, Origin] = {**scenario.origins, "gpu_layers": "derived"}
        return replace(scenario, gpu_layers=layers, origins=origins)

    def holds(layers: int) -> bool:
        return memory(at(layers)).memory.verdict == "fits"

    good, bad = 0, scenario.model.architecture.layers
    if not holds(good):
        return scenario
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return at(good)

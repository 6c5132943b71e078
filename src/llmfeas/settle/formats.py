"""What engines of the desk decide by what fits: the weights' format, and how many layers stay on the device."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

from ..catalog.quantization import Quantization
from ..findings import cached_across_batches
from ..memory.peak import memory, on_machine_bytes
from ..record import replace
from ..scenario import Origin, Scenario, Spill
from ..workload.serving import shares_memory
from .draft import Draft

FEWER = 0.9
"""A format of so many of another one's bits is a smaller one: nobody packs four bits anew into four others."""


def is_open(scenario: Scenario, draft: Draft) -> bool:
    """Whether memory decides something: the format, or which layers stay on the device."""
    if scenario.is_training:
        return False
    return _format_is_open(scenario, draft) or (_place_is_open(draft) and may_be_placed(scenario))


def _place_is_open(draft: Draft) -> bool:
    """Whether nobody said what the host computes; llama.cpp's own fit stops too where somebody did."""
    return not (draft.was_given("gpu_layers") or draft.was_given("n_cpu_moe"))


def _format_is_open(scenario: Scenario, draft: Draft) -> bool:
    """Whether nobody named a format, and people take the best usual one that fits: on every machine but those of a
    data center, where only engines that choose by themselves do.
    """
    automatic = scenario.engine_record.serving.automatic or scenario.device.kind != "datacenter"
    return automatic and not draft.was_given("quant") and scenario.stored is None


def may_be_placed(scenario: Scenario) -> bool:
    """Whether layers that do not fit are left on the host by themselves.

    Only where there is nothing smaller to take first: the weights are those of a file, the format was said, or it has
    so few bits as the smallest usual one.
    """
    serving = scenario.engine_record.serving
    apart = not (shares_memory(scenario) or scenario.device.is_unified)
    if not serving.partial or not apart:
        return False
    if scenario.was_given("quant"):
        return True
    if scenario.stored is not None or not serving.usual:
        return scenario.stored is not None
    formats = scenario.tables.quantization
    return bits(formats, scenario.quant) * FEWER <= bits(formats, serving.usual[-1])


def bits(formats: Quantization, quant: str) -> float:
    """Bits of most weights in a format."""
    return formats.encoded_bits(quant)[0]


def formats_to_try(scenario: Scenario) -> Iterator[str]:
    """Yield the published format, then the usual ones of fewer bits that the engine runs on the device; all of them
    where it reads no other.
    """
    formats, engine = scenario.tables.quantization, scenario.engine_record
    yield scenario.quant
    now = bits(formats, scenario.quant)
    for each in engine.serving.usual:
        runs = engine.format_support(formats.format(each, engine.speaks), scenario.device).status != "unsupported"
        if runs and bits(formats, each) < FEWER * now:
            yield each


def chosen(scenario: Scenario, draft: Draft) -> Scenario:
    """The scenario in the first format that surely fits; else in the last one with as many layers on the device as fit.

    What was said stays. Where none surely fits, a server's is the first that may, or that of the fewest whole bits.
    """
    published, tried = scenario.quant, []
    for quant in formats_to_try(scenario) if _format_is_open(scenario, draft) else (published,):
        tried.append(_with(scenario, "quant", quant) if quant != published else scenario)
        if fits(tried[-1]):
            return tried[-1]
    last = tried[-1]
    if last.quant != published and not scenario.engine_record.serving.automatic:
        formats = scenario.tables.quantization
        return next(filter(_may_fit, tried), min(tried, key=lambda each: round(bits(formats, each.quant))))
    if not (_place_is_open(draft) and may_be_placed(last)):
        return last
    placed = _placed(last)
    return _may_spill(last, placed) if last.tp == 1 and _stays_whole(last) else placed


def fits(scenario: Scenario) -> bool:
    """Whether device and host surely hold it, and nothing speaks against the room that a server takes."""
    found = memory(scenario)
    if found.serving is not None and (found.serving.refusal is not None or found.serving.doubt is not None):
        return False
    counted = found.memory
    return counted.verdict == "fits" and on_machine_bytes(scenario, counted) <= scenario.host_memory_bytes


def _may_fit(scenario: Scenario) -> bool:
    """Whether device and host are expected to hold it, and a server to start."""
    found = memory(scenario)
    if found.serving is not None and found.serving.refusal is not None:
        return False
    counted = found.memory
    return counted.verdict != "exceeds" and on_machine_bytes(scenario, counted) <= scenario.host_memory_bytes


def _stays_whole(scenario: Scenario) -> bool:
    """Whether the engine's own fit leaves all on the device, by what is expected: it cannot know better."""
    found = memory(scenario).memory
    margin = scenario.engine_record.serving.fit_margin_bytes
    return found.peak_bytes.expected + margin <= found.usable_bytes


def _may_spill(whole: Scenario, placed: Scenario) -> Scenario:
    """All on the device, as is expected; and what the engine's own fit leaves on the host where that is not enough."""
    if not fits(placed):
        return whole
    names = ("n_cpu_moe", "gpu_layers")
    left = tuple((name, value) for name in names if (value := getattr(placed, name)) != getattr(whole, name))
    found = memory(whole).memory
    spill = Spill(left, found.peak_bytes.share_above(found.usable_bytes))
    return replace(whole, spill=spill).in_batch_of(whole)


def _with(scenario: Scenario, name: str, value: object) -> Scenario:
    """The same with another value of a setting; what is found out there all batches share."""
    return _changed(scenario, name, value).in_batch_of(scenario)


@cached_across_batches
def _changed(scenario: Scenario, name: str, value: Any) -> Scenario:
    origins: dict[str, Origin] = {**scenario.origins, name: "derived"}
    return replace(scenario, **{name: value}, origins=origins)


def _placed(scenario: Scenario) -> Scenario:
    """Leave on the host what does not fit: experts where there are any, then layers; nothing where that would not do.

    As llama.cpp's own fit does: first the routed experts, whose every token meets few, then whole layers. It counts by
    itself what a device holds and leaves a margin free there (`fit_margin_bytes`).
    """
    layers = scenario.model.architecture.layers
    if scenario.model.architecture.experts is None:
        return _with_layers(scenario, lambda asked: memory(asked).memory.verdict == "fits") or scenario
    experts = _least(lambda kept: _has_margin(_with(scenario, "n_cpu_moe", kept)), 1, layers)
    if experts is not None:
        return _with(scenario, "n_cpu_moe", experts)
    return _with_layers(_with(scenario, "n_cpu_moe", layers), _has_margin) or scenario


def _with_layers(scenario: Scenario, holds: Callable[[Scenario], bool]) -> Scenario | None:
    """Keep as many layers on the device as hold there; None where none would make it fit."""
    layers = scenario.model.architecture.layers
    gone = _least(lambda gone: holds(_with(scenario, "gpu_layers", layers - gone)), 1, layers)
    return None if gone is None else _with(scenario, "gpu_layers", layers - gone)


def _least(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """The least number that holds, where all above it do; None where the highest does not."""
    return low + bisect_left(range(low, high), True, key=holds) if holds(high) else None


def _has_margin(scenario: Scenario) -> bool:
    """Whether a device surely holds it, and is expected to keep the margin free that the engine's own fit leaves."""
    return memory(scenario).memory.verdict == "fits" and _stays_whole(scenario)

"""Changes of where the parts of a training lie: divided over devices, in chunks of a pipeline, on the host or back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...catalog.store import Catalog
from ...feasibility.result import Estimate
from ...record import replace
from ...scenario import Scenario
from ..writable import expressions, is_surely_written, is_written
from .change import AUTO, FULL, Change, change


def zero_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield other stages of ZeRO on several devices: lower ones (less to send), then 3 (smallest)."""
    scenario = estimate.scenario
    if not scenario.is_training or (scenario.num_devices == 1 and not scenario.was_given("zero")):
        return
    for stage in (1, 2):
        if stage < scenario.zero:
            text = f"ZeRO {stage} instead of {scenario.zero}: less to send between devices, more memory"
            yield change(scenario, "zero-less", {"zero": stage}, text)
    if scenario.zero < 3:
        yield change(scenario, "zero-more", {"zero": 3})


def layout_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield a layout of our choice where one was given."""
    given = [name for name in ("tp", "pp", "cp", "ep", "interleave") if estimate.scenario.was_given(name)]
    if given:
        yield change(estimate.scenario, "layout", dict.fromkeys(given, AUTO), "a layout that llmfeas chooses")


def context_parallel_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield long sequences divided over several devices."""
    scenario = estimate.scenario
    if scenario.is_training and scenario.num_devices > 1 and scenario.seq_len >= 8192 and not scenario.was_given("cp"):
        for cp in (2, 4, 8):
            if cp > scenario.cp and scenario.num_devices % cp == 0 and scenario.seq_len % cp == 0:
                yield change(scenario, "context-parallel", {"cp": cp})


def offload_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield none where there is one, then activations, optimizer states, then weights and states in main memory."""
    scenario = estimate.scenario
    if scenario.offload != "none":
        yield change(scenario, "offload-none", {"offload": "none"})
    if scenario.device.kind in ("cpu", "unified", "apu") or not scenario.is_training:
        return
    if scenario.offload == "none":
        yield change(scenario, "offload-activations", {"offload": "activations"})
    if scenario.method in FULL and not scenario.states_on_host:
        yield change(scenario, "offload-optimizer", _moving(scenario, "optimizer", catalog))
    # A quantized base leaves the device only where it is divided (FSDP), which one device does not do.
    divided = scenario.method != "qlora" or scenario.num_devices > 1
    if scenario.offload != "all" and divided:
        yield change(scenario, "offload-all", _moving(scenario, "all", catalog))


def _moving(scenario: Scenario, offload: str, catalog: Catalog) -> dict[str, object]:
    """What moves something to the host: also the engine that does, where nobody named one and ours has no word for it.

    Such as DeepSpeed on one device: FSDP moves only what it divides.
    """
    settings: dict[str, object] = {"offload": offload}
    moved: dict[str, Any] = {"offload": offload}
    if scenario.was_given("engine") or is_written(replace(scenario, **moved), settings):
        return settings
    known = scenario.tables.implementations
    for name in _with_word(offload, catalog):
        engine = catalog.engines[name]
        other: dict[str, Any] = {"engine": name, **moved}
        same_code = "training" in engine.does and engine.training.runs_public_code(known)
        if same_code and is_surely_written(replace(scenario, **other), settings):
            return {"engine": name, **settings}
    return settings


def _with_word(offload: str, catalog: Catalog) -> Iterator[str]:
    """Yield the engines of which a launcher has a word for what moves: others are not even built."""
    engines = catalog.engines
    for name in engines:
        launchers: Any = engines.peek(name, "launchers")
        if launchers is None:  # as the engine that it is like
            launchers = engines.raw(name).get("launchers", ())
        if any(offload in each.choices.get("offload", (offload,)) for each in expressions(launchers)):
            yield name

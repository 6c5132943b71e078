"""What moves to the host of a training, or back, as a change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..catalog.store import Catalog
from ..feasibility.result import Estimate
from ..record import replace
from ..scenario import Scenario
from .change import Change, change
from .writable import expressions, is_surely_written, is_written

FULL = ("pretrain", "finetune")
"""Tasks and methods that train all weights."""


def offload_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield none where there is one, then activations, optimizer states, then weights and states in main memory."""
    scenario = estimate.scenario
    if scenario.offload != "none":
        yield change(
            scenario,
            "offload-none",
            {"offload": "none"},
            "nothing waits for the host: faster, more memory on the device",
            heavier=True,
        )
    if scenario.device.kind in ("cpu", "unified", "apu") or not scenario.is_training:
        return
    if scenario.offload == "none":
        yield change(
            scenario,
            "offload-activations",
            {"offload": "activations"},
            "what backward needs waits in main memory: slower steps",
        )
    if scenario.method in FULL and not scenario.states_on_host:
        yield change(
            scenario,
            "offload-optimizer",
            _moving(scenario, "optimizer", catalog),
            "optimizer states in main memory: much slower steps",
        )
    # A quantized base leaves the device only where it is divided (FSDP), which one device does not do.
    divided = scenario.method != "qlora" or scenario.num_devices > 1
    if scenario.offload != "all" and divided:
        text = "weights and states wait in main memory"
        yield change(scenario, "offload-all", _moving(scenario, "all", catalog), text)


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

"""The layout of a training on several devices, chosen once for jobs that differ in what no layout depends on."""

from __future__ import annotations

from typing import Any

from ..findings import COSTS
from ..memory.floor import rank_floor_bytes
from ..memory.peak import peak_bytes
from ..memory.training import training_plan
from ..memory.usable import usable_bytes
from ..ranges import Range
from ..scenario import Scenario
from ..timing.training import layout_tokens_per_second
from . import layout, lengths
from .draft import Draft
from .weighing import Judge

MAX_LAYOUTS = 384
LAYOUT = ("tp", "pp", "cp", "ep", "interleave", "zero", "checkpointing")
UNWEIGHED = COSTS | {"host_memory_bytes", "origins", "shared", "engine_record"}
"""What a job costs, when it has to be done and what the host holds: no layout is chosen by it."""

LAYERS_A_WORK = 3
"""Layers of a walk that count as one stage that was weighed, whether or not it was walked for this layout."""

_layouts: dict[tuple[object, ...], tuple[dict[str, Any], int]] = {}
"""Layouts chosen so far, with the work of weighing them: jobs that differ in their price alone share one."""


def weighed_layout(
    scenario: Scenario, draft: Draft, micro_batch: int, batch: int, by_speed: bool
) -> tuple[dict[str, Any], int]:
    """The settings of the layout for a micro-batch and a global batch (0: not given), and the work of choosing it; not
    `by_speed`: any of those that fit.
    """
    given = tuple(draft.was_given(name) for name in LAYOUT)
    # the host's memory tells how fast its processor reads what lies there
    host = scenario.host_memory_bytes if scenario.offload != "none" or scenario.loss is not None else 0.0
    fields = dict(vars(scenario))  # whole: another thread may be adding what it found of the scenario
    seen = (value for name, value in fields.items() if name not in UNWEIGHED)
    key = by_speed, micro_batch, batch, given, host, *seen
    found = _layouts.get(key)
    if found is None:
        if len(_layouts) >= MAX_LAYOUTS:
            _layouts.clear()
        probe = scenario.with_batch({"micro_batch": micro_batch or 1, "global_batch": lengths.MANY}, {})
        chosen, work = _weighed(probe, draft, micro_batch, batch, by_speed)
        found = _layouts[key] = {name: getattr(chosen, name) for name in LAYOUT}, work
    return found


def fitting_layout(scenario: Scenario, draft: Draft, micro_batch: int, batch: int) -> Scenario | None:
    """The same question in the first layout whose memory does; None where none does."""
    probe = scenario.with_batch({"micro_batch": micro_batch or 1, "global_batch": lengths.MANY}, {})
    speed = layout_tokens_per_second
    judge = Judge(False, peak_bytes, rank_floor_bytes, usable_bytes(probe), speed, speed, speed)
    return layout.first_fitting(probe, draft, judge, batch)


def reached(candidate: Scenario, micro_batch: int, batch: int) -> float:
    """Tokens a second of a layout with a micro-batch and a global batch (0: its own)."""
    settled = {"micro_batch": micro_batch, "global_batch": batch or lengths.global_batch(candidate, micro_batch)}
    return layout_tokens_per_second(candidate.with_batch(settled, {}))


def reached_at_most(candidate: Scenario, micro_batch: int, batch: int) -> float:
    """A ceiling for the same, where no micro-batch is given (0) whichever fits: the largest that could be, in as many
    micro-steps as the smallest takes. A global batch that leaves ranks idle is not looked into.
    """
    if micro_batch:
        return reached(candidate, micro_batch, batch)
    most = lengths.largest_batch(candidate, batch)
    steps = lengths.global_batch(candidate, 1) // candidate.dp + most
    return reached(candidate, most, lengths.MANY if batch else steps * most * candidate.dp)


def _weighed(probe: Scenario, draft: Draft, micro_batch: int, batch: int, by_speed: bool) -> tuple[Scenario, int]:
    """Choose the layout of a training, and say how many were weighed for it."""
    work = 1

    def peak(candidate: Scenario) -> Range:
        nonlocal work
        work += sum(max(1, rank.moments.walked // LAYERS_A_WORK) for rank in training_plan(candidate).ranks)
        return peak_bytes(candidate)

    def tokens_per_second(candidate: Scenario) -> float:
        nonlocal work
        work += 1
        if not by_speed:
            return 1.0
        return reached(candidate, micro_batch or lengths.fitting_batch(candidate, batch), batch)

    def usual(candidate: Scenario) -> float:
        if not by_speed:
            return 0.0  # below what any reaches: the first that fits ends the search
        micro = micro_batch or lengths.roomiest_batch(candidate, batch)
        return layout_tokens_per_second(candidate.with_batch({"micro_batch": micro, "global_batch": lengths.MANY}, {}))

    def ceiling(candidate: Scenario) -> float:
        return reached_at_most(candidate, micro_batch, batch)

    judge = Judge(
        probe.engine_record.training.layout == "fastest",
        peak,
        rank_floor_bytes,
        usable_bytes(probe),
        tokens_per_second,
        usual,
        ceiling,
    )
    return layout.fitted_layout(probe, draft, judge, batch), work

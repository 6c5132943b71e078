"""What can change: axes of alternatives, each with what it gives up, in words, and how much that hurts."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ...catalog.backend import Backend, support
from ...catalog.store import Catalog
from ...feasibility.inputs import value_and_origin
from ...feasibility.result import Estimate
from ...record import replace
from ...scenario import Scenario
from .change import AUTO, Axis, Change, Source
from .hardware import HARDWARE_SOURCES
from .serving import SERVING_SOURCES
from .training import TRAINING_SOURCES

SOURCES: tuple[tuple[str, Source], ...] = (*TRAINING_SOURCES, *SERVING_SOURCES, *HARDWARE_SOURCES)
"""What can change, the least painful first."""


def axes_of(
    estimate: Estimate, catalog: Catalog, keep: Collection[str] = (), *, any_device: bool = False
) -> list[Axis]:
    """What can change in what was asked, without the settings to keep, the least painful first.

    What the software of the device cannot do is left out, unless other devices are tried too.
    """
    backend = None if any_device else catalog.backends[estimate.scenario.device.backend]
    axes = []
    for name, source in SOURCES:
        if name in keep or (name == "device" and not any_device):
            continue
        offered = (_offered(change, estimate, backend) for change in source(estimate, catalog))
        kept = tuple(change for change in offered if change and not _touches(change, estimate.scenario, keep))
        if kept:
            axes.append(Axis(name, kept))
    return axes


def _touches(change: Change, scenario: Scenario, keep: Collection[str]) -> bool:
    """Whether a change gives another value to a setting that is to be kept."""
    if any(name in keep for name in change.alone):
        return True
    others = (name for name in change.settings if name in keep and name != "device")
    return any(value_and_origin(scenario, name)[0] != change.settings[name] for name in others)


def _offered(change: Change, estimate: Estimate, backend: Backend | None) -> Change | None:
    """The change with the new limits that the backend's software sets to it; None where that cannot do it."""
    if backend is None:
        return change
    scenario = estimate.scenario
    cases = [support(backend, scenario.device, technique) for technique in _techniques(change)]
    if change.settings.get("engine", AUTO) != AUTO:
        engine = scenario.tables.engine(str(change.settings["engine"]))
        cases.append(engine.support(backend, scenario.device))
    if any(case.status == "unsupported" for case in cases):
        return None
    known = " ".join(reason.message for reason in estimate.verdict.reasons)
    notes = (case.note for case in cases if case.status == "limited" and case.note)
    limits = dict.fromkeys(note for note in notes if note not in known)
    if not limits:
        return change
    return replace(change, gives_up=f"{change.gives_up} ({'; '.join(limits)})", pain=change.pain + 1)


def _techniques(change: Change) -> Iterator[str]:
    """Yield what a change newly asks of the software, as data/backends.yaml names it."""
    for name, value in change.settings.items():
        if value in (AUTO, "none"):
            continue
        if name in ("task", "precision", "quant", "optimizer"):
            yield str(value)
        elif name == "offload":
            yield "offload"
        elif name == "kv_dtype":
            yield f"kv-{value}"
        elif name == "attention" and value == "flash":
            yield "flash"

"""Changes of a pipeline in which devices wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalog.store import Catalog
from ..feasibility.result import Estimate
from ..settle.valid_layout import PLACES_OF_ENDS
from ..timing.training import TrainingTime
from .change import Change, Source, change

MOST_CHUNKS = 8


def waits_in_pipeline(estimate: Estimate) -> bool:
    """Whether more of a step goes by in waiting for other stages than in anything else."""
    return isinstance(estimate.time, TrainingTime) and estimate.time.bound_by == "bubble"


def interleave_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield more chunks of layers a stage, the fewest first, under engines that interleave.

    Chunks hold equal numbers of layers, where embedding and head may stand for one each.
    """
    scenario, places = estimate.scenario, estimate.scenario.model.architecture.layers
    interleaves = scenario.is_training and scenario.pp > 1 and scenario.engine_record.training.style != "plain"
    if not interleaves or scenario.was_given("interleave") or not waits_in_pipeline(estimate):
        return
    for chunks in range(scenario.interleave + 1, MOST_CHUNKS + 1):
        if 0 in (places % (scenario.pp * chunks), (places + PLACES_OF_ENDS) % (scenario.pp * chunks)):
            text = f"{chunks} chunks of layers a stage: less waiting in the pipeline, more to send and to keep"
            yield change(scenario, "interleave", {"interleave": chunks}, text, heavier=True)


PIPELINE_SOURCES: tuple[tuple[str, Source], ...] = (("interleave", interleave_changes),)

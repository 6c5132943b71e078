"""Speeds of an engine whose release nobody named: the range is that of today's and of what many still run."""

from __future__ import annotations

from ..findings import cached_across_batches
from ..record import replace
from ..scenario import Scenario


def earlier(scenario: Scenario) -> Scenario | None:
    """The same under the latest earlier release that runs at another speed; None where the release was said."""
    found = _earlier(scenario)
    return None if found is None else found.in_batch_of(scenario)


@cached_across_batches
def _earlier(scenario: Scenario) -> Scenario | None:
    """The same for any batch."""
    engine = scenario.engine_record
    if scenario.engine_version is not None or not engine.older:
        return None
    older = scenario.tables.engine(list(engine.older.values())[-1])
    mine, theirs = engine.serving.speed, older.serving.speed
    if theirs.fixed == mine.fixed or (theirs.family, theirs.backend) != (mine.family, mine.backend):
        return None
    return replace(scenario, engine=older.id, attention="eager" if older.serving.asks_fused else scenario.attention)

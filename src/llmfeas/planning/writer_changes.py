"""What can change in a training whose answers a server writes."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalog.store import Catalog
from ..feasibility.result import Estimate
from .change import Change, change


def writer_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield a server that holds nothing while weights train, where one stays awake on their devices."""
    scenario = estimate.scenario
    if scenario.sleep == "false":
        text = "the server that writes answers gives its memory back while weights train, and has to wake for each step"
        yield change(scenario, "server-sleeps", {"sleep": "true"}, text)

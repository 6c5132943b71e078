"""The share of a device that a server takes where nobody says: no more than a screen and other programs leave free."""

from __future__ import annotations

from ..memory.inference import inference_memory
from ..memory.serving_room import served_memory
from ..record import replace
from ..scenario import Origin, Scenario
from ..workload.serving import pool_of


def within_what_is_free(scenario: Scenario) -> Scenario:
    """The same with the largest share at which a server surely starts, where it would refuse its own default.

    On a card that has no screen nothing changes, nor where somebody said a share.
    """
    share, pool = scenario.gpu_memory_utilization, None if scenario.is_training else pool_of(scenario)
    if pool is None or share is None or not pool.needs_free or not scenario.reserve_bytes:
        return scenario
    if scenario.was_given("gpu_memory_utilization"):
        return scenario
    room = served_memory(scenario, inference_memory(scenario)).room
    sure = room.sure_share
    if room.is_free or sure is None or sure <= 0:
        return scenario
    origins: dict[str, Origin] = {**scenario.origins, "gpu_memory_utilization": "derived"}
    return replace(scenario, gpu_memory_utilization=sure, origins=origins)

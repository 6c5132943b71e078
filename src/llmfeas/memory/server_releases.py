"""A server whose release nobody named: older ones that people still run may not start where today's does."""

from __future__ import annotations

from ..contract import Note
from ..record import replace
from ..scenario import Scenario
from ..workload.serving import pool_of
from .inference import inference_memory
from .serving_room import ServingRoom, served_memory

FEW = 3.0
"""With room for so many requests older releases start too: they differ by a few gigabytes. Where a larger share of the
device was asked for than is usual, what stays free beside it differs too."""


def doubted_by_releases(scenario: Scenario, room: ServingRoom) -> ServingRoom:
    """The room of today's release, in doubt where nobody named it and one that is still run would refuse or fail."""
    pool = pool_of(scenario)
    if pool is None or scenario.engine_version is not None or not room.starts or room.doubt is not None:
        return room
    usual = (scenario.gpu_memory_utilization or 1.0) <= (pool.share or 1.0)
    if usual and room.kv_pool_bytes.low >= FEW * room.request_bytes:
        return room
    doubt: Note | None = None
    for version in pool.still:
        older = replace(scenario, engine_version=version)
        found = served_memory(older, inference_memory(older)).room
        if not found.starts:
            name = scenario.engine_record.name
            text = (
                f"{name} {version} would refuse to start, today's release does not (--engine-version says which it is)"
            )
            return replace(room, doubt=Note("server-release", text))
        if version == pool.still[0]:
            doubt = found.doubt
    return room if doubt is None else replace(room, doubt=doubt)

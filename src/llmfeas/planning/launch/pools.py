"""Prompts and answers on devices of their own: a server for each copy of the model, one after the other, and what
stands before them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...record import dataclass, replace
from ...scenario import Scenario

HERE = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Pooled:
    """One copy of the model on devices in a row of one machine."""

    index: int
    reads: bool
    """It reads prompts; the others write answers."""
    first: int
    """Its first device."""
    scenario: Scenario
    """The question as this server is asked it."""

    @property
    def devices(self) -> str:
        """Its devices, as CUDA_VISIBLE_DEVICES takes them."""
        return ",".join(str(self.first + place) for place in range(self.scenario.num_devices))


def servers(scenario: Scenario) -> Iterator[Pooled]:
    """Yield the servers of both pools, those that read first; each takes its share of the requests at once."""
    each, index = scenario.tp * scenario.pp, 0
    for reads, devices in zip((True, False), scenario.pools, strict=True):
        copies = devices // each
        share = -(-scenario.concurrency // copies)
        alone = replace(scenario, num_devices=each, disaggregate=None, concurrency=share)
        for _ in range(copies):
            yield Pooled(index, reads, index * each, alone)
            index += 1

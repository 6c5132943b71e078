"""What servers are told beside the model: what drafts tokens ahead, pools that read prompts and that write answers, and
the longest request.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...memory.peak import memory
from ...record import dataclass, replace
from ...scenario import Scenario
from ...workload.serving import longest_request
from ..repositories import repository_of

HERE = "127.0.0.1"
HEAD = "HEAD"
"""Stands for a head trained for the model (EAGLE), which a scenario does not name."""


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


def weights_of(scenario: Scenario) -> str | None:
    """The repository of what drafts, beside the model; None where nothing does, or the model itself."""
    if scenario.draft_model is not None:
        return repository_of(scenario.draft_model)
    return HEAD if scenario.draft == "eagle" else None


def draft_notes(scenario: Scenario) -> tuple[str, ...]:
    """Say what the user has to bring, and that what is accepted was not measured."""
    if scenario.draft is None:
        return ()
    share = 100 * (scenario.acceptance or 0)
    taken = f"{share:.0f} % of the drafted tokens were taken to hold: the server tells its own"
    named = (f"put an EAGLE-3 head trained for this model in place of {HEAD}",) if scenario.draft == "eagle" else ()
    return (*named, taken)


def longest_served(scenario: Scenario) -> int:
    """Tokens of the longest request: lengths on average are no limit, unless the server would not start with more.

    A server refuses to start where its cache has no room for one request of that length.
    """
    longest = longest_request(scenario)
    if longest <= (scenario.context or longest):
        return longest
    room = memory(replace(scenario, context=longest)).serving
    return longest if room is None or room.starts else scenario.context or longest

"""The longest request that a server is told to take."""

from __future__ import annotations

from ...memory.peak import memory
from ...record import replace
from ...scenario import Scenario
from ...workload.serving import longest_request


def longest_served(scenario: Scenario) -> int:
    """Tokens of the longest request: lengths on average are no limit, unless the server would not start with more.

    A server refuses to start where its cache has no room for one request of that length.
    """
    longest = longest_request(scenario)
    if longest <= (scenario.context or longest):
        return longest
    room = memory(replace(scenario, context=longest)).serving
    return longest if room is None or room.starts else scenario.context or longest

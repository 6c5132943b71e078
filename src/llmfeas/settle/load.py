"""The load on a server: how requests come, and what they may wait."""

from __future__ import annotations

from ..scenario import Scenario
from ..workload.serving import replicas
from .draft import Draft

TARGETS = {"ttft": "ttft_seconds", "tpot": "tpot_seconds"}


def settle_load(draft: Draft) -> None:
    """Settle `rate`, `requests`, `length_spread`, `prefix_hit` and the targets."""
    for name in ("rate", "requests"):
        draft.settle(name, None)
    for name in ("length_spread", "prefix_hit"):
        draft.settle(name, 0.0)
    for name, field in TARGETS.items():
        draft.settle(name, field=field)


def widen_server(scenario: Scenario, draft: Draft) -> None:
    """Have a server run as many requests at once as are asked for, where nobody says how many it may.

    Of a number of requests those wait for which it has no place, as in a benchmark of a server with its own defaults.
    """
    if scenario.requests is not None:
        return
    asked, tokens = -(-draft.values["concurrency"] // replicas(scenario)), scenario.max_num_batched_tokens or 0
    if scenario.was_given("max_num_batched_tokens"):
        asked = min(asked, tokens)
    if scenario.max_num_seqs is not None and not scenario.was_given("max_num_seqs") and asked > scenario.max_num_seqs:
        draft.override("max_num_seqs", asked, "derived")
        if asked > tokens:  # a pass has a token for each
            draft.override("max_num_batched_tokens", asked, "derived")


def settle_uneven(scenario: Scenario, draft: Draft) -> None:
    """Where users ask one request after the other and nobody says how long they are, no two are alike.

    Else all answers would end together and all prompts come together, round after round, as in no server.
    """
    rounds = scenario.requests is not None and not scenario.rate and scenario.requests > draft.values["concurrency"]
    if rounds and not scenario.was_given("length_spread"):
        draft.override("length_spread", scenario.tables.efficiency.value("load.spread"), "derived")

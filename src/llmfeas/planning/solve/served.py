"""Servers asked backwards: the most users or requests a second that keep to the targets, and the fewest devices."""

from __future__ import annotations

from ...catalog.store import Catalog
from ...errors import UsageError
from ...feasibility.result import Estimate
from .answer import FEASIBLE, Answer, Request, estimated, outcome
from .fleet import served
from .settings import SearchedSetting, inverted

ROUNDS = 12
"""Halvings of the logarithm of a rate."""
LITTLE = 1e-3
"""Requests a second at which a server is as good as empty."""
STEP = 1.01
"""What is looked at beyond a rate."""


def max_users(request: Request, catalog: Catalog) -> Answer:
    """The most users, each with one request under way, that keep to the targets.

    Raises:
        UsageError: without a target, or with a rate.
    """
    request = served(request)
    if request.get("ttft") is None and request.get("tpot") is None:
        raise UsageError(
            "missing-option", "solve max-users needs --ttft or --tpot", "For example --ttft 1s --tpot 50ms."
        )
    if request.get("rate") is not None:
        raise UsageError("contradiction", "solve max-users has no --rate", "Ask solve max-rate.")
    return inverted("max-users", SearchedSetting("concurrency", 1, 10**6), request, catalog)


def max_rate(request: Request, catalog: Catalog) -> Answer:
    """The most requests a second that a server keeps up with, and with the targets where there are some.

    Raises:
        UsageError: where a rate is given.
    """
    request = served(request)
    if request.get("rate") is not None:
        raise UsageError("contradiction", "solve max-rate searches --rate", "Leave --rate out.")

    def at(rate: float) -> Estimate | None:
        return estimated({**request, "rate": rate}, catalog)

    best = at(LITTLE)
    if best is None or best.under_load is None or best.verdict.status not in FEASIBLE:
        beyond = {"rate": LITTLE, **outcome({**request, "rate": LITTLE}, catalog)}
        return Answer("max-rate", {"rate": None}, None, beyond)
    low, high = LITTLE, best.under_load().largest_requests_per_second.expected
    for _ in range(ROUNDS):
        middle = (low * high) ** 0.5
        found = at(middle)
        if found is not None and found.verdict.status in FEASIBLE:
            low, best = middle, found
        else:
            high = middle
    more = max(high, low * STEP)
    return Answer("max-rate", {"rate": low}, best, {"rate": more, **outcome({**request, "rate": more}, catalog)})

"""The questions beside one answer, each settled and estimated once, and those of many that cannot be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..catalog.store import Catalog
from ..errors import LlmfeasError, UsageError
from ..feasibility.core import estimate
from ..feasibility.result import Estimate
from ..settle import Resolution, resolution

Request = Mapping[str, object]

REFUSALS = ("impossible-layout", "beyond-positions", "rank-beyond-matrix", "writes-nothing", "no-trainer")
"""Refusals that mean "not with this value, model or device", not "not at all"."""


def skipped(refused: Sequence[UsageError], what: str) -> str:
    """Say how many of many cannot be asked, and why the first of them; `what` they are, in the plural."""
    first = refused[0].message.rstrip(".")
    return f"{len(refused)} of the {what} cannot be asked this and were skipped, such as: {first}"


class Asked:
    """Questions that were asked so far, with what came of them."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._settled: dict[str, Resolution | None] = {}
        self._estimates: dict[str, Estimate] = {}

    def settled(self, request: Request) -> Resolution | None:
        """The settled request; None where it is refused."""
        key = _key(request)
        if key not in self._settled:
            try:
                self._settled[key] = resolution(request, self.catalog)
            except LlmfeasError:
                self._settled[key] = None
        return self._settled[key]

    def estimate(self, request: Request) -> Estimate | None:
        """The answer to a request; None where it is refused."""
        settled, key = self.settled(request), _key(request)
        if settled is not None and key not in self._estimates:
            self._estimates[key] = estimate(settled)
        return self._estimates.get(key)


def _key(request: Request) -> str:
    """What two requests have in common that say the same; their order counts, as warnings come in it."""
    return repr(list(request.items()))

"""The questions beside one answer, each settled and estimated once: uses and ladder ask some of the same."""

from __future__ import annotations

from collections.abc import Mapping

from ..catalog.store import Catalog
from ..errors import LlmfeasError
from ..feasibility.core import estimate
from ..feasibility.result import Estimate
from ..settle import Resolution, resolution

Request = Mapping[str, object]


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

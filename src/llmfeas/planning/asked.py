"""One request with other settings, each settled, counted and estimated once; and those of many that cannot be asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..catalog.store import Catalog
from ..errors import LlmfeasError, UsageError
from ..feasibility.core import estimate
from ..feasibility.result import Estimate
from ..memory.peak import CountedMemory, memory
from ..settle import Resolution, before_layout, resolution

Request = Mapping[str, object]

REFUSALS = ("impossible-layout", "beyond-positions", "rank-beyond-matrix", "writes-nothing", "no-trainer")
"""Refusals that mean "not with this value, model or device", not "not at all"."""


GIVES_WAY = ("tp", "pp", "cp", "zero", "offload", "engine")
"""What a task may refuse: of a request without a task nobody knows which one it was meant for."""


def skipped(refused: Sequence[UsageError], what: str) -> str:
    """Say how many of many cannot be asked, and why the first of them; `what` they are, in the plural."""
    first = refused[0].message.rstrip(".")
    return f"{len(refused)} of the {what} cannot be asked this and were skipped, such as: {first}"


def unless_refused(request: Request, catalog: Catalog, refused: list[UsageError] | None = None) -> Resolution | None:
    """A request settled; None where this value of a setting is refused, with the reason in `refused`.

    Raises:
        UsageError: for anything else that is wrong with the request.
    """
    try:
        return resolution(request, catalog)
    except UsageError as error:
        if error.code not in REFUSALS:
            raise
        if refused is not None:
            refused.append(error)
        return None


class Asked:
    """What came of a request with the settings that were tried, in any order; without a request of whole ones."""

    def __init__(self, catalog: Catalog, request: Request | None = None) -> None:
        self.catalog = catalog
        self.request = request or {}
        self._known: dict[str, Resolution | None] = {}
        self._settled: dict[str, Resolution | None] = {}
        self._counted: dict[Resolution, CountedMemory] = {}
        self._estimates: dict[Resolution, Estimate] = {}

    def known(self, settings: Request) -> Resolution | None:
        """The request with these settings before its layout is settled; None where it is refused."""
        return self._asked(self._known, before_layout, settings)

    def settled(self, settings: Request) -> Resolution | None:
        """The request with these settings, settled; None where it is refused."""
        return self._asked(self._settled, resolution, settings)

    def _asked(
        self, found: dict[str, Resolution | None], settle: Callable[[Request, Catalog], Resolution], settings: Request
    ) -> Resolution | None:
        key = repr(sorted(settings.items()))
        if key not in found:
            try:
                found[key] = settle({**self.request, **settings}, self.catalog)
            except LlmfeasError:
                found[key] = None
        return found[key]

    def counted(self, settled: Resolution) -> CountedMemory:
        """The memory of a question."""
        if settled not in self._counted:
            self._counted[settled] = memory(settled.scenario)
        return self._counted[settled]

    def estimated(self, settled: Resolution) -> Estimate:
        """The answer to a question."""
        if settled not in self._estimates:
            self._estimates[settled] = estimate(settled, self._counted.get(settled))
        return self._estimates[settled]

    def estimate(self, settings: Request) -> Estimate | None:
        """The answer to the request with these settings; None where it is refused."""
        settled = self.settled(settings)
        return None if settled is None else self.estimated(settled)

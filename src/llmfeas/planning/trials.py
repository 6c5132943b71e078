"""Trials of one request with other settings: each is settled, counted and estimated once, in any order of settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..catalog.store import Catalog
from ..errors import LlmfeasError
from ..feasibility.core import estimate
from ..feasibility.result import Estimate
from ..memory.peak import CountedMemory, memory
from ..settle import Resolution, before_layout, resolution

Settings = Mapping[str, object]
Key = tuple[tuple[str, object], ...]


class Trials:
    """One request, and what came of it with the settings that were tried."""

    def __init__(self, request: Settings, catalog: Catalog) -> None:
        self.request = request
        self.catalog = catalog
        self._known: dict[Key, Resolution | None] = {}
        self._settled: dict[Key, Resolution | None] = {}
        self._counted: dict[Resolution, CountedMemory] = {}
        self._estimates: dict[Resolution, Estimate] = {}

    def known(self, settings: Settings) -> Resolution | None:
        """The request with these settings before its layout is settled; None where it is refused."""
        return self._asked(self._known, before_layout, settings)

    def settled(self, settings: Settings) -> Resolution | None:
        """The request with these settings, settled; None where it is refused."""
        return self._asked(self._settled, resolution, settings)

    def _asked(
        self, found: dict[Key, Resolution | None], settle: Callable[[Settings, Catalog], Resolution], settings: Settings
    ) -> Resolution | None:
        key = tuple(sorted(settings.items()))
        if key not in found:
            try:
                found[key] = settle({**self.request, **settings}, self.catalog)
            except LlmfeasError:
                found[key] = None
        return found[key]

    def counted(self, settled: Resolution) -> CountedMemory:
        """The memory of a trial."""
        if settled not in self._counted:
            self._counted[settled] = memory(settled.scenario)
        return self._counted[settled]

    def estimate(self, settled: Resolution) -> Estimate:
        """The answer to a trial."""
        if settled not in self._estimates:
            self._estimates[settled] = estimate(settled, self.counted(settled))
        return self._estimates[settled]

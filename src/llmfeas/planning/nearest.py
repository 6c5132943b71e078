"""What comes nearest where nothing works, and by how much it misses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..estimate.core import estimate
from ..estimate.result import Estimate
from ..record import dataclass
from .change import Axis, together
from .search import Search, expected


@dataclass(frozen=True, slots=True)
class Nearest:
    """The changes that come nearest, and by how much they miss; what leaves nothing to change."""

    changes: Mapping[str, object]
    estimate: Estimate
    emptied_by: tuple[str, ...] = ()
    """The settings to keep without which there would be something to try; empty where there was."""

    @property
    def missing_bytes(self) -> float:
        """Bytes that one device lacks, at least 0."""
        return max(0.0, -self.estimate.memory.headroom_bytes)

    @property
    def missing_seconds(self) -> float | None:
        """Seconds past the deadline, or past what is practical; None where time is no problem."""
        from ..estimate.verdict import IMPRACTICAL_SECONDS

        seconds = expected(self.estimate, "total_seconds")
        if seconds is None or self.estimate.verdict.time not in ("over_deadline", "impractical"):
            return None
        return seconds - (self.estimate.scenario.deadline_seconds or IMPRACTICAL_SECONDS)

    @property
    def missing_usd(self) -> float | None:
        """Money over the budget; None where that is no problem."""
        usd, budget = self.estimate.cost.usd, self.estimate.scenario.budget_usd
        if usd is None or budget is None or self.estimate.verdict.budget != "over_budget":
            return None
        return usd.expected - budget

    def to_dict(self) -> dict[str, object]:
        """Give it for the JSON."""
        return {
            "changes": dict(self.changes),
            "peak_bytes": self.estimate.memory.peak_bytes.expected,
            "usable_bytes": self.estimate.memory.usable_bytes,
            "missing_bytes": self.missing_bytes,
            "missing_seconds": self.missing_seconds,
            "missing_usd": self.missing_usd,
            "emptied_by": list(self.emptied_by),
            "reasons": [reason.message for reason in self.estimate.verdict.reasons],
        }


def nearest(search: Search, axes: Sequence[Axis], kept: Sequence[str]) -> Nearest:
    """Give the trial that came nearest, all that saves memory at once among them.

    `kept` names settings that could change but are to be kept: said where they leave nothing to try.
    """
    for changes in ((), together([axis.alternatives[-1] for axis in axes])):
        search.way(changes, heavy=True)
    search.try_spared()
    settled = search.settled(search.nearest)
    assert settled is not None
    return Nearest(search.settings(search.nearest), estimate(settled), () if axes else tuple(kept))

"""What comes nearest where nothing works, and by how much it misses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..contract import Published, hidden, published
from ..estimate.core import estimate
from ..estimate.result import Estimate
from ..record import dataclass
from .change import Axis, together
from .search import Search


@dataclass(frozen=True, slots=True)
class Nearest(Published):
    """The changes that come nearest, and by how much they miss; what leaves nothing to change."""

    changes: Mapping[str, object]
    estimate: Estimate = hidden()
    emptied_by: tuple[str, ...] = ()
    """The settings to keep without which there would be something to try; empty where there was."""

    @published
    def peak_bytes(self) -> float:
        """The expected peak on one device."""
        return self.estimate.memory.peak_bytes.expected

    @published
    def usable_bytes(self) -> float:
        """What one device lets a process use."""
        return self.estimate.memory.usable_bytes

    @published
    def missing_bytes(self) -> float:
        """Bytes that one device lacks, at least 0."""
        return max(0.0, -self.estimate.memory.headroom_bytes)

    @published
    def missing_seconds(self) -> float | None:
        """Seconds past the deadline, or past what is practical; None where time is no problem."""
        from ..estimate.verdict import IMPRACTICAL_SECONDS

        total = self.estimate.total_seconds
        if total is None or self.estimate.verdict.time not in ("over_deadline", "impractical"):
            return None
        return total.expected - (self.estimate.scenario.deadline_seconds or IMPRACTICAL_SECONDS)

    @published
    def missing_usd(self) -> float | None:
        """Money over the budget; None where that is no problem."""
        usd, budget = self.estimate.cost.usd, self.estimate.scenario.budget_usd
        if usd is None or budget is None or self.estimate.verdict.budget != "over_budget":
            return None
        return usd.expected - budget

    @published
    def reasons(self) -> tuple[str, ...]:
        """Why it does not do."""
        return tuple(reason.message for reason in self.estimate.verdict.reasons)


def nearest(search: Search, axes: Sequence[Axis], kept: Sequence[str]) -> Nearest:
    """The trial that came nearest, all that saves memory at once among them.

    `kept` names settings that could change but are to be kept: said where they leave nothing to try.
    """
    for changes in ((), together([axis.alternatives[-1] for axis in axes])):
        search.way(changes, heavy=True)
    search.try_spared()
    settled = search.settled(search.nearest)
    assert settled is not None
    return Nearest(search.settings(search.nearest), estimate(settled), () if axes else tuple(kept))

"""The way to yes: recipes that make a request feasible, the least change first, then the Pareto front; where nothing
works what comes nearest, and by how much it misses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ..catalog.store import Catalog
from ..contract import Json, Note, Published, envelope, hidden, keys_of, published
from ..errors import UsageError
from ..feasibility.bounds import time_limit_seconds
from ..feasibility.core import estimate
from ..feasibility.inputs import Inputs, inputs, value_and_origin
from ..feasibility.result import Cost, Estimate, Remedy, Verdict
from ..memory.peak import Memory
from ..options import flag_of
from ..record import dataclass
from ..request import canonical, said_in
from ..scenario import Scenario
from ..settle import resolution
from ..timing.inference import InferenceTime
from ..timing.training import TrainingTime
from .changes.axes import axes_of
from .changes.change import Axis, tier_of, together
from .remedies import nearest_ways
from .selection import worth_showing
from .trials import Search
from .way import Way


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
        total = self.estimate.total_seconds
        if total is None or not self.estimate.verdict.takes_too_long:
            return None
        return total.expected - time_limit_seconds(self.estimate.scenario)

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


MOST_CHANGES = 3
EXTRA_TRIES = 300
"""Trials beyond the first way, in search of others that are faster, cheaper or smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing(Published):
    """How what was asked stands."""

    memory: Memory
    time: TrainingTime | InferenceTime
    cost: Cost
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWay(Remedy):
    """A way to yes, with its price and the settings that it comes to."""

    decode_tokens_per_second: float | None
    output_tokens_per_second: float | None
    usd: float | None
    """Expected cost of the job."""
    usd_per_million_tokens: float | None
    estimate: Inputs


@dataclass(frozen=True, slots=True)
class PlanResult(Published):
    """The result of a plan."""

    asked: Standing
    plans: tuple[PlannedWay, ...]
    nearest: Nearest | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked, how that stands, and the ways to yes."""

    requested: Estimate
    ways: tuple[Way, ...]
    nearest: Nearest | None
    ended: bool = False
    """Whether the search left something untried."""

    def __repr__(self) -> str:
        ways = (f"  {dict(way.settings)}: {way.estimate!r}" for way in self.ways)
        return "\n".join([f"<Plan for {self.requested!r}", *ways, ">"])

    @property
    def warnings(self) -> tuple[Note, ...]:
        """What the estimate warns of, and whether the settings to keep leave nothing to try."""
        kept = self.nearest.emptied_by if self.nearest else ()
        if self.ended:
            text = (
                "the search ended before all changes were tried together: what it shows works, but there may be better"
            )
            if not self.ways:
                text = "the search ended before all changes were tried together: there may be a way that it did not see"
            return (*self.requested.warnings, Note("search-ended", f"{text}; --keep names settings not to change"))
        if not kept:
            return self.requested.warnings
        held = ", ".join(flag_of(name) for name in kept)
        empty = Note("empty-search", f"there is nothing left to change: --keep holds {held}")
        return (*self.requested.warnings, empty)

    def to_dict(self) -> Json:
        """The JSON of `llmfeas plan --json`."""
        asked = self.requested
        return envelope("plan", asked.catalog, inputs(asked.scenario), self.result(), self.warnings)

    def result(self) -> PlanResult:
        """The plan as the contract has it."""
        requested = self.requested
        standing = Standing(
            memory=requested.memory, time=requested.time, cost=requested.cost, verdict=requested.verdict
        )
        return PlanResult(standing, tuple(_planned(way) for way in self.ways), self.nearest)


def plan(
    request: Mapping[str, object],
    catalog: Catalog,
    *,
    keep: Collection[str] = (),
    any_device: bool = False,
    shown: int = 8,
) -> Plan:
    """Search for the ways to yes.

    It begins with the remedies of the estimate (`nearest_ways`), in the order of data/changes.yaml; the rest are the
    Pareto front of time, cost and memory among ways of few changes. What surely does needs none; what may just do is
    the only way where none is sure. `keep` pins settings at what they are now, said or not; more of other devices are
    tried with `any_device`.

    Raises:
        UsageError: for unknown names, contradictions, or a setting to keep that does not exist.
    """
    if any_device and "device" in keep:
        raise UsageError("contradiction", "--keep device and --any-device exclude each other", "Give one of them.")
    asked = canonical(request, catalog.tables.quantization)
    requested, request = estimate(resolution(asked, catalog)), said_in(asked)
    as_asked = Way((), {}, dict(asked), requested)
    if requested.verdict.status == "feasible":
        return Plan(requested, (as_asked,), None)
    search = Search({**request, **pins(requested.scenario, request, keep)}, requested.scenario, catalog)
    ways = nearest_ways(search, requested, catalog, keep)
    axes = list(_others(axes_of(requested, catalog, keep, any_device=any_device), ways))
    told = [_values(way) for way in ways]
    found = _found(search, axes)
    ways += [way for way in (worth_showing(found) if found else ()) if _values(way) not in told]
    if not ways and requested.verdict.status == "tight":
        return Plan(requested, (as_asked,), None, search.ended)
    if not ways:
        free = axes_of(requested, catalog, any_device=any_device)
        return Plan(
            requested, (), nearest(search, axes, [axis.name for axis in free if axis.name in keep]), search.ended
        )
    shown_ways = tuple(_as_asked(way, search, request) for way in ways[:shown])
    return Plan(requested, shown_ways, None, search.ended)


def _values(way: Way) -> dict[str, object]:
    """What a way comes to, whatever of it was said."""
    return {name: setting["value"] for name, setting in inputs(way.estimate.scenario).items()}


def _others(axes: Sequence[Axis], ways: Sequence[Way]) -> Iterator[Axis]:
    """What else is tried beside the nearest ways: another task only where those take one, or there are none."""
    for axis in axes:
        kept = axis.alternatives
        if ways:
            last = tier_of(ways[0].estimate.scenario, "task")
            end = max(last, 1 + min(way.tier for way in ways))
            kept = tuple(change for change in kept if change.tier < end)
        if kept:
            yield Axis(axis.name, kept)


def _planned(way: Way) -> PlannedWay:
    cost = way.estimate.cost
    return PlannedWay(
        **{key: getattr(way.remedy, key) for key in keys_of(Remedy)},
        usd=cost.usd.expected if cost.usd else None,
        usd_per_million_tokens=None if way.total_seconds is not None else cost.usd_per_million_tokens,
        estimate=inputs(way.estimate.scenario),
    )


def pins(scenario: Scenario, request: Mapping[str, object], keep: Collection[str]) -> dict[str, dict[str, object]]:
    """The settings to keep that the request leaves open, at what they are now, with where that comes from."""
    unsaid = [name for name in keep if name not in ("model", "device", "network") and request.get(name) is None]
    current = {name: value_and_origin(scenario, name) for name in unsaid}
    return {name: {"value": value, "origin": origin} for name, (value, origin) in current.items() if value is not None}


def _found(search: Search, axes: Sequence[Axis]) -> list[Way]:
    """Ways of the fewest changes that do, and some of one change more."""
    ways: list[Way] = []
    for count in range(1, MOST_CHANGES + 1):
        if ways and count > len(ways[0].changes) + 1:
            break
        for way in search.ways(axes, count):
            if not ways:
                limit = search.tries + EXTRA_TRIES
            ways.append(way)
            if search.tries > limit and count > len(ways[0].changes):
                return ways
    return ways


def _as_asked(way: Way, search: Search, request: Mapping[str, object]) -> Way:
    """Add to a way's changes the pins without which it would not give what it promises."""
    pinned = {
        name: held["value"]
        for name, held in search.request.items()
        if request.get(name) is None and isinstance(held, Mapping)
    }
    if not pinned:
        return way
    free = estimate(resolution({**request, **way.settings}, search.catalog)).scenario
    kept = {
        name: value
        for name, value in pinned.items()
        if name not in way.settings and value_and_origin(free, name)[0] != value
    }
    return Way(way.changes, {**way.settings, **kept}, way.request, way.estimate, way.asked_engine)

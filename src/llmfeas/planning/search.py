"""The search for ways to yes: combinations of changes, the fewest first, each one estimated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

from ..catalog.store import Catalog
from ..errors import LlmfeasError
from ..estimate.core import estimate
from ..estimate.memory import memory, peak_bytes
from ..estimate.resolve import Resolution, hardware_named, resolution
from ..estimate.result import Estimate
from ..estimate.software import software_support
from ..estimate.usable_memory import usable_bytes
from ..record import dataclass
from ..scenario import Scenario
from .bisection import largest
from .bounds import (
    least_bytes,
    least_host_bytes,
    least_machine_bytes,
    least_seconds,
    most_bytes,
    most_host_bytes,
    most_machine_bytes,
    most_seconds,
)
from .change import Axis, Change, Changes, clash, picked, settings_of
from .serving_changes import host_pain

FEASIBLE = ("feasible", "tight")
TIGHT = 0.9
"""Pain of memory that may run out: a milder change that is tight comes before the next harsher one."""
MOST_SPARED = 16
"""Spared trials that are tried after all to tell what comes nearest."""
STAYING = ("weights_bytes", "gradients_bytes", "optimizer_bytes", "logits_bytes")
"""What of a step stays on the device when activations wait on the host."""
ROOMY = 0.6
"""Share of the memory that a floor takes below which a combination is tried without asking first."""
HOPELESS = 1e6
"""Miss of what the software cannot do: worse than any lack of memory."""


@dataclass(frozen=True, slots=True)
class Way:
    """A set of changes that makes the request feasible, with the estimate that proves it."""

    changes: Changes
    settings: Mapping[str, object]
    request: Mapping[str, object]
    estimate: Estimate

    @property
    def total_seconds(self) -> float | None:
        """Expected seconds of the whole job; None in inference."""
        return expected(self.estimate, "total_seconds")

    @property
    def slowness(self) -> float:
        """Seconds of the whole job; in inference of one generated token."""
        seconds = self.total_seconds
        return 1 / (expected(self.estimate, "decode_tokens_per_second") or 1e-9) if seconds is None else seconds

    @property
    def usd(self) -> float | None:
        """Expected cost: of the job, in inference of a million tokens; None where no price is known."""
        cost = self.estimate.cost
        return cost.usd.expected if cost.usd else cost.usd_per_million_tokens

    @property
    def pain(self) -> float:
        """Add up what the changes hurt; running out of memory now and then hurts too."""
        tight = self.estimate.verdict.status == "tight"
        return sum(change.pain for change in self.changes) + (TIGHT if tight else 0.0)

    def to_dict(self) -> dict[str, object]:
        """Give the way as a remedy of the contract."""
        return {
            "changes": dict(self.settings),
            "status": self.estimate.verdict.status,
            "peak_bytes": self.estimate.memory.peak_bytes.expected,
            "total_seconds": self.total_seconds,
            "decode_tokens_per_second": expected(self.estimate, "decode_tokens_per_second"),
            "message": "; ".join(change.gives_up for change in self.changes),
        }


def expected(found: Estimate, name: str) -> float | None:
    """Give the expected value of a range in an estimate's time."""
    value = found.time.get(name)
    return float(value["expected"]) if isinstance(value, dict) else None


def miss(found: Estimate) -> float:
    """Say how far an estimate is from feasible: the largest of needed over allowed; at most 1 where it is."""
    verdict, scenario, peak = found.verdict, found.scenario, found.memory.peak_bytes.expected
    shares = [peak / found.memory.usable_bytes]
    on_host = found.memory.host_bytes * min(scenario.num_devices, scenario.devices_per_node)
    shares.append(on_host / scenario.host_memory_bytes)
    seconds, usd = expected(found, "total_seconds"), found.cost.usd
    if verdict.time in ("over_deadline", "impractical") and seconds is not None:
        from ..estimate.verdict import IMPRACTICAL_SECONDS

        shares.append(seconds / (scenario.deadline_seconds or IMPRACTICAL_SECONDS))
    if verdict.budget == "over_budget" and usd is not None and scenario.budget_usd is not None:
        shares.append(usd.expected / scenario.budget_usd)
    return max(shares) + (HOPELESS if verdict.software == "unsupported" else 0.0)


class Search:
    """One request and the trials made on it; remembers which trial came nearest."""

    def __init__(self, request: Mapping[str, object], asked: Scenario, catalog: Catalog) -> None:
        hardware = hardware_named(str(request["device"]), catalog)
        self.request = request
        self.asked = asked
        self.catalog = catalog
        self.counted = hardware.count is not None and hardware.offer is None
        self.tries = 0
        self.nearest: Changes = ()
        self._least = (float("inf"), 0)
        self._spared: list[tuple[float, Changes]] = []
        """Trials whose floor is above what there is, and by how much."""
        self._floors: dict[tuple[int, ...], tuple[float, Changes]] = {}
        self._shares: dict[int, float] = {}
        self._bare: dict[int, float] = {}
        """The share of memory that a change was seen to take alone on one device, less what waits on the host."""

    def settings(self, changes: Changes) -> dict[str, object]:
        """Give what the changes set, without a device that is the one that was asked for."""
        found = settings_of(changes)
        if not self.counted and found.get("device") == self.asked.device.id:
            del found["device"]
        return found

    def settled(self, changes: Changes) -> Resolution | None:
        """Settle the request with the changes; None where it is refused."""
        self.tries += 1
        try:
            return resolution({**self.request, **self.settings(changes)}, self.catalog)
        except LlmfeasError:
            return None

    def note(self, changes: Changes, far: float) -> None:
        """Remember the trial that misses by least; with as good ones the one of fewer changes."""
        score = (round(far, 3), len(changes))
        if score < self._least:
            self._least, self.nearest = score, changes

    def may_fit(self, axes: Sequence[Axis]) -> bool:
        """Tell whether memory could do if each axis took what saves most: alone, or its harshest alternative."""
        harshest = picked(axes, lambda changes: changes[-1])
        if harshest is None:
            return False
        if self._may_fit(harshest):
            return True
        leanest = picked(axes, lambda changes: min(reversed(changes), key=self._alone))
        return leanest is not None and leanest != harshest and self._may_fit(leanest)

    def _alone(self, change: Change) -> float:
        """Give the share of memory that a change was seen to take alone, or takes at least; unknown is worst."""
        return self._shares.get(id(change), float("inf"))

    def _may_fit(self, changes: Changes) -> bool:
        """Tell whether memory does; where the changes are refused, or hopeless for other reasons, perhaps."""
        settings = settings_of(changes)
        share = least_bytes(settings, self.asked) / most_bytes(settings, self.asked, self.catalog)
        if share > 1:
            return False
        if 0 < share < ROOMY:
            return True
        if self.hopeless(changes):
            return True
        found = self.settled(changes)
        if found is None:
            return True
        share = peak_bytes(found.scenario).expected / usable_bytes(found.scenario)
        if share > 1:
            self.note(changes, share + self._unsupported(found))
        return share <= 1

    def _unsupported(self, found: Resolution) -> float:
        return HOPELESS if software_support(found.scenario, found.backend)[0] == "unsupported" else 0.0

    def way(self, changes: Changes, *, heavy: bool = False) -> Way | None:
        """Try one set of changes, hopeless ones only if `heavy`; None where it is refused or still not feasible."""
        if (not heavy and self.hopeless(changes)) or clash(changes):
            return None
        settled = self.settled(changes)
        if settled is None:
            return None
        hopeless = self._unsupported(settled)
        counted, usable = memory(settled.scenario).memory, usable_bytes(settled.scenario)
        share = counted.peak_bytes.expected / usable
        if len(changes) == 1:
            self._shares[id(changes[0])] = share
            if settled.scenario.is_training and settled.scenario.num_devices == 1:
                self._bare[id(changes[0])] = sum(counted.components[name] for name in STAYING) / usable
        if hopeless or share > 1:
            self.note(changes, share + hopeless)
            return None
        found = estimate(settled)
        unpriced = found.scenario.budget_usd is not None and found.scenario.is_training and found.cost.usd is None
        if unpriced and changes:
            return None
        if found.verdict.status not in FEASIBLE:
            self.note(changes, miss(found))
            return None
        settings = self.settings(changes)
        return Way(changes, settings, {**self.request, **settings}, found)

    def hopeless(self, changes: Changes) -> bool:
        """Tell whether weights and states alone are more than devices or host hold, or the products of the weights
        alone take too long: spares the walk.
        """
        key = tuple(map(id, changes))
        far, _ = self._floors.get(key, (0.0, None))
        if key not in self._floors:
            settings, asked, catalog = settings_of(changes), self.asked, self.catalog
            share = least_bytes(settings, asked) / most_bytes(settings, asked, catalog)
            if len(changes) == 1:
                self._shares[key[0]] = share
            far = max(
                share,
                least_host_bytes(settings, asked, catalog) / most_host_bytes(settings, asked, catalog),
                least_machine_bytes(settings, asked, catalog) / most_machine_bytes(settings, asked, catalog),
                least_seconds(settings, asked, catalog) / most_seconds(asked),
            )
            if len(changes) == 2 and settings.get("offload") == "activations":
                far = max(far, *(self._bare.get(one, 0.0) for one in key))
            # RankState, so that no other change comes to have its id.
            self._floors[key] = far, changes
            if far > 1:
                self._spared.append((far, changes))
        return far > 1

    def try_spared(self) -> None:
        """Try what was spared as long as it could come nearer than the nearest, the lightest first."""
        spared = sorted(self._spared, key=lambda one: (one[0], len(one[1])))
        for far, changes in spared[:MOST_SPARED]:
            if far > self._least[0]:
                break
            self.way(changes, heavy=True)

    def refined(self, way: Way) -> Way:
        """Keep as many layers on the device as work, where a way moves some to the host."""
        place = next((at for at, change in enumerate(way.changes) if "gpu_layers" in change.settings), None)
        if place is None:
            return way
        change, whole = way.changes[place], way.estimate.scenario.model.architecture.layers

        def at(layers: int) -> Changes:
            moved = Change({**change.settings, "gpu_layers": layers}, change.gives_up, host_pain(layers, whole))
            return (*way.changes[:place], moved, *way.changes[place + 1 :])

        def holds(layers: int) -> bool:
            found = self.way(at(layers))
            return found is not None and found.estimate.verdict.status == way.estimate.verdict.status

        most = largest(holds, int(str(change.settings["gpu_layers"])), whole)
        return way if most is None else self.way(at(most)) or way

    def ways(self, axes: Sequence[Axis], count: int) -> Iterator[Way]:
        """Yield ways of so many changes; at most one alternative of each axis.

        Alternatives go from mild to harsh: in the last axis of a combination those behind the first one that is
        feasible are not tried. Combinations whose memory cannot do even at its least are left out.
        """
        for chosen in combinations(axes, count):
            if count == 1 or self.may_fit(chosen):
                yield from self.among(chosen)

    def among(self, chosen: Sequence[Axis]) -> Iterator[Way]:
        """Yield the ways that take one alternative of each of these axes."""
        *outer, last = chosen
        for before in product(*(axis.alternatives for axis in outer)):
            for change in last.alternatives:
                found = self.way((*before, change))
                if found is not None:
                    yield self.refined(found)
                    if found.estimate.verdict.status == "feasible":
                        break

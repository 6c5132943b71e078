"""The search for ways to yes: combinations of changes, the fewest first, each one estimated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

from ..catalog.store import Catalog
from ..feasibility.bounds import Bounds, least_miss, time_limit_seconds
from ..feasibility.cost import least_rent_usd
from ..feasibility.load_verdict import is_followed
from ..feasibility.result import Estimate
from ..feasibility.software import software_support
from ..memory.peak import on_machine_bytes
from ..record import replace
from ..request import parsed
from ..scenario import Scenario
from ..settle import Resolution, hardware_named
from .asked import Asked
from .bisection import largest
from .changes.change import AUTO, Axis, Change, Changes, changes_format, clash, picked, settings_of
from .changes.hardware import devices_text
from .changes.serving import layers_change
from .way import Way
from .writable import is_written

MOST_WORK = 3000
"""Work of a search, about half a millisecond each; what is not tried by then is left out, and said."""
LOAD_WORK = 20
RANGES_WORK = 60
"""What following a load counts for, and what its ranges do on top."""
MOST_SPARED = 16
"""Spared trials that are tried after all to tell what comes nearest."""
STAYING = ("weights_bytes", "gradients_bytes", "optimizer_bytes", "logits_bytes")
"""What of a step stays on the device when activations wait on the host."""
OF_HARDWARE = ("device", "num_devices", "memory", "wired_limit", "host_memory")
ROOMY = 0.6
"""Share of the memory that a floor takes below which a combination is tried without asking first."""
HOPELESS = 1e6
"""Miss of what the software cannot do: worse than any lack of memory."""


def miss(estimated: Estimate) -> float:
    """Say how far an estimate is from feasible: the largest of needed over allowed; at most 1 where it is."""
    verdict, scenario, peak = estimated.verdict, estimated.scenario, estimated.memory.peak_bytes.expected
    shares = [peak / max(estimated.memory.usable_bytes, 1.0)]
    shares.append(on_machine_bytes(scenario, estimated.memory) / scenario.host_memory_bytes)
    total, usd = estimated.total_seconds, estimated.cost.usd
    if verdict.takes_too_long and total is not None:
        shares.append(total.expected / time_limit_seconds(scenario))
    if verdict.budget == "over_budget" and usd is not None and scenario.budget_usd is not None:
        shares.append(usd.expected / scenario.budget_usd)
    return max(shares) + (HOPELESS if verdict.software == "unsupported" else 0.0)


def payable(estimated: Estimate, requested: Scenario) -> bool:
    """Whether a job is known to keep to its budget, on devices that were not asked for with their whole first hour."""
    scenario, budget = estimated.scenario, estimated.scenario.budget_usd
    other = (scenario.device.id, scenario.num_devices) != (requested.device.id, requested.num_devices)
    return budget is None or (estimated.cost.usd is not None and not (other and least_rent_usd(scenario) > budget))


class Search:
    """One request and the trials made on it; remembers which trial came nearest."""

    def __init__(self, request: Mapping[str, object], requested: Scenario, catalog: Catalog) -> None:
        hardware = hardware_named(str(parsed(request, catalog.tables.quantization)["device"]), catalog)
        self.request = request
        self.requested = requested
        self.surely = False
        """Whether only what surely does is a way: where what was asked may just do."""
        self.catalog = catalog
        self.trials = Asked(catalog, request)
        self.counted = hardware.count is not None and hardware.offer is None
        self.tries = 0
        self.work = 0
        """Questions settled, layouts weighed and loads followed; the same whatever was known before."""
        self.most_work = MOST_WORK
        self.ended = False
        """Whether something was left untried because that was enough work."""
        self.nearest: Changes = ()
        self._least = (float("inf"), 0)
        self._spared: list[tuple[float, Changes]] = []
        """Trials whose floor is above what there is, and by how much."""
        self._late: list[tuple[float, Changes]] = []
        """Trials that no layout ends in time or within the budget, and by how much at least."""
        self._floors: dict[Changes, float] = {}
        self._rooms: dict[tuple[object, ...], tuple[float, float, float]] = {}
        self._shares: dict[Change, float] = {}
        self._bare: dict[Change, float] = {}
        """The share of memory that a change was seen to take alone on one device, less what waits on the host."""

    def settings(self, changes: Changes) -> dict[str, object]:
        """What the changes set, without the device that was asked for, and without `auto` for what nobody said."""
        said = self.request.keys()
        combined = {name: value for name, value in settings_of(changes).items() if value != AUTO or name in said}
        if not self.counted and combined.get("device") == self.requested.device.id:
            del combined["device"]
        return combined

    def settled(self, changes: Changes) -> Resolution | None:
        """Settle the request with the changes; None where it is refused."""
        self.tries += 1
        found = self.trials.settled(self.settings(changes))
        self.work += 1 if found is None else 1 + found.work
        return found

    def runs(self, changes: Changes) -> bool:
        """Whether software runs the request with the changes, something writes them, and some layout could keep to the
        limits, which is known before one is chosen; not if refused.
        """
        settings = self.settings(changes)
        known = self.trials.known(settings)
        if known is None or self._unsupported(known) or not (not changes or is_written(known.scenario, settings)):
            self.work += 1
            return False
        far = least_miss(known.scenario)
        if far > 1:
            self.work += 1
            self._late.append((far, changes))
        return far <= 1

    def note(self, changes: Changes, far: float) -> None:
        """Remember the trial that misses by least; with as good ones the one of fewer changes."""
        score = (round(far, 3), len(changes))
        if score < self._least:
            self._least, self.nearest = score, changes

    def may_fit(self, axes: Sequence[Axis]) -> bool:
        """Whether memory could do if each axis took what saves most: alone, or its harshest alternative."""
        harshest = picked(axes, lambda changes: changes[-1])
        if harshest is None:
            return False
        if self._may_fit(harshest):
            return True
        leanest = picked(axes, lambda changes: min(reversed(changes), key=self._alone))
        return leanest is not None and leanest != harshest and self._may_fit(leanest)

    def _alone(self, change: Change) -> float:
        """The share of memory that a change was seen to take alone, or takes at least; unknown is worst."""
        return self._shares.get(change, float("inf"))

    def _may_fit(self, changes: Changes) -> bool:
        """Whether memory does; where the changes are refused, or hopeless for other reasons, perhaps."""
        bounds = Bounds(settings_of(changes), self.requested, self.catalog)
        share = bounds.least_device_bytes / self._room(bounds)[0]
        if share > 1:
            return False
        if 0 < share < ROOMY:
            return True
        if self.hopeless(changes):
            return True
        settled = self.settled(changes)
        if settled is None:
            return True
        tried = self.trials.counted(settled).memory
        share = tried.peak_bytes.expected / max(tried.usable_bytes, 1.0)
        if share > 1:
            self.note(changes, share + self._unsupported(settled))
        return share <= 1

    def _unsupported(self, settled: Resolution) -> float:
        return HOPELESS if software_support(settled.scenario, settled.backend)[0] == "unsupported" else 0.0

    @property
    def spent(self) -> bool:
        """Whether no work is left; whoever asks has something to try yet."""
        spent = self.work >= self.most_work
        self.ended = self.ended or spent
        return spent

    def way(self, changes: Changes, *, heavy: bool = False) -> Way | None:
        """Try one set of changes, hopeless ones only if `heavy`; None where it is refused or still not feasible."""
        if clash(changes):
            return None
        if not heavy and (self.hopeless(changes) or self.spent or not self.runs(changes)):
            return None
        settled = self.settled(changes)
        if settled is None or (changes and not is_written(settled.scenario, self.settings(changes))):
            return None
        hopeless = self._unsupported(settled)
        counted = self.trials.counted(settled)
        usable = max(counted.memory.usable_bytes, 1.0)
        share = counted.memory.peak_bytes.expected / usable
        if len(changes) == 1:
            self._shares[changes[0]] = share
            if settled.scenario.is_training and settled.scenario.num_devices == 1:
                self._bare[changes[0]] = sum(counted.memory.components[name] for name in STAYING) / usable
        if hopeless or share > 1 or changes_format(settled.scenario, self.requested, changes):
            self.note(changes, share + hopeless)
            return None
        if is_followed(settled.scenario):
            from ..timing.served import keeps_up

            self.work += LOAD_WORK
            if not keeps_up(settled.scenario):
                self.note(changes, share)
                return None
            self.work += RANGES_WORK
        estimated = self.trials.estimated(settled)
        if changes and estimated.total_seconds is not None and not payable(estimated, self.requested):
            return None
        if not estimated.verdict.works(surely=self.surely and bool(changes)):
            self.note(changes, miss(estimated))
            return None
        settings = self.settings(changes)
        return Way(changes, settings, {**self.request, **settings}, estimated, self.requested.engine)

    def hopeless(self, changes: Changes) -> bool:
        """Whether weights and states alone are more than devices or host hold, or the products of the weights
        alone take too long or cost too much: spares the walk.
        """
        far = self._floors.get(changes)
        if far is None:
            settings, requested = settings_of(changes), self.requested
            bounds = Bounds(settings, requested, self.catalog)
            device, host, machine = self._room(bounds)
            share = bounds.least_device_bytes / device
            if len(changes) == 1:
                self._shares[changes[0]] = share
            far = max(
                share,
                bounds.least_host_bytes / host,
                bounds.least_machine_bytes / machine,
                bounds.least_seconds / time_limit_seconds(requested),
                bounds.least_usd / (requested.budget_usd or math.inf),
            )
            if len(changes) == 2 and settings.get("offload") == "activations":
                far = max(far, *(self._bare.get(one, 0.0) for one in changes))
            self._floors[changes] = far
            if far > 1:
                self._spared.append((far, changes))
        return far > 1

    def _room(self, bounds: Bounds) -> tuple[float, float, float]:
        """Ceilings for what a device, its host, and both in one machine hold together, once for each hardware."""
        key = tuple(bounds.settings.get(name) for name in OF_HARDWARE)
        found = self._rooms.get(key)
        if found is None:
            found = bounds.most_device_bytes, bounds.most_host_bytes, bounds.most_machine_bytes
            self._rooms[key] = found
        return found

    def try_spared(self) -> None:
        """Try what was spared as long as it could come nearer than the nearest, the lightest first."""
        spared = sorted(self._spared, key=lambda one: (one[0], len(one[1])))
        for far, changes in spared[:MOST_SPARED]:
            if far > self._least[0]:
                break
            self.way(changes, heavy=True)
        for far, changes in sorted(self._late, key=lambda one: (one[0], len(one[1]))):
            if far > self._least[0] or self.spent:
                break
            self.way(changes, heavy=True)

    def refined(self, way: Way) -> Way:
        """Keep as many layers on the device as work, where a way moves some to the host; take no twice as many machines
        where fewer train it.
        """
        return self._fewer_machines(self._more_layers(way))

    def _fewer_machines(self, way: Way) -> Way:
        """The way with three, five or seven eighths of the devices that it doubled a cluster to, where they do."""
        scenario = way.estimate.scenario
        place = next((at for at, change in enumerate(way.changes) if "num_devices" in change.settings), None)
        eighth = scenario.num_devices // 8
        if place is None or not scenario.is_training or eighth % scenario.devices_per_node or not eighth:
            return way
        change, node = way.changes[place], scenario.devices_per_node
        whole = devices_text(8 * eighth, node)

        def at(eighths: int) -> Way | None:
            count = eighths * eighth
            text = change.gives_up.replace(whole, devices_text(count, node))
            fewer = replace(change, settings={**change.settings, "num_devices": count}, gives_up=text)
            tried = self.way((*way.changes[:place], fewer, *way.changes[place + 1 :]))
            return tried if tried and tried.estimate.verdict.status == way.estimate.verdict.status else None

        work, half_as_many_more = self.work, at(6)
        best = at(5) or half_as_many_more if half_as_many_more else at(7) or way
        self.work = work  # a way that was found is not one more that is looked for
        return best

    def _more_layers(self, way: Way) -> Way:
        place = next((at for at, change in enumerate(way.changes) if "gpu_layers" in change.settings), None)
        if place is None:
            return way
        change, whole = way.changes[place], way.estimate.scenario.model.architecture.layers

        def at(layers: int) -> Changes:
            moved = layers_change(self.requested, layers, change.settings)
            return (*way.changes[:place], moved, *way.changes[place + 1 :])

        def holds(layers: int) -> bool:
            tried = self.way(at(layers))
            return tried is not None and tried.estimate.verdict.status == way.estimate.verdict.status

        most = largest(holds, int(str(change.settings["gpu_layers"])), whole)
        return way if most is None else self.way(at(most)) or way

    def ways(self, axes: Sequence[Axis], count: int) -> Iterator[Way]:
        """Yield ways of so many changes; at most one alternative of each axis.

        Alternatives go from mild to harsh: in the last axis of a combination those behind the first one that is
        feasible are not tried. Combinations whose memory cannot do even at its least are left out.
        """
        for chosen in combinations(axes, count):
            if self.spent:
                return
            if count == 1 or self.may_fit(chosen):
                yield from self.among(chosen)

    def among(self, chosen: Sequence[Axis]) -> Iterator[Way]:
        """Yield the ways that take one alternative of each of these axes."""
        *outer, last = chosen
        for before in product(*(axis.alternatives for axis in outer)):
            if self.spent:
                return
            for change in last.alternatives:
                way = self.way((*before, change))
                if way is not None:
                    yield self.refined(way)
                    if way.estimate.verdict.status == "feasible":
                        break

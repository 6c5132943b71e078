"""Servers that keep up with their requests and with targets, the cheapest first.

Best first: what costs at least so much waits until nothing can cost less. A lot (devices at a price) becomes formats, a
format layouts of one copy, a layout as many copies as its fullest batches take, then as many as the load asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from heapq import heappop, heappush
from itertools import count
from typing import get_args

from ...catalog.device import Device
from ...catalog.quantization import NarrowUnit
from ...catalog.store import Catalog
from ...errors import UsageError
from ...feasibility.bounds import STORED, Bounds
from ...feasibility.result import Estimate
from ...feasibility.served_load import judged_servers
from ...load.batch import Batch
from ...load.requests import Arrivals, Lengths
from ...load.server import Server
from ...load.targets import Targets, fewest_replicas, least_rate, least_replicas
from ...model.sums import architecture_sums
from ...record import dataclass, replace
from ...scenario import Scenario
from ...settle import hardware_named, resolution
from ...settle.copies import shared_experts
from ...settle.valid_layout import tensor_parallel_sizes
from ...timing.served import arrivals_of, server_of
from ...timing.serving_floor import most_flop_per_s, widest_flop_per_s
from ...workload.lengths import lengths_of
from ..asked import REFUSALS
from ..changes.change import AUTO
from ..changes.serving import quant_changes, width
from .answer import Request, estimated, without

MOST = 16384
MOST_RANKS = MOST_STAGES = 16
SHARED = 0
"""In place of a tensor-parallel size: the devices of a machine attend each by itself and share the experts."""
LIMITS = ("rate", "ttft", "tpot")
LEAST_BITS = 4
"""Formats of fewer bits are no server's choice."""
MANY = 64
"""Requests at once for which an engine is taken where they come at a rate."""
SURE = 0.9
"""The rate of one device's fullest batches bounds that of a layout with so much to spare."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lot:
    """Devices that are had at a price of each, so many at once."""

    device: str
    """What one of them is."""
    settings: Mapping[str, object]
    """What they are asked as: device or offer, and price."""
    usd_per_device_hour: float = 1.0
    together: int = 1
    """They come in multiples of this."""
    within: int = MOST
    """Devices that one copy of the model may lie on."""
    count: int | None = None
    """How many there are to be, where that was said."""

    def whole(self, devices: float) -> int:
        """So many devices, rounded up to what is lent together."""
        return int(-(-devices // self.together) * self.together)

    def takes(self, copy: int) -> bool:
        """Whether copies of the model on so many devices each fill what is lent together, or are filled by it."""
        return copy <= self.within and (copy % self.together == 0 or self.together % copy == 0)

    def usd_per_hour(self, devices: float) -> float:
        """What an hour costs."""
        return self.whole(self.count or devices) * self.usd_per_device_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """So many devices of a lot that do, as they were asked for."""

    lot: Lot
    count: int
    copy: int
    """Devices of one copy of the model."""
    asked: Request
    estimate: Estimate
    gives_up: str = ""
    """What a format of fewer bits does, where it is not the published one."""

    @property
    def usd_per_hour(self) -> float:
        """The rent of all devices."""
        return self.lot.usd_per_hour(self.count)


class DeviceFormat:
    """A device in one format, and what is known of it: equal devices of several lots are followed once."""

    def __init__(
        self, rank: int, request: Request, gives_up: str, scenario: Scenario, catalog: Catalog, *, sure: bool = False
    ) -> None:
        self.rank = rank
        self.sure = sure
        """Whether the pessimistic ends of what users wait are to keep to the targets too."""
        self.request = request
        self.gives_up = gives_up
        self.scenario = scenario
        """On one device."""
        self._catalog = catalog
        self._layouts: dict[int, ModelCopy | None] = {}

    @cached_property
    def devices(self) -> float:
        """How many it takes at least: for weights, and the rate if each did as much as one with room for any batch."""
        scenario = self.scenario
        for_weights = Bounds({"quant": scenario.quant}, scenario).least_device_bytes / scenario.memory_bytes
        server = replace(server_of(scenario), kv_pool_tokens=float("inf"), replicas=1)
        lengths, arrivals, targets = load_of(scenario)
        most = Batch(server, lengths).most.rate
        return max(1.0, for_weights, SURE * least_rate(arrivals, lengths, targets) / most)

    def sizes(self) -> list[int]:
        """Tensor-parallel sizes to try: powers of two in a machine, or the one that was said; last SHARED."""
        if self.request.get("tp") is not None:
            return [int(str(self.request["tp"]))]
        most = min(self.scenario.devices_per_node, MOST_RANKS)
        sizes = tensor_parallel_sizes(self.scenario.model.architecture, most)
        said = self.request.get("pp") or self.request.get("ep")
        shared = shared_experts(self.scenario, most) if said is None else None
        return [*(size for size in sizes if not size & (size - 1)), *([SHARED] if shared else [])]

    def layout(self, tp: int) -> ModelCopy | None:
        """One copy of the model with the fewest stages that fit; None where none do."""
        if tp not in self._layouts:
            self._layouts[tp] = next(self.layouts(tp, (tp or MOST_RANKS) * MOST_STAGES), None)
        return self._layouts[tp]

    def layouts(self, tp: int, most: int) -> Iterator[ModelCopy]:
        """Yield one copy of the model on at most so many devices, the fewest stages first."""
        for shape in self._shapes(tp, most):
            asked = {**self.request, **shape}
            found = alone(asked, self._catalog)
            if found is not None and found.verdict.works(surely=self.sure):
                yield ModelCopy(asked, self._catalog, sure=self.sure)

    def _shapes(self, tp: int, most: int) -> Iterator[dict[str, object]]:
        if tp == SHARED:
            devices = min(self.scenario.devices_per_node, MOST_RANKS, most)
            if shared := shared_experts(self.scenario, devices):
                yield {**shared, "num_devices": devices}
            return
        said = self.request.get("pp")
        for stages in (1, 2, 4, 8, MOST_STAGES) if said is None else (int(str(said)),):
            if stages <= MOST_STAGES and tp * stages <= most:
                yield {"tp": tp, "pp": stages, "num_devices": tp * stages}


class ModelCopy:
    """One copy of the model, and how many of them keep to rate and targets."""

    def __init__(self, request: Request, catalog: Catalog, *, sure: bool) -> None:
        self.request = request
        self.sure = sure
        self.devices = int(str(request["num_devices"]))
        self._catalog = catalog
        self._copies: dict[int, tuple[int, float] | None] = {}

    @cached_property
    def _scenario(self) -> Scenario | None:
        return settled(self.request, self._catalog)

    @cached_property
    def least(self) -> int | None:
        """A floor for the copies, from mean figures of their batches; None where a single request misses a target."""
        if self._scenario is None:
            return None
        lengths, arrivals, _ = load_of(self._scenario)
        floors = [least_replicas(server, lengths, arrivals, targets) for server, targets in self._judged]
        known = [floor for floor in floors if floor is not None]
        return max(known) if len(known) == len(floors) else None

    @cached_property
    def _judged(self) -> list[tuple[Server, Targets]]:
        """One replica as a verdict follows it, with the targets that it is to keep: expected, and where it is to be
        sure at the pessimistic ends too.
        """
        assert self._scenario is not None
        found = judged_servers(self._scenario, load_of(self._scenario)[2], sure=self.sure)
        return [(replace(server, replicas=1), targets) for server, targets in found]

    def most(self, devices: int, figure: Figure) -> float:
        """What as many copies take as fill so many devices; 0 where they cannot be asked."""
        scenario = settled({**self.request, "num_devices": devices}, self._catalog)
        if scenario is None:
            return 0.0
        return figure(scenario)

    def copies(self, most: int) -> tuple[int, float] | None:
        """The copies that do, at most so many, and seconds to the first token; None where none do."""
        if most not in self._copies:
            assert self._scenario is not None and self.least is not None
            lengths, arrivals, _ = load_of(self._scenario)
            count: int | None = self.least
            first = math.inf
            for server, targets in self._judged:
                if count is not None:
                    count, load = fewest_replicas(server, lengths, arrivals, targets, max(1, most), count)
                    first = load.ttft_seconds.p95
            self._copies[most] = None if count is None else (count, first)
        return self._copies[most]


@dataclass(frozen=True, slots=True)
class Shared:
    """How a number of devices shares a model: what is asked of them, and the most that they take within targets."""

    layout: Mapping[str, object]
    quant: str
    gives_up: str
    amount: float
    """Users, or requests a second."""


Figure = Callable[[Scenario], float]
"""What a server takes within its targets: users, or requests a second."""


def shares(request: Request, devices: int, figure: Figure, catalog: Catalog) -> list[Shared]:
    """Each format's best layout of so many devices: tensor-parallel size, stages, copies; as published first."""
    found: list[Shared] = []
    for each in formats_of({**request, "concurrency": MANY}, catalog):
        every = (copy for tp in each.sizes() for copy in each.layouts(tp, devices))
        copies = [copy for copy in every if devices % copy.devices == 0]
        tried = [(copy.most(devices, figure), place) for place, copy in enumerate(copies)]
        amount, place = max(tried, default=(0.0, 0))
        if amount:
            layout = {name: copies[place].request.get(name) for name in ("tp", "pp", "ep", "engine")}
            found.append(Shared(layout, each.scenario.quant, each.gives_up, amount))
    return found


def load_of(scenario: Scenario) -> tuple[Lengths, Arrivals, Targets]:
    """What a scenario is asked to serve, and within which times."""
    targets = Targets(ttft_seconds=scenario.ttft_seconds, tpot_seconds=scenario.tpot_seconds)
    return lengths_of(scenario), arrivals_of(scenario), targets


def least_devices(asked: Scenario, device: Device) -> float:
    """How many devices the products of all requests take at least, at the peak of their widest units; infinitely many
    where not even all ranks of a machine read a prompt, or the weights of a token, as soon as a target asks.
    """
    lengths, arrivals, targets = load_of(asked)
    sums, ranks = architecture_sums(asked.model.architecture), min(device.devices_per_node, MOST_RANKS)
    reading, writing = 2 * lengths.computed * sums.active, 2 * lengths.output * (sums.active + sums.head_weights)
    plain = asked.tables.quantization.format("none")
    narrow = widest_flop_per_s(device, get_args(NarrowUnit))
    peak = max(most_flop_per_s(device, asked.precision, plain, integers=True), narrow)
    token = STORED * LEAST_BITS / 8 * sums.active / (device.bandwidth_bytes_per_s * ranks) / asked.tokens_a_step
    if token > (targets.tpot_seconds or math.inf) or reading / peak / ranks > (targets.ttft_seconds or math.inf):
        return math.inf
    return max(1.0, least_rate(arrivals, lengths, targets) * (reading + writing) / peak)


def settled(request: Request, catalog: Catalog) -> Scenario | None:
    """Settle a request; None where this value of a setting is refused."""
    try:
        return resolution(request, catalog).scenario
    except UsageError as error:
        if error.code in REFUSALS:
            return None
        raise


def alone(request: Request, catalog: Catalog) -> Estimate | None:
    """One request on one copy of the model."""
    return estimated({**without(request, *LIMITS), "concurrency": 1}, catalog)


class Fleets:
    """The search for the cheapest fleets of a request: those that may just do too, or only those that surely do."""

    def __init__(self, request: Request, catalog: Catalog, *, sure: bool = False) -> None:
        self.request = request
        self.sure = sure
        self.catalog = catalog
        self.last: Request | None = None
        """The copy of the model that was followed last."""
        self._formats: dict[str, list[DeviceFormat]] = {}
        self._waiting: list[tuple[tuple[float, ...], Callable[[], object] | Fleet]] = []
        self._judged: dict[object, Estimate | None] = {}
        """By layout, device and count; the price changes no verdict."""
        self._asked: Scenario | None = None
        """What was asked, as the first device that can be asked settles it."""
        self._done: set[Lot] = set()
        self._numbers = count()

    def found(self, lots: Iterable[Lot]) -> Iterator[Fleet]:
        """Yield the cheapest fleet of each lot that has one, the cheapest lot first.

        Of equal costs the widest format, then the layout whose first tokens come soonest.
        """
        for lot in lots:
            self._wait(lot.usd_per_hour(1), lot, partial(self._open, lot))
        while self._waiting:
            step = heappop(self._waiting)[1]
            if not isinstance(step, Fleet):
                step()
            elif step.lot not in self._done:
                self._done.add(step.lot)
                yield step

    def _wait(self, usd: float, lot: Lot, step: Callable[[], object] | Fleet, *order: float) -> None:
        """Come back to a step when nothing can cost less than it; those that are only floors before what is sure."""
        if lot not in self._done:
            key = (usd, float(bool(order)), *(order or (0.0, 0.0)), float(next(self._numbers)))
            heappush(self._waiting, (key, step))

    def _open(self, lot: Lot) -> None:
        """Wait for what peaks and bandwidths alone would take."""
        devices = 1.0
        if self._asked is not None:
            devices = least_devices(self._asked, hardware_named(lot.device, self.catalog).device)
        if devices < math.inf:
            self._wait(lot.usd_per_hour(devices), lot, partial(self._read, lot))

    def _read(self, lot: Lot) -> None:
        for each in self._of(lot.device):
            self._asked = self._asked or each.scenario
            self._wait(lot.usd_per_hour(each.devices), lot, partial(self._lay_out, lot, each))

    def _of(self, device: str) -> list[DeviceFormat]:
        if device not in self._formats:
            self._formats[device] = list(formats_of({**self.request, "device": device}, self.catalog, sure=self.sure))
        return self._formats[device]

    def _lay_out(self, lot: Lot, each: DeviceFormat) -> None:
        for tp in each.sizes():
            if tp <= lot.within:
                usd = lot.usd_per_hour(max(tp, each.devices))
                self._wait(usd, lot, partial(self._fit, lot, each, tp))

    def _fit(self, lot: Lot, each: DeviceFormat, tp: int) -> None:
        layout = each.layout(tp)
        if layout is None or not lot.takes(layout.devices):
            return
        self.last = layout.request
        if layout.least is not None:
            usd = lot.usd_per_hour(max(layout.least * layout.devices, each.devices))
            self._wait(usd, lot, partial(self._copy, lot, each, layout))

    def _copy(self, lot: Lot, each: DeviceFormat, layout: ModelCopy) -> None:
        found = layout.copies((lot.count or MOST) // layout.devices)
        if found is not None:
            copies, first = found
            devices = lot.whole(lot.count or copies * layout.devices)
            judge = partial(self._judge, lot, each, layout, devices, first)
            self._wait(lot.usd_per_hour(devices), lot, judge, float(each.rank), first)

    def _judge(self, lot: Lot, each: DeviceFormat, layout: ModelCopy, devices: int, first: float) -> None:
        """Ask the whole estimate of what the load alone allows."""
        asked = {**layout.request, **lot.settings, "num_devices": devices}
        key = (layout, lot.settings["device"], devices)
        if key not in self._judged:
            self._judged[key] = estimated(asked, self.catalog)
        result = self._judged[key]
        if result is not None and result.verdict.works(surely=self.sure):
            fleet = Fleet(
                lot=lot, count=devices, copy=layout.devices, asked=asked, estimate=result, gives_up=each.gives_up
            )
            self._wait(fleet.usd_per_hour, lot, fleet, float(each.rank), first)


def formats_of(request: Request, catalog: Catalog, *, sure: bool = False) -> Iterator[DeviceFormat]:
    """Yield the formats to serve in on one device: the one that was said, else as published, then those of fewer bits,
    the widest first.
    """
    many = int(str(request.get("concurrency") or (1 if request.get("rate") is None else MANY)))
    server = settled({**without(request, *LIMITS), "num_devices": 1, "concurrency": many}, catalog)
    if server is None:
        return
    request = {**request, "engine": server.engine}
    probe = alone({**request, "num_devices": 1}, catalog)
    if probe is None or probe.verdict.software == "unsupported":
        return
    tried: list[tuple[Mapping[str, object], str]] = [({}, "")]
    for change in quant_changes(probe, catalog) if request.get("quant") is None else ():
        quant = str(change.settings["quant"])
        if quant != AUTO and width(probe.scenario, quant) >= LEAST_BITS:
            tried.append((change.settings, change.gives_up))
    for rank, (settings, gives_up) in enumerate(tried):
        asked = {**request, **settings}
        scenario = settled({**asked, "num_devices": 1}, catalog)
        if scenario is not None:
            yield DeviceFormat(rank, asked, gives_up, scenario, catalog, sure=sure)

"""Devices side by side: one request on each, ranked, with its speed relative to a baseline."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, get_args

from ..catalog.device import Device
from ..catalog.store import Catalog
from ..contract import Added, Json, Published, document, given, plain
from ..errors import UsageError
from ..feasibility.core import estimate
from ..feasibility.result import Cost, Estimate, Note, Verdict
from ..feasibility.verdict import why
from ..memory.peak import Memory
from ..ranges import Range
from ..record import dataclass
from ..request import canonical
from ..scenario import Scenario
from ..settle import hardware_named, resolution
from ..timing.inference import InferenceTime
from ..timing.training import TrainingTime
from ..units import digits
from ..workload.flops import Flops
from ..workload.parameters import Parameters
from .answer import leaves_task_open
from .asked import skipped, unless_refused
from .needed import Needed

Sort = Literal["time", "memory", "cost", "energy", "name"]
TASK_TAKEN = (
    "--task pretrain was taken, since no task was said: --task inference compares chat, --task qlora fine-tuning"
)
STATUS_ORDER = ("feasible", "tight", "infeasible", "unsupported")


@dataclass(frozen=True, slots=True)
class DeviceLayout(Published):
    """How a model is divided over devices."""

    dp: int
    tp: int
    pp: int
    ep: int
    cp: int
    zero: int

    @classmethod
    def of(cls, scenario: Scenario) -> DeviceLayout:
        """The layout of a scenario."""
        return cls(scenario.dp, scenario.tp, scenario.pp, scenario.ep, scenario.cp, scenario.zero)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedDevice(Published):
    """One model on one device: a row of a comparison."""

    rank: int
    model: str
    device: str
    offer: Added[str | None]
    """The offer that the device was named by; null where it is no part of one."""
    num_devices: int
    backend: str
    engine: Added[str]
    precision: Added[str]
    quant: Added[str | None]
    """Format of the weights where it is not that of `precision`."""
    devices_needed: int | None
    """Devices that its memory takes; null where no number of them would do."""
    layout_needed: DeviceLayout | None
    relative_speed: Range | None
    """Speed as a multiple of the baseline's; null where either cannot run it."""
    under_load: Added[bool]
    """Whether a rate, several requests or targets are asked: speed is then `time.output_tokens_per_second`."""
    parameters: Parameters
    flops: Flops
    memory: Memory
    memory_assumed: Added[bool]
    """Whether its machine is sold with other sizes of memory too, and nobody said which."""
    time: TrainingTime | InferenceTime
    cost: Cost
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Contender:
    """One model on one device, not ranked yet."""

    estimate: Estimate
    needed: Scenario | None
    """On so many devices, and in this layout, memory does; None where 4096 would not do."""
    relative_speed: Range | None
    """Speed as a multiple of the baseline's; None where either cannot run it."""

    def __repr__(self) -> str:
        times = "" if self.relative_speed is None else f", {digits(self.relative_speed.expected)} times the baseline"
        return f"<Contender {self.estimate!r}{times}>"

    @property
    def feasible(self) -> bool:
        """Whether it runs as asked."""
        return self.estimate.verdict.works()

    def ranked(self, rank: int) -> ComparedDevice:
        """The row of the contract."""
        estimated, scenario, needed = self.estimate, self.estimate.scenario, self.needed
        return ComparedDevice(
            rank=rank,
            model=scenario.model.id,
            device=scenario.device.id,
            offer=scenario.offer,
            num_devices=scenario.num_devices,
            backend=scenario.device.backend,
            engine=scenario.engine,
            precision=scenario.precision,
            quant=None if scenario.quant == "none" else scenario.quant,
            devices_needed=needed.num_devices if needed else None,
            layout_needed=DeviceLayout.of(needed) if needed else None,
            relative_speed=self.relative_speed,
            under_load=scenario.has_load,
            parameters=estimated.parameters,
            flops=estimated.flops,
            memory=estimated.memory,
            memory_assumed=_is_assumed(scenario),
            time=estimated.time,
            cost=estimated.cost,
            verdict=estimated.verdict,
        )


def _is_assumed(scenario: Scenario) -> bool:
    """Whether nobody said how much memory a machine has that is sold with several sizes, or with any."""
    origin = scenario.origins.get("memory")
    return origin == "default" or (origin == "device" and len(scenario.device.memory_options_gib) > 1)


@dataclass(frozen=True, slots=True)
class ComparisonResult(Published):
    """The result of a comparison."""

    rows: tuple[ComparedDevice, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ranked rows, warnings, and the baseline that was given."""

    rows: tuple[Contender, ...]
    notes: tuple[Note, ...]
    """What was left out, and a baseline that cannot do it."""
    baseline: str | None
    inputs: Json
    """What was asked."""
    catalog: str
    """The data's digest."""

    def __repr__(self) -> str:
        rows = (f"  {rank}. {row.estimate!r}" for rank, row in enumerate(self.rows, 1))
        return "\n".join(["<Comparison", *rows, ">"])

    def to_dict(self, top: int | None = None) -> Json:
        """The JSON of `llmfeas compare --json`, with the `top` rows."""
        return {name: plain(value) for name, value in self.document(top).items()}

    def document(self, top: int | None = None) -> Json:
        """The same before its rows are taken apart (`contract.document`)."""
        rows = tuple(row.ranked(rank) for rank, row in enumerate(self.rows[:top], 1))
        return document("compare", self.catalog, self.inputs, ComparisonResult(rows), self.warnings_of_first(top))

    @property
    def warnings(self) -> tuple[Note, ...]:
        """The warnings of all rows together."""
        return self.warnings_of_first(None)

    def warnings_of_first(self, top: int | None) -> tuple[Note, ...]:
        """The notes, and what holds on more than half of the `top` rows of a model: what was asked makes it."""
        answers: dict[str, list[Estimate]] = {}
        for row in self.rows[:top]:
            answers.setdefault(row.estimate.scenario.model.id, []).append(row.estimate)
        return tuple(dict.fromkeys((*self.notes, *chain.from_iterable(map(_common, answers.values())))))


def chosen_devices(catalog: Catalog, devices: Sequence[str], backends: Sequence[str], *, every: bool) -> list[str]:
    """The devices to compare: those named, those of the backends, all, or one representative a class.

    Raises:
        UsageError: for an unknown backend, or where nothing is left.
    """
    from ..catalog.search import find_backend

    wanted = {find_backend(name, catalog).record.id for name in backends}
    if devices:
        named = {name: hardware_named(name, catalog) for name in devices}
        first = {
            (hardware.device, hardware.count or 1, hardware.offer): name for name, hardware in reversed(named.items())
        }
        chosen = [
            name for name, hardware in named.items() if name in first.values() and _wanted(hardware.device, wanted)
        ]
    else:
        peek = catalog.devices.peek
        chosen = [
            name
            for name in (catalog.devices if every or wanted else catalog.devices.first())
            if (peek(name, "backend") in wanted if wanted else every or peek(name, "representative"))
        ]
    if not chosen:
        raise _empty(devices, sorted(wanted), catalog)
    return chosen


def _wanted(device: Device, backends: Collection[str]) -> bool:
    return not backends or device.backend in backends


def _empty(devices: Sequence[str], wanted: Sequence[str], catalog: Catalog) -> UsageError:
    backends = [hardware_named(name, catalog).device.backend for name in devices[:4]]
    given = ", ".join(f"{name} ({backend})" for name, backend in zip(devices[:4], backends, strict=True))
    filtered = f" of backend {', '.join(wanted)}" if wanted else ""
    rest = f": given were {given}" if given else ""
    message = f"no device{filtered} is left to compare{rest}"
    return UsageError("empty-selection", message, "See 'llmfeas devices list'.")


def _key(estimated: Estimate, sort: Sort) -> tuple[Any, ...]:
    place = STATUS_ORDER.index(estimated.verdict.status)
    speed = -estimated.speed.expected
    money = estimated.cost.usd.expected if estimated.cost.usd else estimated.cost.usd_per_million_tokens
    energy = (
        estimated.cost.energy_kwh.expected
        if estimated.cost.energy_kwh
        else estimated.cost.energy_kwh_per_million_tokens
    )
    figures: dict[Sort, float | str] = {
        "time": speed,
        "memory": estimated.memory.peak_bytes.expected,
        "cost": math.inf if money is None else money,
        "energy": math.inf if energy is None else energy,
        "name": estimated.scenario.device.name,
    }
    return (place, figures[sort], speed) if sort != "name" else (0, figures[sort], speed)


def comparison(
    request: Mapping[str, object],
    models: Sequence[str],
    devices: Iterable[str],
    catalog: Catalog,
    *,
    baseline: str | None = None,
    sort: Sort = "time",
    chosen: bool = True,
) -> Comparison:
    """Answer the request for each model on each device and rank the rows: feasible first, then by `sort`.

    What cannot be asked of some of them is left out, and a warning says so.

    Without a baseline each model's first row is it, if that is feasible. `chosen`: somebody chose the devices.

    Raises:
        UsageError: for unknown names, without a model, and for what nothing of all this can be asked.
    """
    _checked(models, sort)
    rows: list[Contender] = []
    refused: list[UsageError] = []
    notes: list[Note] = []
    names, said = list(devices), canonical(request, catalog.tables.quantization)
    for model in dict.fromkeys(models):
        asked = ({**said, "model": model, "device": name} for name in names)
        settled = ((one, each) for one in asked if (each := unless_refused(one, catalog, refused)) is not None)
        answers = [(one, estimate(each)) for one, each in settled]
        requests, estimates = [one for one, _ in answers], [each for _, each in answers]
        base = _baseline(said, model, baseline, catalog, notes) if baseline and estimates else _best(estimates, sort)
        find = Needed(catalog)
        needed = [find(one, each) for one, each in zip(requests, estimates, strict=True)]
        rows += [Contender(each, more, _relative(each, base)) for each, more in zip(estimates, needed, strict=True)]
    notes += _of_all(rows, refused)
    rows.sort(key=lambda row: _key(row.estimate, sort))
    inputs = given({**request, "models": tuple(models)})
    inputs["devices"] = {"value": names, "origin": "given" if chosen else "default"}
    inputs["baseline"] = {"value": baseline, "origin": "given" if baseline else "default"}
    return Comparison(tuple(rows), tuple(notes), baseline, inputs, catalog.digest)


def _of_all(rows: Sequence[Contender], refused: Sequence[UsageError]) -> Iterator[Note]:
    """What all rows together make one say."""
    if refused:
        yield _skipped(refused, rows)
    if not any(row.feasible for row in rows) and leaves_task_open(rows[0].estimate.scenario):
        yield Note("task-taken", TASK_TAKEN)


def _checked(models: Sequence[str], sort: str) -> None:
    """Refuse what only Python code can ask: nothing, and an order that there is not."""
    if not models:
        raise UsageError("missing-model", "no model was given to compare.", "See 'llmfeas models list'.")
    orders = get_args(Sort)
    if sort not in orders:
        raise UsageError("bad-choice", f"sort: {sort!r} is not one of {', '.join(orders)}.", candidates=orders)


def _skipped(refused: Sequence[UsageError], rows: Sequence[Contender]) -> Note:
    """Say what was left out.

    Raises:
        UsageError: the first reason, where nothing is left.
    """
    if not rows:
        raise refused[0]
    return Note("skipped", skipped(refused, "rows"))


def _common(estimates: Sequence[Estimate]) -> Iterator[Note]:
    """Yield the notes that hold on more than half of the devices."""
    counts = Counter(note for each in estimates for note in each.warnings)
    return (note for note, count in counts.items() if 2 * count > len(estimates))


def _best(estimates: Sequence[Estimate], sort: Sort) -> Estimate | None:
    """The estimate that ranks first, if it is feasible: the baseline where none was given."""
    best = min(estimates, key=lambda each: _key(each, sort), default=None)
    return best if best is not None and best.verdict.works() else None


def _baseline(
    request: Mapping[str, object], model: str, baseline: str | None, catalog: Catalog, notes: list[Note]
) -> Estimate | None:
    if baseline is None:
        return None
    estimated = estimate(resolution({**request, "model": model, "device": baseline}, catalog))
    if estimated.verdict.software == "unsupported" or estimated.memory.verdict == "exceeds":
        because = why(estimated.verdict)
        text = f"the baseline {estimated.scenario.device.name} cannot run this ({because}): no relative speeds"
        notes.append(Note("baseline-cannot", text))
        return None
    return estimated


def _relative(estimated: Estimate, base: Estimate | None) -> Range | None:
    if base is None or estimated.verdict.software == "unsupported":
        return None
    ours, theirs = estimated.scenario, base.scenario
    if ours is theirs or (ours.device.id == theirs.device.id and ours == theirs):
        return Range.exact(1.0)
    return estimated.speed.over(base.speed)

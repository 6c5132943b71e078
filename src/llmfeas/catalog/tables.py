"""What estimates look numbers up in: built once from a catalog, and carried by every question that it settles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from ..ranges import Range
from ..record import dataclass, field, replace
from ..text import printable
from .device import BackendId, DeviceClass
from .efficiency import Efficiency
from .engine import Engine
from .implementation import KINDS, UNNAMED_KERNELS, Implementations
from .quantization import Quantization, expanded
from .records import built
from .types import Count, Fraction, Identifier, PositiveOrZero, Strict

MOST_ASKED: Final = 256
"""Engines that were asked for, which are kept: anybody may make up names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenShare(Strict):
    """What a screen and other programs hold of a card in one's own machine."""

    held: Mapping[DeviceClass, PositiveOrZero] = field(default_factory=dict)
    """Bytes, by the kind of the card; kinds without a number drive no screen."""
    most_devices: Count = 1
    """More of them stand in a machine without a screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetalShare(Strict):
    """What macOS lets the GPU have of a Mac's memory, from so many GiB on, and what who raises that leaves to it."""

    from_gib: PositiveOrZero
    share: Fraction
    left_gib: PositiveOrZero


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime(Strict):
    """Memory that is no tensor of the model, by backend: data/runtime.yaml."""

    as_of: str = ""
    contexts: Mapping[BackendId, PositiveOrZero]
    """Bytes of the driver's context and loaded kernels of one process."""
    programs: Mapping[BackendId, PositiveOrZero] = field(default_factory=dict)
    """Bytes of the interpreter and the libraries of a training, where they lie in the device's memory too."""
    usable: Mapping[str, PositiveOrZero]
    """Share of a device's memory that one process can take where the driver's own figure is not known."""
    unseen: Mapping[BackendId, PositiveOrZero] = field(default_factory=dict)
    """Bytes of what the driver reports that no process sees."""
    metal: tuple[MetalShare, ...]
    """From the smallest memory on."""
    screen: ScreenShare = field(default_factory=ScreenShare)

    def of_mac(self, memory_gib: float) -> MetalShare:
        """What holds for a Mac of so much memory."""
        return [step for step in self.metal if step.from_gib <= memory_gib][-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerShare(Strict):
    """Share of its power limit that a device draws."""

    low: Fraction
    expected: Fraction
    high: Fraction
    prior: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLimit(Strict):
    """How a device slows down under a limit of its power: shares of the board's power and of the highest clock."""

    idle_share: Fraction
    slow_clock: Fraction
    prior: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Power(Strict):
    """What devices draw, by what binds them: data/power.yaml."""

    as_of: str = ""
    power_share: Mapping[str, PowerShare]
    power_limit: PowerLimit
    grid_as_of: str = ""
    grid_g_per_kwh: Mapping[str, PositiveOrZero] = field(default_factory=dict)
    grid_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCost(Strict):
    """How little a person wants a kind of change."""

    tier: Identifier
    pain: PositiveOrZero
    reason: str
    gives_up: str = ""
    """What a reader is told; empty where that depends on more than the settings that are changed."""
    heavier: bool = False
    """Buys speed with memory: no use where memory alone is short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOrder(Strict):
    """The order in which an expert tries changes: data/changes.yaml."""

    as_of: str = ""
    tiers: Mapping[str, str]
    """What each tier costs, the least first."""
    changes: Mapping[str, ChangeCost]

    def check(self) -> None:
        """Refuse a change of a tier that there is not.

        Raises:
            ValueError: naming the change.
        """
        for kind, cost in self.changes.items():
            if cost.tier not in self.tiers:
                raise ValueError(f"changes.{kind} names the tier '{cost.tier}', which there is not")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tables:
    """The numbers of one catalog. Compared by identity, so that what is derived from them can be cached."""

    efficiency: Efficiency
    runtime: Runtime
    quantization: Quantization
    implementations: Implementations
    engines: Mapping[str, Engine]
    plain: Engine
    """What an engine is taken for that nobody described."""
    power_shares: Mapping[str, Range]
    """Share of its board power that a device draws, by what binds it."""
    power_limit: PowerLimit
    """What a limit below it does to the speed."""
    changes: ChangeOrder
    """What is tried first where a request does not work."""
    grids: Mapping[str, float] = field(default_factory=dict)
    """Grams of CO2 equivalents of a kilowatt-hour, by country."""
    grids_as_of: str = ""
    grid_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What people call these countries."""
    _asked: dict[str, Engine] = field(default_factory=dict, init=False, repr=False)
    _faults: dict[Engine, tuple[str, ...]] = field(default_factory=dict, init=False, repr=False)

    def faults(self, engine: Engine) -> tuple[str, ...]:
        """Say what an engine's record names that there is not."""
        found = self._faults.get(engine)
        if found is None:
            found = self._faults[engine] = tuple(self._missing_names(engine))
        return found

    def _missing_names(self, engine: Engine) -> Iterator[str]:
        formats = self.quantization.formats
        yield from _missing("kernels", (engine.training.kernels,), (*UNNAMED_KERNELS, *self.implementations.kernels))
        known = {*formats, *(each.kind for each in formats.values())}
        yield from _missing("format", (*engine.formats, *engine.limits), known)
        named = (*engine.architectures, *engine.without, *engine.no_fp16)
        yield from _missing("architecture", named, (*self.implementations.names, *KINDS))
        fixed = f"decode.fixed.{engine.serving.speed.fixed}"
        if engine.serving.speed.fixed and not any(
            f"{name}.".startswith(f"{fixed}.") for name in self.efficiency.parameters
        ):
            yield f"there is no parameter {printable(fixed, 60)}"

    def engine(self, name: str) -> Engine:
        """What is known of an engine; one that nobody described is a plain one."""
        found = self._asked.get(name)
        if found is None:
            if len(self._asked) >= MOST_ASKED:
                self._asked.clear()
                self._faults.clear()
            found = self.engines.get(name) or replace(self.plain, id=name)
            found = self._asked[name] = found if found.name else replace(found, name=found.id)
        return found


def _missing(what: str, names: Iterable[str], known: Collection[str]) -> Iterator[str]:
    for name in names:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, list(known), 1)
            meant = f"; did you mean '{near[0]}'?" if near else ""
            yield f"there is no {what} '{printable(name, 40)}'{meant}"


def tables_from(raw: Callable[[str], Mapping[str, Any]], engines: Mapping[str, Engine]) -> Tables:
    """Build the tables of a catalog, whose data files `raw` gives by name.

    Raises:
        DataError: a file is missing or unusable.
        KeyError, TypeError: a section or field is missing or unknown.
    """
    implementations, power = raw("implementations"), built(Power, raw("power"))
    return Tables(
        efficiency=built(Efficiency, raw("efficiency")),
        runtime=built(Runtime, raw("runtime")),
        quantization=built(Quantization, expanded(raw("quantization"))),
        implementations=Implementations(implementations["implementations"], implementations["kernels"]),
        engines=engines,
        plain=built(Engine, {"id": "plain", **raw("engines")["plain"]}),
        changes=built(ChangeOrder, raw("changes")),
        power_shares={name: Range(each.low, each.expected, each.high) for name, each in power.power_share.items()},
        power_limit=power.power_limit,
        grids=power.grid_g_per_kwh,
        grids_as_of=power.grid_as_of,
        grid_names=power.grid_names,
    )

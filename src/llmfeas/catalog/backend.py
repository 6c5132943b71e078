"""What really works on which backend: techniques, engines, and what people use by default."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from ..record import dataclass, field
from .device import BackendId, Device, DeviceClass
from .types import Identifier, Strict

Status = Literal["supported", "limited", "unsupported"]


class DeviceTraits(NamedTuple):
    """All that conditions look at: devices that have it in common run the same software."""

    backend: BackendId
    target: str
    generation: str
    kind: DeviceClass
    has_bf16: bool
    has_matrix_units: bool
    has_fp8: bool


@functools.lru_cache(maxsize=4096)
def traits_of(device: Device) -> DeviceTraits:
    """What conditions see of a device."""
    d, has_fp8 = device, device.tflop_per_s.fp8 is not None
    return DeviceTraits(d.backend, d.target, d.generation, d.kind, d.has_bf16, d.has_matrix_units, has_fp8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition(Strict):
    """Which devices a case speaks of: all of its conditions hold; without any, every device."""

    below: str | None = None
    """Devices whose numeric target (CUDA compute capability) is below this one."""
    targets: tuple[Identifier, ...] = ()
    """Devices with one of these targets; `gfx11*` stands for all that begin so."""
    backends: tuple[BackendId, ...] = ()
    generations: tuple[Identifier, ...] = ()
    kinds: tuple[DeviceClass, ...] = ()
    without_bf16: bool = False
    without_matrix_units: bool = False
    without_fp8: bool = False

    def holds(self, device: DeviceTraits) -> bool:
        """Whether a device with these traits is one of those meant."""
        return (
            (self.below is None or _version(device.target) < _version(self.below))
            and (not self.targets or any(_means(target, device.target) for target in self.targets))
            and (not self.backends or device.backend in self.backends)
            and (not self.generations or device.generation in self.generations)
            and (not self.kinds or device.kind in self.kinds)
            and not (self.without_bf16 and device.has_bf16)
            and not (self.without_matrix_units and device.has_matrix_units)
            and not (self.without_fp8 and device.has_fp8)
        )


_EVERY_DEVICE = Condition()


@dataclass(frozen=True, slots=True, kw_only=True)
class Support(Strict):
    """Whether a technique works: from which version of the software on, with which limits, who says so."""

    status: Status
    when: Condition = _EVERY_DEVICE
    but: tuple[Identifier, ...] = ()
    """Engines that need nothing of this: asked with one of them the case does not count."""
    since: str = ""
    note: str = ""
    sources: tuple[str, ...] = ()
    unverified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Build(Strict):
    """Another build of an engine, which it runs by itself on some devices."""

    engine: Identifier
    when: Condition


def built_for(engine: str, builds: Iterable[Build], device: Device) -> str:
    """The engine that a name means on a device: itself, or the first of its builds that is for such devices."""
    traits = traits_of(device)
    return next((build.engine for build in builds if build.when.holds(traits)), engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice(Strict):
    """What people use on a backend; the first choice that matches is taken."""

    engine: Identifier
    tasks: tuple[Identifier, ...] = ()
    """Tasks it is chosen for; none named: every task."""
    quants: tuple[Identifier, ...] = ()
    """Formats it is chosen for; none named: every format."""
    concurrency: int = 1
    """Requests at once from which on it is chosen."""
    when: Condition = _EVERY_DEVICE

    def fits(self, device: DeviceTraits, task: str, quant: str, concurrency: int) -> bool:
        """Whether it is chosen for this."""
        return (
            (not self.quants or quant in self.quants)
            and (not self.tasks or task in self.tasks)
            and concurrency >= self.concurrency
            and self.when.holds(device)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend(Strict):
    """A catalog entry of one backend."""

    id: BackendId
    name: Identifier
    vendor: Identifier
    aliases: tuple[Identifier, ...] = ()
    default_for: tuple[Identifier, ...] = ()
    software: str = ""
    """What runs on it, for people: `PyTorch with CUDA, llama.cpp, vLLM`."""
    engines: tuple[EngineChoice, ...]
    techniques: Mapping[str, tuple[Support, ...]]
    """By technique (several names, with spaces) the cases in order: the first whose condition holds counts."""
    refusal: str = ""
    """Note on engines whose records do not name the backend: they do not run there."""
    fp8_cache: bool = False
    """Serving software that runs fp8 weights keeps its cache in fp8 too, unless told otherwise."""
    builds: Mapping[Identifier, str] = field(default_factory=dict)
    """By package what to install where pip's own build is for another backend; `torch`: for all that stands on it."""
    notes: str = ""
    sources: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return hash(self.id)

    def check(self) -> None:
        """Refuse a technique that leaves some device without an answer.

        Raises:
            ValueError: naming the technique.
        """
        for technique, cases in self.techniques.items():
            if unending(cases):
                raise ValueError(f"techniques.{technique} must end with a case without `when`")


WORKS = Support(status="supported")


def unending(cases: tuple[Support, ...]) -> bool:
    """Whether cases leave some device without an answer."""
    return not cases or cases[-1].when != _EVERY_DEVICE


@functools.lru_cache
def _cases(backend: Backend) -> Mapping[str, tuple[Support, ...]]:
    """The cases of each single technique."""
    return {name: cases for names, cases in backend.techniques.items() for name in names.split()}


def support(backend: Backend, device: Device, technique: str) -> Support:
    """Say whether a technique works on a device: the value of an option (`qlora`, `bf16-mixed`, `nf4`).

    The technique `device` asks whether today's builds of the backend run on it at all. A technique that the catalog
    does not name needs nothing special of a backend and works.
    """
    return named_support(backend, device, technique) or WORKS


def named_support(backend: Backend, device: Device, technique: str) -> Support | None:
    """Say what a backend's entry says of a technique by name; None where it names it not."""
    return _named_support(backend, traits_of(device), technique)


@functools.lru_cache(maxsize=4096)
def _named_support(backend: Backend, device: DeviceTraits, technique: str) -> Support | None:
    return next((case for case in _cases(backend).get(technique, ()) if case.when.holds(device)), None)


def default_engine(backend: Backend, device: Device, task: str, quant: str = "none", concurrency: int = 1) -> str:
    """Name what people use on this backend and device for a task, a weight format and so many requests at once.

    Raises:
        KeyError: the catalog names none.
    """
    for choice in backend.engines:
        if choice.fits(traits_of(device), task, quant, concurrency):
            return choice.engine
    raise KeyError(f"no engine for {task} with {quant} on {backend.id}")


def _means(named: str, target: str) -> bool:
    """Whether a name of targets means one."""
    return target.startswith(named[:-1]) if named.endswith("*") else target == named


@functools.lru_cache(maxsize=256)
def _version(target: str) -> tuple[int, ...]:
    """Read `8.9` as (8, 9); what is no number counts as newest."""
    parts = target.split(".")
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else (10**6,)

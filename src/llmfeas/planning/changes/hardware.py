"""Other hardware as a change: more memory, more devices, other devices."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache

from ...catalog.device import Device
from ...catalog.joined import Joined
from ...catalog.prices import let
from ...catalog.store import Catalog
from ...feasibility.result import Estimate
from ...memory.usable import usable_part
from ...record import dataclass
from ...scenario import Scenario
from ...units import GIB
from .change import AUTO, Axis, Change, Source, change

LARGER = 1.001
MORE = {"datacenter": (7, -1.0), "workstation": (4, 0.0), "consumer": (4, 0.5)}
"""By kind of device: how often a count is doubled, and how much harder than usual it is to have two."""
MOST_AT_HOME = 2
"""How often where nobody is known to let cards of a desk: in one computer there are four."""
HARDLY_MORE = (2, 2.5)
"""The same for Macs, PCs and boards."""
RENTED = (10, -1.0)
"""The same for devices of a data center, where none is at hand yet."""
MOST_ALIKE, MOST_RELATED, MOST_OTHERS = 6, 6, 12
"""Devices that are tried: of the same backend and kind, of that backend alone, of others."""
GENERATION_YEARS = 3
"""Nobody changes to a device that came out so many years before the one at hand."""

UNPRICED = 0.25
"""Pain of a device that nobody is known to let; it decides between devices that hurt alike: others differ by a half."""

OWN = ("memory", "reserve", "wired_limit", "power_limit", "price", "purchase_price", "devices_per_node")
"""What was said of the device at hand holds for no other one."""

RAM_GIB = (64, 128, 256, 512, 1024)
MOST_TRAINING, MOST_SERVING = 3, 4
"""Sizes that are tried: who runs experts on the processor buys more than who trains. A server's count is doubled
no more often either: few buy more than sixteen times what they meant to."""


def memory_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield larger variants of the machine: sizes it is sold with, or more RAM beside a CPU."""
    scenario = estimate.scenario
    device = scenario.device
    sizes = device.memory_options_gib or (RAM_GIB if device.kind == "cpu" else ())
    for size in sorted(sizes):
        if scenario.memory_bytes * LARGER < size * GIB <= device.memory_bytes * LARGER:
            limit = {"wired_limit": AUTO} if scenario.was_given("wired_limit") else {}
            kind = "memory" if scenario.was_given("memory") else "memory-assumed"
            yield change(scenario, kind, {"memory": f"{size:g}GiB", **limit}, f"a machine with {size:g} GiB of memory")


def wired_limit_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield a higher limit of macOS for what the GPU of a Mac may have, where nobody has said one."""
    scenario = estimate.scenario
    limit, memory = scenario.wired_limit_bytes, scenario.memory_bytes / GIB
    if limit is not None and not scenario.was_given("wired_limit"):
        raised = int(memory - scenario.tables.runtime.of_mac(memory).left_gib)
        if raised * GIB > LARGER * limit:
            left = f"{memory - raised:g} GiB are left to macOS and other programs"
            yield change(scenario, "wired-limit", {"wired_limit": f"{raised}GiB"}, f"{left} (iogpu.wired_limit_mb)")


def host_memory_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield more main memory beside a device that has its own; a machine that is lent is as it is."""
    scenario = estimate.scenario
    if not scenario.device.has_host_memory and scenario.offer is None:
        for size in RAM_GIB[: MOST_SERVING if scenario.task == "inference" else MOST_TRAINING]:
            if size * GIB > scenario.host_memory_bytes * LARGER:
                text = f"{size} GiB of main memory in the machine"
                yield change(scenario, "host-memory", {"host_memory": f"{size}GiB"}, text)


def count_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield larger numbers of the same device, doubled each time; that of an offer, or of unequal devices, is fixed.

    A server that does not keep up with its load gets more copies of the model, not larger ones.
    """
    device = estimate.scenario.device
    doublings, hard = MORE.get(device.kind, HARDLY_MORE)
    at_home = device.kind != "datacenter" and device.id not in let(catalog)
    yield from _counts(estimate, min(doublings, MOST_AT_HOME) if at_home else doublings, hard)


def rented_groups(estimate: Estimate, catalog: Catalog) -> tuple[Axis, Axis]:
    """Devices of data centers in larger numbers than there are of the one at hand: two axes that go together."""
    devices = device_changes(estimate, catalog)
    rented = (each for each in devices if catalog.devices[str(each.settings["device"])].kind == "datacenter")
    return Axis("num_devices", tuple(_counts(estimate, *RENTED))), Axis("device", tuple(rented))


def _counts(estimate: Estimate, doublings: int, hard: float) -> Iterator[Change]:
    scenario = estimate.scenario
    if scenario.offer is not None or isinstance(scenario.device, Joined):
        return
    node, now = max(1, scenario.devices_per_node), scenario.num_devices
    copies = {"tp": scenario.tp, "pp": scenario.pp} if estimate.verdict.load in ("missed", "overloaded") else {}
    doublings = min(doublings, MOST_SERVING) if scenario.task == "inference" else doublings
    for step in range(doublings):
        count = now * 2 ** (step + 1)
        text = devices_text(count, node)
        harder = 0.5 * step + (1.0 if count > node else 0.0)
        if copies:
            text += f": {2 ** (step + 1)} times as many copies of the model"
        settings = {"device": scenario.device.id, "num_devices": count, **copies, **_same_batch(scenario, count)}
        if scenario.response_length is not None and count > scenario.global_batch:
            text += f": each step from more answers than {scenario.global_batch}"
        yield change(scenario, "more-devices", settings, text, more=hard + harder)


def _same_batch(scenario: Scenario, count: int) -> dict[str, object]:
    """The batch of a step whose answers the model writes: a larger one is written faster, but is another training."""
    kept = scenario.response_length is not None and not scenario.was_given("global_batch")
    return {"global_batch": scenario.global_batch} if kept and count <= scenario.global_batch else {}


def devices_text(count: int, node: int) -> str:
    """`16 devices in 2 machines`, of machines with `node` of them each."""
    machines = -(-count // node)
    return f"{count} devices" + (f" in {machines} machines" if machines > 1 < node else "")


def device_changes(estimate: Estimate, catalog: Catalog) -> Iterator[Change]:
    """Yield other devices, none much older: a few of the same backend and kind, of that backend some that are
    well-known or let by somebody, and well-known ones of others.

    Where time, money or a load is the problem the fastest come first; else they have more memory: what is enough alone
    by the smallest step, what is not from the largest down.
    """
    own = estimate.scenario.device
    exceeds = estimate.memory.verdict == "exceeds"
    short = exceeds or not (estimate.verdict.is_late or estimate.verdict.load not in ("not_asked", "ok"))
    needed = estimate.memory.peak_bytes.expected if exceeds else 0.0
    able, rented = list(_candidates(catalog, own, estimate.scenario.memory_bytes if short else 0.0)), let(catalog)
    if estimate.scenario.num_devices > 1 < own.devices_per_node:  # cards of one machine are not replaced by computers
        able = [one for one in able if catalog.devices.peek(one.id, "devices_per_node") != 1]
    if short:
        able.sort(key=lambda one: _step(one, needed, rented))
    else:
        able.sort(key=lambda one: -catalog.devices[one.id].peak16_flop_per_s)
    able.sort(key=lambda one: (one.memory_bytes < needed, not one.same_backend, not one.same_kind))
    alike = [one for one in able if one.same_backend and one.same_kind][:MOST_ALIKE]
    related = [one for one in able if one.same_backend and not one.same_kind][:MOST_RELATED]
    chosen = [*alike, *related, *[one for one in able if not one.same_backend][:MOST_OTHERS]]
    scenario = estimate.scenario
    kept: dict[str, object] = {"num_devices": scenario.num_devices} if scenario.num_devices > 1 else {}
    kept |= {name: AUTO for name in OWN if scenario.was_given(name)} | _same_batch(scenario, scenario.num_devices)
    for one in sorted(chosen, key=lambda one: one.memory_bytes if short else 0.0):
        sized, text = _sized(scenario, catalog.devices[one.id], needed)
        settings, far = {"device": one.id, **kept, **sized}, _farness(one, rented)
        yield change(scenario, "other-device", settings, f"another device: {text}", more=far, alone=OWN)


def _sized(scenario: Scenario, device: Device, needed_bytes: float) -> tuple[dict[str, object], str]:
    """The size of its memory that a machine needs which is sold with several, where it is not the one that is assumed;
    and what the machine is called. Nobody buys a large machine of another kind to train on.
    """
    apart = scenario.is_training and device.backend != scenario.device.backend
    if len(device.memory_options_gib) < 2 or apart:
        return {}, device.name
    runtime = scenario.tables.runtime
    enough = [
        size for size in device.memory_options_gib if usable_part(runtime, device, size * GIB) >= needed_bytes * LARGER
    ]
    size = min(enough, default=max(device.memory_options_gib))
    if size == device.memory_options_gib[0]:
        return {}, device.name
    return {"memory": f"{size:g}GiB"}, f"{device.name} with {size:g} GiB of memory"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A device that may be tried, which is built when it is."""

    id: str
    memory_bytes: float
    same_backend: bool
    same_kind: bool


ASKED_OF_ALL = (
    "released",
    "assumption",
    "by_rule",
    "backend",
    "kind",
    "representative",
    "memory_gib",
    "devices_per_node",
    "tflop_per_s",
)


@lru_cache(maxsize=64)
def _candidates(catalog: Catalog, own: Device, more_than_bytes: float) -> tuple[_Candidate, ...]:
    """Representative devices, like ones, and those of the same backend that somebody lets: of those that are not much
    older, have more memory and published rates, and lack no number format of the one at hand. Nobody goes from an
    accelerator to plain processors, none from a desk to a card for servers that nobody lets; no computer is bought for
    a part of its processor, but for what stands for all of those, and no board of a robot. What stands for no class is
    not even read.
    """
    found = []
    devices, rented, oldest = catalog.devices, let(catalog), _year(own.released) - GENERATION_YEARS
    names = list(devices if own.backend == "cpu" else devices.first())
    released, assumption, by_rule, backend, kind_of, representative, memory_gib, together, rates = map(
        devices.reader, ASKED_OF_ALL
    )
    for name in names:
        kind, same = kind_of(name), backend(name) == own.backend
        if kind == "cpu" != own.kind:
            continue
        if not (representative(name) or (same and (kind == own.kind or name in rented))):
            continue
        if name == own.id or _year(released(name)) < oldest or assumption(name):
            continue
        if kind == "consumer" and together(name) == 1:
            continue  # soldered into a laptop
        if (kind == "apu" and not representative(name)) or kind == "edge" != own.kind:
            continue
        if kind == "datacenter" != own.kind and name not in rented:
            continue
        if own.tflop_per_s.bf16 is not None and "bf16" not in (rates(name) or {}):  # type: ignore[operator]
            continue
        reckoned = by_rule(name)
        if isinstance(reckoned, list | tuple) and "tflop_per_s" in reckoned:
            continue
        gib = memory_gib(name)
        size = gib * GIB if isinstance(gib, int | float) else devices[name].memory_bytes  # which says what is wrong
        if size > more_than_bytes:
            found.append(_Candidate(name, size, same, kind == own.kind))
    return tuple(found)


def _year(released: object) -> int:
    year = str(released or "")[:4]
    return int(year) if year.isdigit() else 0


def _step(one: _Candidate, needed_bytes: float, rented: Collection[str]) -> tuple[float, ...]:
    """Order devices of more memory: those that somebody lets first, the smallest that is enough, else the largest."""
    enough = one.memory_bytes >= needed_bytes
    return one.id not in rented, one.memory_bytes if enough else -one.memory_bytes


def _farness(one: _Candidate, rented: Collection[str]) -> float:
    """How much more another device hurts than a like one that somebody lets."""
    return float(not one.same_backend) + (not one.same_kind) + (0.0 if one.id in rented else UNPRICED)


HARDWARE_SOURCES: tuple[tuple[str, Source], ...] = (
    ("wired_limit", wired_limit_changes),
    ("host_memory", host_memory_changes),
    ("memory", memory_changes),
    ("num_devices", count_changes),
    ("device", device_changes),
)
"""What can change in the hardware, the least painful first."""

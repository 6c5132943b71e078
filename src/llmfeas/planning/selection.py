"""Which of the ways that were found are worth showing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .way import Way

GAIN = 1.5
"""More or harsher changes must make a way so many times faster or cheaper to be worth showing."""

GAIN_OF_MORE = 3.0
"""The same for what changes all that another way changes, and something besides."""

SPARES = 4
"""One change more is worth so many times fewer of the same devices, and more of them are no gain for their speed."""

HARDWARE = ("num_devices", "device")
SACRIFICES = frozenset({"task", "tokens", "examples", "data_size", "memory", "host_memory", *HARDWARE})
"""Changes that alter the job or take money: a way without them stands beside ways with them."""


def worth_showing(ways: Sequence[Way]) -> list[Way]:
    """Order what is worth showing as an expert tries it: the first way, then what no other way beats."""
    ordered = sorted(ways, key=lambda way: way.rank)
    first = ordered[0]
    kept = apart(ordered)
    rest = [way for way in kept if way is not first and not any(_beats(other, way) for other in (first, *kept))]
    return [first, *rest]


def apart(ordered: Sequence[Way]) -> list[Way]:
    """Keep of ways that change the same settings the least painful, the first that is not tight, and faster ones.

    That more devices are faster needs no saying.
    """
    kept: list[Way] = []
    for way in ordered:
        alike = [other for other in kept if other.settings.keys() == way.settings.keys()]
        safer = _feasible(way) and not any(_feasible(other) for other in alike)
        faster = not set(HARDWARE) & way.settings.keys() and all(_gains(way, other) for other in alike)
        if not alike or safer or faster:
            kept.append(way)
    return kept


def pointless(settings: Mapping[str, object], pain: float, kept: Sequence[Way]) -> bool:
    """Whether a trial of these settings could not stand apart from ways that change the same hardware."""
    rivals = (way for way in kept if way.settings.keys() == settings.keys() and _feasible(way))
    return bool(set(HARDWARE) & settings.keys()) and any(way.pain < pain for way in rivals)


def _feasible(way: Way) -> bool:
    return way.estimate.verdict.status == "feasible"


def _same_device(way: Way, other: Way) -> bool:
    return way.estimate.scenario.device == other.estimate.scenario.device


def _gains(way: Way, other: Way, gain: float = GAIN) -> bool:
    """Whether `way` is much faster or cheaper than `other`."""
    cheaper = other.usd is not None and way.usd is not None and way.usd * gain < other.usd
    return cheaper or way.slowness * gain < other.slowness


def _beats(other: Way, way: Way) -> bool:
    """Whether `other` makes `way` pointless: it hurts less, and `way` gains nothing by what it does more."""
    if other is way or other.pain > way.pain or (_feasible(way) and not _feasible(other)):
        return False
    if "num_devices" in way.settings and "num_devices" in other.settings and _same_device(other, way):
        counts = other.estimate.scenario.num_devices, way.estimate.scenario.num_devices
        if counts[0] * SPARES <= counts[1] or counts[0] > counts[1]:
            return counts[0] < counts[1]
    if len(other.changes) > len(way.changes):
        return False
    if not SACRIFICES & other.settings.keys() <= way.settings.keys():
        return False
    fewer = way.estimate.scenario.num_devices < other.estimate.scenario.num_devices
    more = other.settings.keys() < way.settings.keys() and not fewer
    return not _gains(way, other, GAIN_OF_MORE if more else GAIN)

"""Machines as people type them: `2x 3090`, `mac mini m4 16gb`, `v5e-8`, `aws p5.48xlarge`, `runpod 4090`, `t4 x2`.

What stands around the name is read off by rule (`typed`). The name that is left is looked up as any other (`search`);
of the devices that it may mean, those stay that have the memory and come in the machine.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Final

from ..errors import UsageError
from ..record import dataclass
from ..text import printable
from ..units import GIB, MIB
from .names import LONGEST, Index, Tokens, core_of, index_of, joined, tokens_of
from .search import ambiguous, choice, holds, taken_note, unknown
from .typed import FILLERS, SIZE_SLACK, SPACED, Reading, readings, spellings

if TYPE_CHECKING:
    from .store import Catalog, Records

_TOPOLOGY: Final = re.compile(r"(.*?)[\s_-]([0-9]{1,3}(?:x[0-9]{1,3}){1,2})", re.IGNORECASE)
_SLICE: Final = re.compile(r"(.*?)[\s_-]([0-9]{1,6})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Meant:
    """What a typed name means: a device or an offer, how many, with how much memory, rented from whom."""

    device: str
    offer: str | None = None
    count: int | None = None
    memory_gib: float | None = None
    provider: str | None = None
    note: str | None = None
    others: tuple[str, ...] = ()


def meant(text: str, catalog: Catalog) -> Meant:
    """Give what a typed name means.

    Raises:
        UsageError: `unknown-device`, `ambiguous-device`, or `bad-quantity` for a count of 0 or a size that is not sold.
    """
    plain, refused = text[:LONGEST], None
    for read in (_as_named, _as_worded_offer):
        for reading in readings(plain):
            if reading.count == 0:
                hint = "Write for instance 8xh100-sxm."
                raise UsageError("bad-quantity", f"'{printable(plain, 40)}' asks for no device at all", hint)
            try:
                found = read(plain, reading, catalog)
            except UsageError as error:
                refused = refused or error
                continue
            if found is not None:
                return found
    raise refused or unknown(index_of(catalog.devices), "device", plain)


def _as_named(text: str, reading: Reading, catalog: Catalog) -> Meant | None:
    """Take a reading for an offer of that name, or with its provider among the words; else for a device."""
    whose, name = _provider_and_rest(reading.text, catalog)
    offer = _offer(reading, whose, catalog, by_words=whose is not None)
    if offer is not None:
        return _lent(text, reading, offer, catalog)
    for spelling in spellings(name):
        found = _named(spelling, catalog, whole=reading.whole)
        if found is not None:
            return _settled(text, replace(reading, text=spelling), found, whose, catalog)
    return None


def _as_worded_offer(text: str, reading: Reading, catalog: Catalog) -> Meant | None:
    """Take a reading for the only offer that has all of its words: `NC24ads A100`."""
    whose, _ = _provider_and_rest(reading.text, catalog)
    offer = _offer(reading, whose, catalog, by_words=reading.count is None)
    return None if offer is None else _lent(text, reading, offer, catalog)


def _provider_and_rest(text: str, catalog: Catalog) -> tuple[str | None, str]:
    """Give the provider that a text names, and the text without its words."""
    providers, words = _providers(catalog), SPACED.split(text.lower())
    named = [providers[word] for word in words if word in providers]
    if not named:
        return None, text
    return named[0], " ".join(word for word in words if word not in providers)


@dataclass(frozen=True, slots=True)
class _Named:
    """What a name may mean: the likeliest device (None: several are as likely), all of them, devices in one of it."""

    chosen: str | None
    ids: tuple[str, ...]
    each: int = 1


def _named(name: str, catalog: Catalog, *, whole: bool) -> _Named | None:
    """Give the devices that a name may mean: by its own name, as a slice of a pod, in the machine that holds it.

    `whole`: only by the whole name, since a size in it is better read off.
    """
    index, tokens = index_of(catalog.devices), tokens_of(name)
    if not tokens:
        return None
    exact = index.exact.get(joined(tokens))
    if exact is None and not whole:
        found = _slice(name, catalog) or _in_machine(tokens, catalog)
        if found is not None:
            return found
    if whole:
        chosen = exact or index.defaults.get(tokens)
        return _Named(chosen, (chosen,)) if chosen else None
    chosen, ids = choice(index, tokens)
    if exact is not None:
        return _Named(exact, (exact, *(key for key in ids if key != exact)))
    return _Named(chosen, ids) if ids or chosen else None


def _slice(name: str, catalog: Catalog) -> _Named | None:
    """Read `v5e-8`, `v5litepod-16`, `v4-8` (eight TensorCores are four devices), `v6e 2x4`."""
    for pattern in (_TOPOLOGY, _SLICE):
        match = pattern.fullmatch(name.strip())
        key = match and index_of(catalog.devices).exact.get(joined(tokens_of(match[1])))
        if match and key and catalog.devices.peek(key, "backend") == "tpu":
            cores = int(str(catalog.devices.peek(key, "slice_cores") or 1)) if pattern is _SLICE else 1
            number = prod(int(side) for side in match[2].lower().split("x"))
            if number and number % cores == 0:
                return _Named(key, (key,), number // cores)
    return None


def _in_machine(tokens: Tokens, catalog: Catalog) -> _Named | None:
    """Read `mac mini m4 pro`: the machine says which devices it may be, the rest which of them it is."""
    index = index_of(catalog.devices)
    for machine, keys in _machines(catalog.devices):
        begin = _place(tokens, machine)
        if begin is None:
            continue
        rest = (*tokens[:begin], *tokens[begin + len(machine) :])
        exact = index.exact.get(joined(rest)) or index.defaults.get(rest)
        if rest and exact is not None and exact not in keys:
            return _Named(exact, (exact,))
        ids = keys if not rest else tuple(key for key in keys if _has(index, key, rest))
        chosen = exact if exact in ids else ids[0] if len(ids) == 1 else None
        if ids:
            each = int(str(catalog.devices.peek(ids[0], "devices_per_node") or 1))
            return _Named(chosen, (*((chosen,) if chosen else ()), *(key for key in ids if key != chosen)), each)
    return None


def _has(index: Index, key: str, words: Tokens) -> bool:
    return any(holds(name, words) for name, owner in index.names if owner == key)


def _place(tokens: Tokens, wanted: Tokens) -> int | None:
    """Give where words stand side by side in others."""
    last = len(tokens) - len(wanted)
    return next((at for at in range(last + 1) if tokens[at : at + len(wanted)] == wanted), None)


@functools.lru_cache(maxsize=8)
def _machines(devices: Records[Any]) -> tuple[tuple[Tokens, tuple[str, ...]], ...]:
    """Give what machines are called, the longest names first, and the devices that each is sold with, newest first."""
    found: dict[Tokens, list[tuple[str, str]]] = {}
    for key, entry in devices.names():
        for name in entry.get("machines") or ():
            found.setdefault(tokens_of(name), []).append((str(entry.get("released") or ""), key))
    ordered = sorted(found.items(), key=lambda item: -len(item[0]))
    return tuple((name, tuple(key for _, key in sorted(keys, reverse=True))) for name, keys in ordered)


def _settled(text: str, reading: Reading, found: _Named, whose: str | None, catalog: Catalog) -> Meant:
    """Choose by memory among what a name may mean.

    Raises:
        UsageError: several are left, or none of that memory is sold.
    """
    devices, chosen, ids = catalog.devices, found.chosen, found.ids
    if reading.sizes_gib:
        ids = _of_size(reading, found, devices)
        if not ids:
            raise _not_sold(text, reading, found, devices)
        chosen = chosen if chosen in ids else ids[0] if len(ids) == 1 else None
    if chosen is None:
        raise ambiguous("device", text, ids)
    own = index_of(devices).exact.get(joined(tokens_of(reading.text))) == chosen
    memory = _size(devices, chosen, reading.sizes_gib) if reading.sizes_gib else None
    stated = memory or None
    count = reading.count if found.each == 1 else found.each * (reading.count or 1)
    if own and stated is None:
        return Meant(chosen, None, count, None, whose)
    others = tuple(key for key in ids if key != chosen)
    note = taken_note(text, chosen, () if own else others)
    if stated is not None:
        note = note.replace(f"took '{chosen}'", f"took '{chosen}' with {stated:g} GiB", 1)
    if count != reading.count:
        note = note.replace("took ", f"took {count} x ", 1)
    return Meant(chosen, None, count, stated, whose, note, others)


def _of_size(reading: Reading, found: _Named, devices: Records[Any]) -> tuple[str, ...]:
    """Give the devices of that memory: of what the name means, else of all that are called so and something more.

    Of several those stay that are called just so but for the size, else those whose names have the words side by side.
    """
    index, tokens = index_of(devices), tokens_of(reading.text)
    called = tuple(dict.fromkeys(key for name, key in index.names if holds(name, tokens)))
    for keys in (found.ids[:1] if found.chosen else (), (*found.ids, *called)):
        able = tuple(dict.fromkeys(key for key in keys if _size(devices, key, reading.sizes_gib) is not None))
        if able:
            same = {key for name, key in index.names if key in able and _without_size(name) == core_of(tokens)}
            beside = {key for name, key in index.names if key in able and _place(name, tokens) is not None}
            return tuple(key for key in able if key in (same & beside or beside or same or able))
    return ()


def _without_size(name: Tokens) -> Tokens:
    """Give the words of a name that its series does not share and that are no size: (4090,) of rtx-4090-48gb."""
    sizes = {at for at in range(len(name) - 1) if name[at][0].isdigit() and name[at + 1] == "gb"}
    return core_of(tuple(word for at, word in enumerate(name) if at not in sizes and at - 1 not in sizes))


def _size(devices: Records[Any], key: str, sizes: Sequence[float]) -> float | None:
    """Give the memory of a device that is one of the sizes, in GiB; 0: the only one that it has; None: it has none."""
    options = devices.peek(key, "memory_options_gib")
    if isinstance(options, list | tuple) and options:
        return next((float(own) for size in sizes for own in options if abs(own / size - 1) < SIZE_SLACK), None)
    if devices.peek(key, "kind") == "cpu":
        return sizes[0]
    reported = float(str(devices.peek(key, "memory_reported_mib") or 0)) * MIB / GIB
    own = float(str(devices.peek(key, "memory_gib") or 0))
    return 0.0 if any(abs(size / one - 1) < SIZE_SLACK for size in sizes for one in (own, reported) if one) else None


def _not_sold(text: str, reading: Reading, found: _Named, devices: Records[Any]) -> UsageError:
    """Make the error of a memory size that no device of that name is sold with."""
    shown = []
    for key in found.ids[:4]:
        sizes = devices.peek(key, "memory_options_gib") or [devices.peek(key, "memory_gib")]
        shown.append(f"{key} with {', '.join(f'{float(size):g}' for size in sizes)} GiB")  # type: ignore[attr-defined]
    size = reading.sizes_gib[0]
    hint = f"Known: {'; '.join(shown)}. If yours is modified, leave the size out and say --memory {size:g}GiB."
    return UsageError("unknown-device", f"no '{printable(text, 40)}' is known with {size:g} GiB", hint, found.ids[:4])


def _offer(reading: Reading, whose: str | None, catalog: Catalog, *, by_words: bool) -> str | None:
    """Give the offer of that name, or the only one whose names have all of its words."""
    offers = catalog.offers
    index, tokens = index_of(offers), tokens_of(reading.text)
    found = index.exact.get(joined(tokens)) or index.defaults.get(tokens)
    if found is not None or not by_words:
        return found
    wanted = tuple(word for word in tokens if word not in FILLERS)
    if not wanted or not any(word[0].isdigit() for word in wanted):
        return index.defaults.get(wanted)
    able = dict.fromkeys(key for name, key in index.names if not Counter(wanted) - Counter(name))
    lent = [
        key for key in able if offers.peek(key, "tier") != "retired" and whose in (None, offers.peek(key, "provider"))
    ]
    return lent[0] if len(lent) == 1 else index.defaults.get(wanted)


def _lent(text: str, reading: Reading, key: str, catalog: Catalog) -> Meant:
    """Give what an offer lends.

    Raises:
        UsageError: several of one that is lent one at a time.
    """
    offers = catalog.offers
    device, count = str(offers.peek(key, "device")), int(str(offers.peek(key, "count") or 1))
    if reading.count not in (None, 1):
        hint = f"Name its devices instead, such as {int(reading.count or 1) * count}x{device}."
        raise UsageError("bad-quantity", f"'{key}' is a whole machine, lent one at a time", hint, [device])
    own = index_of(offers).exact.get(joined(tokens_of(reading.text))) == key
    return Meant(device, key, count, note=None if own else taken_note(text, key, ()))


@functools.lru_cache(maxsize=8)
def _providers(catalog: Catalog) -> Mapping[str, str]:
    """Give the words that name a provider, and the provider: its id, and how else people call it."""
    found: dict[str, str] = {}
    for _, entry in catalog.offers.names():
        found[str(entry.get("provider"))] = str(entry.get("provider"))
    for _, entry in catalog.devices.names():
        found |= {str(price["provider"]): str(price["provider"]) for price in entry.get("prices") or ()}
    for file in catalog.offers.files:
        for provider, names in (file.data.get("providers") or {}).items():
            found |= dict.fromkeys(names, provider)
    return found

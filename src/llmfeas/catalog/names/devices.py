"""Devices that a name may mean: by its own name, as a slice of a pod, in the machine that holds it, of one memory."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

from ...record import dataclass, replace
from ...units import GB, GIB, MIB
from ..search import Index, Tokens, choice, core_of, holds, index_of, joined, tokens_of
from .typed import DECIMAL_SLACK, FILLERS, SIZE_SLACK, SPACED, Reading

if TYPE_CHECKING:
    from ..store import Catalog, Records

_TOPOLOGY: Final = re.compile(r"(.*?)[\s_-]([0-9]{1,3}(?:x[0-9]{1,3}){1,2})", re.IGNORECASE)
_SLICE: Final = re.compile(r"(.*?)[\s_-]([0-9]{1,6})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Named:
    """What a name may mean: the likeliest device (None: several are as likely), all of them, devices in one of it."""

    chosen: str | None
    ids: tuple[str, ...]
    each: int = 1
    worded: bool = False
    """All of them have all the words that were asked for, series words too."""


def named(name: str, catalog: Catalog, *, whole: bool) -> Named | None:
    """The devices that a name may mean: by its own name, as a slice of a pod, in the machine that holds it.

    `whole`: only by the whole name, since a size in it is better read off.
    """
    index, tokens = index_of(catalog.devices), tokens_of(name)
    exact = index.exact.get(joined(tokens))
    if exact is None and FILLERS.issuperset(tokens):
        return None
    if exact is None and not whole:
        found = _slice(name, catalog) or _in_machine(tokens, catalog)
        if found is not None:
            return found
    if whole:
        chosen = exact or index.defaults.get(tokens)
        return Named(chosen, (chosen,)) if chosen else None
    chosen, ids = choice(index, tokens)
    if chosen is not None and name.strip().isalnum():  # p100 is one word, and p106-100 has it not
        beside = {key for words, key in index.names if key in ids and place(words, tokens) is not None}
        ids = tuple(key for key in ids if key in beside or key == chosen)
    if chosen is None:
        ending = list(dict.fromkeys(key for name, key in index.names if key in ids and name[-len(tokens) :] == tokens))
        chosen = ending[0] if len(ending) == 1 and any(word[0].isdigit() for word in tokens) else None
    if exact is not None:
        return Named(exact, (exact, *(key for key in ids if key != exact)))
    if not ids and chosen is None:
        chosen = _in_another_order(index, tokens)
        ids = () if chosen is None else (chosen,)
    return Named(chosen, ids) if ids else None


def _in_another_order(index: Index, tokens: Tokens) -> str | None:
    """The only entry with a name of the same words (`titan rtx`, `laptop 3070`), those of its series aside."""
    wanted = sorted(core_of(tokens))
    found = {key for name, key in index.names if len(name) <= len(tokens) + 2 and sorted(core_of(name)) == wanted}
    return found.pop() if len(found) == 1 and len(wanted) > 1 else None


def _slice(name: str, catalog: Catalog) -> Named | None:
    """Read `v5e-8`, `v5litepod-16`, `v4-8` (eight TensorCores are four devices), `v6e 2x4`."""
    for pattern in (_TOPOLOGY, _SLICE):
        match = pattern.fullmatch(name.strip())
        key = match and index_of(catalog.devices).exact.get(joined(tokens_of(match[1])))
        if match and key and catalog.devices.peek(key, "backend") == "tpu":
            cores = int(str(catalog.devices.peek(key, "slice_cores") or 1)) if pattern is _SLICE else 1
            number = prod(int(side) for side in match[2].lower().split("x"))
            if number and number % cores == 0:
                return Named(key, (key,), number // cores)
    return None


def _in_machine(tokens: Tokens, catalog: Catalog) -> Named | None:
    """Read `mac mini m4 pro`: the machine says which devices it may be, the rest which of them it is."""
    index = index_of(catalog.devices)
    for machine, keys in machines(catalog.devices):
        begin = place(tokens, machine)
        if begin is None:
            continue
        rest = (*tokens[:begin], *tokens[begin + len(machine) :])
        exact = index.exact.get(joined(rest)) or index.defaults.get(rest)
        ids = keys if not rest else tuple(key for key in keys if has(index, key, rest))
        if rest and exact is not None and exact not in keys and not ids:
            return Named(exact, (exact,))
        chosen = exact if exact in ids else ids[0] if len(ids) == 1 else None
        if ids:
            each = int(str(catalog.devices.peek(ids[0], "devices_per_node") or 1))
            first = () if chosen is None else (chosen,)
            return Named(chosen, (*first, *(key for key in ids if key != chosen)), each, worded=True)
    return None


def has(index: Index, key: str, words: Tokens) -> bool:
    """Whether some name of an entry has the words in this order."""
    return any(holds(name, words) for name, owner in index.names if owner == key)


def place(tokens: Tokens, wanted: Tokens) -> int | None:
    """Where words stand side by side in others."""
    last = len(tokens) - len(wanted)
    return next((at for at in range(last + 1) if tokens[at : at + len(wanted)] == wanted), None)


@functools.lru_cache(maxsize=8)
def machines(devices: Records[Any]) -> tuple[tuple[Tokens, tuple[str, ...]], ...]:
    """What machines are called, the longest names first, and the devices that each is sold with, newest first."""
    told = devices.indexed().get("machines") or machines_from(devices.names())
    return tuple((tuple(name), tuple(keys)) for name, keys in told)


def machines_from(entries: Iterable[tuple[str, Mapping[str, Any]]]) -> list[tuple[Tokens, list[str]]]:
    """The same from ids with what is written of them."""
    found: dict[Tokens, list[tuple[str, str]]] = {}
    for key, entry in entries:
        for name in entry.get("machines") or ():
            found.setdefault(tokens_of(name), []).append((str(entry.get("released") or ""), key))
    ordered = sorted(found.items(), key=lambda item: -len(item[0]))
    return [(name, [key for _, key in sorted(keys, reverse=True)]) for name, keys in ordered]


_MADE_BY: Final = {
    "nvidia": frozenset(["nvidia", "geforce", "gtx", "rtx", "quadro", "tesla"]),
    "amd": frozenset(["amd", "radeon", "rx", "ryzen", "epyc", "threadripper", "instinct", "firepro"]),
    "intel": frozenset(["intel", "arc", "xeon", "celeron", "pentium"]),
    "apple": frozenset(["apple", "macbook", "imac", "mac", "iphone", "ipad"]),
}
"""Words that only one maker's names have."""


_SIBLINGS: Final = frozenset(("ti", "super"))
"""Words with which NVIDIA calls another card than the one of the same number without them."""
_APART: Final = (("quadro", "pro"),)
"""Series of one maker that number alike: a name with the first word is none of a device that has only the second."""


def of_its_maker(found: Named, text: str, devices: Records[Any]) -> Named | None:
    """What a name may mean without devices of another maker or series than it names: a `GTX 580` is no RX 580, a
    `Quadro 2000` no RTX PRO 2000, and a `GTX 750` no 750 Ti where that is all that is known; None: nothing.
    """
    ids = tuple(key for key in found.ids if not is_anothers(key, text, devices) and not _of_another_series(key, text))
    if found.chosen is not None and not found.worded and _is_sibling(found.chosen, text, devices):
        ids = tuple(key for key in ids if not _is_sibling(key, text, devices))
    if not ids:
        return None
    return replace(found, ids=ids, chosen=found.chosen if found.chosen in ids else ids[0] if len(ids) == 1 else None)


def _of_another_series(key: str, text: str) -> bool:
    """Whether a device is of a series that numbers like the one whose word a text has."""
    words, own = tokens_of(text), tokens_of(key)
    return any(one in words and other in own and one not in own for one, other in _APART)


def is_larger(key: str, text: str) -> bool:
    """Whether a text has the name of a chip and behind it a word that makes it a larger one: an M6 Pro is no M6."""
    words, own = tokens_of(text), tokens_of(key)
    at = place(words, own) if own[0] == "m" else None
    return at is not None and words[at + len(own) : at + len(own) + 1] in (("pro",), ("max",), ("ultra",))


def _is_sibling(key: str, text: str, devices: Records[Any]) -> bool:
    """Whether every name of a device has a word that makes it another card than the one asked for."""
    words = set(tokens_of(text))
    names = [set(name) for name, owner in index_of(devices).names if owner == key]
    return any(word not in words and all(word in name for name in names) for word in _SIBLINGS)


def is_anothers(key: str, text: str, devices: Records[Any]) -> bool:
    """Whether a device is of another maker than the one whose words a text has."""
    words = set(SPACED.split(text.lower().replace("-", " ")))
    makers = [maker for maker, own in _MADE_BY.items() if words & own]
    vendor = str(devices.peek(key, "vendor"))
    return len(makers) == 1 and vendor in _MADE_BY and vendor != makers[0]


def of_size(reading: Reading, found: Named, devices: Records[Any]) -> tuple[str, ...]:
    """The devices of that memory: of what the name means, else of all that are called so and something more.

    Of several those stay that are called just so but for the size, else those whose names have the words side by side.
    """
    index, tokens = index_of(devices), tokens_of(reading.text)
    called = found.ids if found.worded else dict.fromkeys(key for name, key in index.names if holds(name, tokens))
    for keys in (found.ids[:1] if found.chosen else (), called):
        able = tuple(dict.fromkeys(key for key in keys if size_gib(devices, key, reading.sizes_gib) is not None))
        if able:
            same = {key for name, key in index.names if key in able and _without_size(name) == core_of(tokens)}
            beside = {key for name, key in index.names if key in able and place(name, tokens) is not None}
            return tuple(key for key in able if key in (same & beside or beside or same or able))
    return ()


def _without_size(name: Tokens) -> Tokens:
    """The words of a name that its series does not share and that are no size: (4090,) of rtx-4090-48gb."""
    sizes = {at for at in range(len(name) - 1) if name[at][0].isdigit() and name[at + 1] == "gb"}
    return core_of(tuple(word for at, word in enumerate(name) if at not in sizes and at - 1 not in sizes))


def size_gib(devices: Records[Any], key: str, sizes: Sequence[float]) -> float | None:
    """The memory of a device that is one of the sizes, in GiB; 0: the only one that it has; None: it has none."""
    options = devices.peek(key, "memory_options_gib")
    if isinstance(options, list | tuple) and options:
        return next((float(own) for size in sizes for own in options if abs(own / size - 1) < SIZE_SLACK), None)
    if devices.peek(key, "kind") == "cpu":
        return sizes[0]
    reported = float(str(devices.peek(key, "memory_reported_mib") or 0)) * MIB / GIB
    own = float(str(devices.peek(key, "memory_gib") or 0))
    sold = any(
        abs(size / one - 1) < SIZE_SLACK or abs(size * GB / GIB / one - 1) < DECIMAL_SLACK
        for size in sizes
        for one in (own, reported)
        if one
    )
    return 0.0 if sold else None

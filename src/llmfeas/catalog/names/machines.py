"""Machines as people type them: `2x 3090`, `mac mini m4 16gb`, `v5e-8`, `aws p5.48xlarge`, `runpod 4090`, `t4 x2`.

What stands around the name is read off by rule (`typed`). The name that is left is looked up as any other (`search`);
of the devices that it may mean, those stay that have the memory and come in the machine.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from ...errors import UsageError
from ...record import dataclass, replace
from ...text import printable
from ..search import LONGEST, Tokens, alike, ambiguous, index_of, is_written, joined, taken_note, tokens_of, unknown
from ..store import data_file, data_folder
from .beside import names_a_computer
from .devices import Named, is_anothers, is_larger, machines, named, of_its_maker, of_size, place, size_gib
from .typed import FILLERS, SIZE_WORDS, SPACED, Reading, readings, spellings

if TYPE_CHECKING:
    from ..store import Catalog, Records

FEWEST_WORDS: Final = 3
"""Words and numbers from which on they may mean an offer whose provider nobody names."""
NEAR: Final = 0.75
"""How much two words must have in common for one to be a slip of the other."""
TELLING: Final = 4
"""Letters from which on a word of a name says whose series it is: no suggestion brings in one that nobody asked for."""


_SPACED_POINT: Final = re.compile(r"(?<=[0-9])[ _-](?=[0-9])")
"""What people write for the point of `p5.48xlarge`."""


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
    """What a typed name means.

    Raises:
        UsageError: `unknown-device`, `ambiguous-device`, or `bad-quantity` for a count of 0 or a size that is not sold.
    """
    plain, refused = text[:LONGEST], None
    whose, rest = _provider_and_rest(plain, catalog)
    orders = (plain,) if whose is None or not rest else (plain, f"{rest} {whose}")
    for read in (_as_named, _as_worded_offer):
        for reading in chain.from_iterable(map(readings, orders)):
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
    raise (
        refused
        or _of_a_size_alone(plain, catalog)
        or _not_modelled(plain)
        or unknown(index_of(catalog.devices), "device", plain, _near(plain, catalog))
    )


def _not_modelled(text: str) -> UsageError | None:
    """The error of an accelerator whose maker is known and of which nothing is modelled; None of others."""
    words = set(SPACED.split(text.lower())) | set(tokens_of(text))
    known = data_file(data_folder(), "unpublished", needed=False).data.get("makers", ())
    maker = next((each["maker"] for each in known if set(each["words"]) <= words), None)
    if maker is None:
        return None
    problem = f"'{printable(text, 40)}' is an accelerator of {maker}: none of that maker is modelled here"
    hint = "One of your own can be described in a catalog: 'llmfeas devices list' names those that are there."
    return UsageError("unknown-device", problem, hint)


def _of_a_size_alone(text: str, catalog: Catalog) -> UsageError | None:
    """The error of a text that says how much memory and no device: `24GB VRAM`, `16GB RAM`; None of others."""
    from .beside import without_main_memory

    sized = next((reading for reading in readings(text) if reading.sizes_gib and not reading.whole), None)
    if sized is None or set(tokens_of(sized.text)) - FILLERS - set(SIZE_WORDS):
        return None
    size = sized.sizes_gib[0]
    problem = f"'{printable(text, 40)}' says how much memory, and of no device"
    main = f"--device cpu --memory {size:g}GiB is a computer of so much main memory"
    cards = [key for key in catalog.devices if catalog.devices.peek(key, "kind") == "consumer"]
    cards = [key for key in cards if size_gib(catalog.devices, key, (size,)) is not None]
    cards.sort(key=lambda key: str(catalog.devices.peek(key, "released") or ""), reverse=True)
    if "ram" in tokens_of(text) or without_main_memory(f"x {text}") or not cards:
        return UsageError("unknown-device", problem, f"{main}; with a card: 'rtx 4060, {size:g}GB RAM'.")
    return UsageError("unknown-device", problem, f"Cards of so much: {', '.join(cards[:5])}; {main}.")


def _as_named(text: str, reading: Reading, catalog: Catalog) -> Meant | None:
    """Take a reading for an offer of that name, or with its provider among the words; else for a device."""
    whose, name = _provider_and_rest(reading.text, catalog)
    offer = _offer(reading, whose, catalog, by_words=whose is not None)
    if offer is not None:
        return _lent(text, reading, offer, catalog)
    for spelling in spellings(name):
        found = named(spelling, catalog, whole=reading.whole)
        found = found and of_its_maker(found, text, catalog.devices)
        if found is not None:
            return _settled(text, replace(reading, text=spelling), found, whose, catalog)
    return None


def _as_worded_offer(text: str, reading: Reading, catalog: Catalog) -> Meant | None:
    """Take a reading for the only offer that has all of its words: `NC24ads A100`."""
    if reading.count is not None or reading.sizes_gib:
        return None
    whose, _ = _provider_and_rest(reading.text, catalog)
    offer = _offer(reading, whose, catalog, by_words=True)
    return None if offer is None else _lent(text, reading, offer, catalog)


def _provider_and_rest(text: str, catalog: Catalog) -> tuple[str | None, str]:
    """The provider that a text names, and the text without its words."""
    providers, words = _providers(catalog), SPACED.split(text.lower())
    named = [providers[word] for word in words if word in providers]
    if not named:
        return None, text
    return named[0], " ".join(word for word in words if word not in providers)


def _settled(text: str, reading: Reading, found: Named, whose: str | None, catalog: Catalog) -> Meant:
    """Choose by memory among what a name may mean.

    Raises:
        UsageError: several are left, or none of that memory is sold.
    """
    devices, chosen, ids = catalog.devices, found.chosen, found.ids
    if reading.sizes_gib:
        ids = of_size(reading, found, devices)
        together = found.each * (reading.count or 1)
        if not ids and together > 1:  # what all of them have
            reading = replace(reading, sizes_gib=tuple(size / together for size in reading.sizes_gib))
            ids = of_size(reading, found, devices)
        if not ids and reading.bare and not _is_sold(reading.sizes_gib[-1], devices):
            raise unknown(index_of(devices), "device", text, list(found.ids[:2]))
        if not ids:
            raise _not_sold(text, reading, found, devices)
        chosen = chosen if chosen in ids else ids[0] if len(ids) == 1 else None
    if chosen is None:
        raise ambiguous("device", text, ids)
    if is_larger(chosen, reading.text):
        raise unknown(index_of(devices), "device", text, [chosen])
    own = index_of(devices).exact.get(joined(tokens_of(reading.text))) == chosen
    memory = size_gib(devices, chosen, reading.sizes_gib) if reading.sizes_gib else _least(reading, chosen, devices)
    count = reading.count if found.each == 1 else found.each * (reading.count or 1)
    if memory and devices.peek(chosen, "kind") == "cpu":
        memory /= count or 1  # that of a machine with so many processors
    stated = memory or None
    if own and stated is None:
        return Meant(chosen, None, count, None, whose)
    others = tuple(key for key in ids if key != chosen)
    note = taken_note(text, chosen, () if own else others)
    if stated is not None:
        each = " each" if (count or 1) > 1 else ""
        note = note.replace(f"took '{chosen}'", f"took '{chosen}' with {stated:g} GiB{each}", 1)
    if count != reading.count:
        note = note.replace("took ", f"took {count} x ", 1)
    return Meant(chosen, None, count, stated, whose, note, others)


@functools.lru_cache(maxsize=64)
def _is_sold(size: float, devices: Records[Any]) -> bool:
    """Whether any device has so much memory."""
    return any(size_gib(devices, key, (size,)) is not None for key in devices if devices.peek(key, "kind") != "cpu")


def _least(reading: Reading, chosen: str, devices: Records[Any]) -> float | None:
    """The size that is assumed of a machine which is sold with fewer than its device; None where there is none such."""
    words, sold = tokens_of(reading.text), devices.peek(chosen, "machine_sizes") or ()
    found = (each["memory_gib"][0] for each in sold if place(words, tokens_of(each["machine"])) is not None)  # type: ignore[attr-defined]
    return next(map(float, found), None)


def _not_sold(text: str, reading: Reading, found: Named, devices: Records[Any]) -> UsageError:
    """Make the error of a memory size that no device of that name is sold with."""
    shown = []
    for key in found.ids[:1] if found.chosen else found.ids[:4]:
        sizes = devices.peek(key, "memory_options_gib") or [devices.peek(key, "memory_gib")]
        shown.append(f"{key} with {', '.join(f'{float(size):g}' for size in sizes)} GiB")  # type: ignore[attr-defined]
    size = reading.sizes_gib[0]
    hint = f"Known: {'; '.join(shown)}. If yours is modified, leave the size out and say --memory {size:g}GiB."
    return UsageError("unknown-device", f"no '{printable(text, 40)}' is known with {size:g} GiB", hint, found.ids[:4])


def _offer(reading: Reading, whose: str | None, catalog: Catalog, *, by_words: bool) -> str | None:
    """The offer of that name, or the only one whose names have all of its words."""
    offers = catalog.offers
    index, tokens = index_of(offers), tokens_of(reading.text)
    spelled = _SPACED_POINT.sub(".", reading.text)
    spelled = spelled if joined(tokens_of(spelled)) in index.exact else reading.text
    found = index.exact.get(joined(tokens_of(spelled))) or index.defaults.get(tokens)
    if found is not None and whose is None and not is_written(offers, found, spelled):
        found = None  # `8x v100` is no Lambda machine, which `gpu_8x_v100` is
    if found is not None or not by_words:
        return found
    bare = index.exact.get(joined(tokens_of(_provider_and_rest(reading.text, catalog)[1])))
    if bare is not None and offers.peek(bare, "provider") == whose:
        return bare
    wanted = tuple(word for word in tokens if word not in FILLERS)
    if joined(wanted) in index.exact:
        return index.exact[joined(wanted)]
    if not any(word[0].isdigit() for word in wanted) or (whose is None and len(wanted) < FEWEST_WORDS):
        return index.defaults.get(wanted)
    glued = [joined(tokens_of(word)) for word in SPACED.split(reading.text)]
    able = dict.fromkeys(
        key
        for name, key in index.names
        if not Counter(wanted) - Counter(name) and all(word in joined(name) for word in glued if word not in FILLERS)
    )
    lent = [
        key for key in able if offers.peek(key, "tier") != "retired" and whose in (None, offers.peek(key, "provider"))
    ]
    if reading.count is not None:  # so many devices, no machines that have several
        lent = [key for key in lent if int(str(offers.peek(key, "count") or 1)) == 1]
    return lent[0] if len(lent) == 1 else index.defaults.get(wanted)


def _lent(text: str, reading: Reading, key: str, catalog: Catalog) -> Meant:
    """What an offer lends.

    Raises:
        UsageError: several of one that is lent one at a time.
    """
    offers = catalog.offers
    device, count = str(offers.peek(key, "device")), int(str(offers.peek(key, "count") or 1))
    times = reading.count or 1
    if times > 1 and offers.peek(key, "tier") == "free":
        hint = f"Name its devices instead, such as {times * count}x{device}."
        raise UsageError("bad-quantity", f"'{key}' is a whole machine, lent one at a time", hint, [device])
    own = index_of(offers).exact.get(joined(tokens_of(reading.text))) == key
    return Meant(device, key, times * count, note=None if own else taken_note(text, key, ()))


@functools.lru_cache(maxsize=8)
def _providers(catalog: Catalog) -> Mapping[str, str]:
    """The words that name a provider, and the provider: its id, and how else people call it."""
    told: Mapping[str, str] | None = catalog.devices.indexed() and catalog.offers.indexed().get("providers")
    return told or providers_of(catalog.offers, catalog.devices)


def providers_of(offers: Records[Any], devices: Records[Any]) -> Mapping[str, str]:
    """The same of the catalog's offers and devices."""
    found: dict[str, str] = {}
    for _, entry in offers.names():
        found[str(entry.get("provider"))] = str(entry.get("provider"))
    for _, entry in devices.names():
        found |= {str(price["provider"]): str(price["provider"]) for price in entry.get("prices") or ()}
    for file in offers.files:
        for provider, names in (file.data.get("providers") or {}).items():
            found |= dict.fromkeys((provider, *names), provider)
    return found


DIGITS_OF_A_CARD: Final = 4
"""A number alone of as many may be a card's with a slip (`4095`)."""


def _near(text: str, catalog: Catalog) -> list[str]:
    """What an unknown name may have meant: what its machine is sold with, else devices or offers spelled so."""
    tokens = tokens_of(text)
    told = set(tokens) - FILLERS - set(SIZE_WORDS) - {word for word in tokens if word.isdigit()}
    alone = len(tokens) == 1 and len(tokens[0]) == DIGITS_OF_A_CARD
    if names_a_computer(text) or not (told or alone):
        return []
    for machine, keys in machines(catalog.devices):
        if place(tokens, machine) is not None:
            return list(keys[:4])
    near = alike(index_of(catalog.devices), text, _may_mean)
    near = [key for key in near if not is_anothers(key, text, catalog.devices)]
    family = _provider_and_rest(text, catalog)[1].lower()
    sizes = [key for key in catalog.offers if key.startswith((f"{family}.", f"{family}-", f"standard-{family}-"))]
    return sizes[:4] or near or alike(index_of(catalog.offers), text, _may_mean)


def _may_mean(asked: Tokens, name: Tokens) -> bool:
    """Whether one may be a slip of the other: the same words but for their spelling, whatever the numbers."""
    words, theirs = [[word for word in tokens if word.isalpha()] for tokens in (asked, name)]
    telling = [word for word in theirs if len(word) >= TELLING and words]
    if any(len(word) >= TELLING and not word.isalpha() and word in name for word in asked):
        series = [word for word in words if len(word) == 1 and word not in FILLERS]
        return all(_resembles(word, words) for word in telling) and all(word in theirs for word in series)
    return all(_resembles(word, theirs) for word in words) and all(_resembles(word, words) for word in telling)


def _resembles(word: str, others: Sequence[str]) -> bool:
    if word in others:
        return True
    return len(word) > 1 and any(
        sorted(word) == sorted(other) or SequenceMatcher(None, word, other, autojunk=False).ratio() >= NEAR
        for other in others
    )

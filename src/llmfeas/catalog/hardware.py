"""What `--device` names: a device, how many of it, with how much memory, and the offer that it comes in."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..errors import UsageError
from ..record import dataclass, replace
from ..text import printable
from ..units import GIB
from .device import Device, Offer
from .joined import joined
from .named import exact_id

if TYPE_CHECKING:
    from .store import Catalog


@dataclass(frozen=True, slots=True)
class Hardware:
    """What `--device` names."""

    device: Device
    """Of an offer that lends a part of a device, that part."""
    count: int | None = None
    """As written (`8xh100`) or as offered; None: not said."""
    offer: Offer | None = None
    note: str | None = None
    others: tuple[str, ...] = ()
    memory_gib: float | None = None
    """Of a machine sold in several sizes, the one that its name says (`m4 16gb`); None: not said."""
    provider: str | None = None
    """From whom it is rented (`runpod 4090`); None: not said."""
    host_memory_bytes: int | None = None
    """Main memory of the machine that it is in; None: not known."""
    power_limit_w: float | None = None
    """What each is limited to here, below its board's power; None: not known, or nothing below."""


@functools.lru_cache(maxsize=4096)
def find_hardware(text: str, catalog: Catalog) -> Hardware:
    """Find the device or offer that `text` names, as people type it: `8xh100-sxm`, `mac mini m4 16gb`, `g5.2xlarge`.

    Raises:
        UsageError: `unknown-device`, `ambiguous-device`, or `bad-quantity` for a count of 0.
    """
    count, _, rest = text.partition("x")
    if count.isdecimal() and int(count[:9]) and rest in catalog.devices:
        return Hardware(catalog.devices[rest], int(count))
    if text in catalog.devices:
        return Hardware(catalog.devices[text])
    from .names.bus import sold_as
    from .search import LONGEST, is_written

    if sold := sold_as(text):
        return _on_bus(text, sold, catalog)
    own = exact_id(catalog.offers, text)
    if own is not None and is_written(catalog.offers, own, text):
        return _lent(catalog.offers[own], catalog, None)
    from .names.typed import says_two_sizes

    try:
        return (_with_main_memory(text[:LONGEST], catalog) if says_two_sizes(text) else None) or _named(text, catalog)
    except UsageError:
        for read in (_in_slices, _with_main_memory, _together, _in_computer, _with_processor, _mended):
            hardware = read(text[:LONGEST], catalog)
            if hardware is not None:
                return hardware
        raise


def _on_bus(text: str, sold: tuple[str, ...], catalog: Catalog) -> Hardware:
    """The one device that a line of a bus means.

    Raises:
        UsageError: as `find_hardware`; several, where the chip is in several.
    """
    from .search import ambiguous, index_of, unknown

    if len(sold) == 1:
        return find_hardware(sold[0], catalog)
    found = [_found(name, catalog) for name in sold]
    known = {each.device.id: each for each in found if each is not None}
    if len(known) > 1:
        raise ambiguous("device", text, tuple(known))
    if not known or None in found:
        raise unknown(index_of(catalog.devices), "device", text, list(known))
    return known.popitem()[1]


def _named(text: str, catalog: Catalog) -> Hardware:
    """What one name means.

    Raises:
        UsageError: as `find_hardware`.
    """
    from .names.machines import meant

    found = meant(text, catalog)
    if found.offer is not None:
        return _lent(catalog.offers[found.offer], catalog, found.count, found.note)
    device = catalog.devices[found.device]
    return Hardware(device, found.count, None, found.note, found.others, found.memory_gib, found.provider)


MOST_PARTS = 16


def _found(text: str, catalog: Catalog, find: Callable[[str, Catalog], Hardware] = find_hardware) -> Hardware | None:
    try:
        return find(text, catalog)
    except UsageError:
        return None


def _is_card(device: Device) -> bool:
    return not device.is_unified and device.kind not in ("cpu", "apu")


def _with_main_memory(text: str, catalog: Catalog) -> Hardware | None:
    """Read `rtx 3090, 64gb ram`: the card, in a machine of so much; None where that is not what it says."""
    from .names.beside import without_main_memory

    said = without_main_memory(text)
    found = said and _found(said[0], catalog)
    if not said or not found or not _is_card(found.device):
        return None
    note = f"took '{found.device.id}' with {said[1]} GiB of main memory for '{printable(text, 40)}'"
    return replace(found, note=note, host_memory_bytes=int(said[1] * GIB))


def _in_slices(text: str, catalog: Catalog) -> Hardware | None:
    """Read `h100 3g.40gb`: a slice of it; None where that is not what it says."""

    said = without_profile(text)
    found = said and _found(said[0], catalog)
    if not said or not found or found.offer is not None:
        return None
    devices = [catalog.devices[each] for each in (found.device.id, *found.others) if each in catalog.devices]
    part = next(filter(None, (named_slice(each, said[1]) for each in devices)), None)
    if part is None:
        return None
    return Hardware(part, found.count, None, f"took a slice of '{part.id.split(':')[0]}' for '{printable(text, 40)}'")


def _in_computer(text: str, catalog: Catalog) -> Hardware | None:
    """Read `legion 5 rtx 3060`: what is in the computer, the notebook's own variant first; None: that says nothing."""
    from .names.beside import without_computer

    computer = without_computer(text)
    if computer is None:
        return None
    own = _found(f"{computer.rest} laptop", catalog, _named) if computer.notebook else None
    found = own or _found(computer.rest, catalog)
    return found and replace(found, note=f"took '{found.device.id}' for '{printable(text, 40)}'")


def _with_processor(text: str, catalog: Catalog) -> Hardware | None:
    """Read `i9-13900k rtx 4090`: the card, whose machine has that processor; None where that is not what it says."""
    from .names.beside import halves

    for pair in halves(text):
        one, other = (_found(half, catalog, _named) for half in pair)
        for card, processor, half in ((one, other, pair[1]), (other, one, pair[0])):
            known = card and processor and _is_card(card.device) and processor.device.kind == "cpu"
            if card and processor and known and _is_numbered(half):
                return _beside(text, card, processor)
    return None


def _is_numbered(name: str) -> bool:
    """Whether a processor is named by a number and letters: `laptop` is a place, `8 80gb` a count and a size."""
    from .names.typed import SIZE_WORDS
    from .search import tokens_of

    words = tokens_of(name)
    letters = any(word.isalpha() and word not in SIZE_WORDS for word in words)
    return letters and any(word[0].isdigit() for word in words)


def _mended(text: str, catalog: Catalog) -> Hardware | None:
    """Read `nvida rtx 4090`; None where no word is a slip."""
    from .names.slips import mended
    from .names.typed import SPACED
    from .search import vocabulary

    words = tuple(filter(None, SPACED.split(text.lower())))
    meant = mended(words, vocabulary(catalog.devices))
    found = _found(" ".join(meant), catalog, _named) if meant else None
    return found and replace(found, note=found.note or f"took '{found.device.id}' for '{printable(text, 40)}'")


def _beside(text: str, card: Hardware, processor: Hardware) -> Hardware:
    note = f"took '{card.device.id}' for '{printable(text, 40)}'; its processor, {processor.device.id}, changes nothing"
    return replace(card, note=note)


def _together(text: str, catalog: Catalog) -> Hardware | None:
    """What the parts of `a+b` are together; None where they name no devices.

    Raises:
        UsageError: `unequal-devices` for parts that no engine joins.
    """
    from .names.beside import parts

    names = parts(text)
    if not 1 < len(names) <= MOST_PARTS:
        return None
    found = [each for each in (_found(name, catalog) for name in names) if each is not None]
    if len(found) < len(names):
        return None
    cards = [each for each in found if _is_card(each.device)]
    if len(cards) == 1 < len(found) == 2 and found[found[0] is cards[0]].device.kind == "cpu":
        return _beside(text, cards[0], found[found[0] is cards[0]])
    devices = {each.device.id: each.device for each in found}
    count = sum(each.count or 1 for each in found)
    if len(devices) == 1:
        return Hardware(found[0].device, count)
    _check_parts(found, tuple(devices.values()))
    if count > MOST_PARTS:
        problem = f"{count} unequal devices in one machine: at most {MOST_PARTS} are computed"
        raise UsageError("unequal-devices", problem, "ask for fewer", tuple(devices))
    return Hardware(joined(tuple(each.device for each in found for _ in range(each.count or 1))), count)


def _check_parts(found: list[Hardware], devices: tuple[Device, ...]) -> None:
    """Refuse parts that are in no machine together.

    Raises:
        UsageError: `unequal-devices`.
    """
    names, ids = " and ".join(each.name for each in devices), tuple(each.id for each in devices)
    problem, hint = "", "ask for the devices of one kind"
    if len({each.backend for each in devices}) > 1:
        problem = f"devices of different software are not joined ({names}): no engine serves one model on them"
    elif any(each.is_unified or each.kind == "cpu" for each in devices):
        problem = f"only cards with memory of their own are joined in one machine ({names})"
    elif any(each.offer is not None for each in found):
        problem = "a rented machine is not joined with other devices"
        hint = f"name the devices themselves: {'+'.join(f'{each.count or 1}x{each.device.id}' for each in found)}"
    if problem:
        raise UsageError("unequal-devices", problem, hint, ids)


def _lent(offer: Offer, catalog: Catalog, count: int | None, note: str | None = None) -> Hardware:
    return Hardware(catalog.devices[offer.device].part(offer.share), count or offer.count, offer, note)


def near_devices(text: str, catalog: Catalog) -> list[str]:
    """The ids of devices that `text` means as a whole, or of those that an unknown name is near to."""
    try:
        found = find_hardware(text, catalog)
    except UsageError as error:
        return [name for name in error.candidates if name in catalog.devices]
    return [found.device.id, *found.others]


_PROFILE: Final = re.compile(r"(?<![\w.])([1-9])g[.\s_-]?([1-9]\d{0,2})gb(?:\+\w+)?(?!\w)", re.ASCII | re.IGNORECASE)
_WORD: Final = re.compile(r"(?<!\w)mig(?!\w)", re.ASCII | re.IGNORECASE)
SLACK: Final = 0.1
"""By how much the memory in a profile's name may differ from its share of the whole: names are rounded."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a profile's name says: slices of the compute units, and memory."""

    compute: int
    memory_gib: int


def without_profile(text: str) -> tuple[str, Profile] | None:
    """A name without the profile that stands in it, and that; None where none does, or nothing else."""
    match = _PROFILE.search(text)
    if match is None:
        return None
    rest = " ".join(_WORD.sub(" ", f"{text[: match.start()]} {text[match.end() :]}").split()).strip(" -_:,")
    return (rest, Profile(int(match[1]), int(match[2]))) if rest else None


def named_slice(device: Device, profile: Profile) -> Device | None:
    """The slice of a device; None where it is not divided so.

    Memory is divided into eight parts where compute units are into seven, else into as many; a slice has one, two, four
    or all of them, and reaches no other slice. All compute units come with all memory.
    """
    slices = device.mig_slices
    if slices is None or profile.compute > slices:
        return None
    parts = 8 if slices == 7 else slices
    sizes = [count for count in (1, 2, 4, 8) if count <= parts]
    count = min(sizes, key=lambda each: abs(device.memory_gib * each / parts - profile.memory_gib))
    halved = profile.compute == slices and count < parts
    if halved or abs(device.memory_gib * count / parts / profile.memory_gib - 1) > SLACK:
        return None
    name = f"{profile.compute}g.{profile.memory_gib}gb"
    part = device.part(profile.compute / slices, count / parts) if profile.compute < slices else device
    return replace(
        part, id=f"{device.id}:{name}", name=f"{device.name}, slice {name}", devices_per_node=1, links=(), prices=()
    )

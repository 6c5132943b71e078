"""What people write around the name of a machine, read off by rule: `2x`, `16gb`, `14 inch`, a cloud's own spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ...record import dataclass

COUNT_WORDS: Final = {
    "single": 1, "one": 1, "dual": 2, "two": 2, "twin": 2, "double": 2, "triple": 3, "three": 3, "quad": 4, "four": 4,
    "five": 5, "six": 6, "seven": 7, "eight": 8,
    "zwei": 2, "drei": 3, "vier": 4, "acht": 8, "deux": 2, "trois": 3, "quatre": 4, "huit": 8, "dos": 2, "tres": 3,
    "cuatro": 4, "due": 2, "quattro": 4,
}  # fmt: skip
LONGEST_TEXT: Final = 200
MOST_UNNAMED: Final = 1024
"""A number this large in front of an `x` is part of a name (`5800x3d`), unless what follows is the name of a device."""
LARGEST_BARE_GIB: Final = 512
"""`16g` is memory, the `5600g` of a processor is none."""
SIZE_SLACK: Final = 0.07
"""Between the memory that a name says and the catalog's: a card of 192 GB is sold with 180 GiB, a T4 shows 15."""
DECIMAL_SLACK: Final = 0.01
"""The same where the name means decimal gigabytes: 288 GB are 268 GiB."""
_FILLERS: Final = """a an the my of with w and or for only just gpu gpus card cards graphics vram ram memory unified
    edition founders fe oc gaming modded modified desktop machine box rig system pc node instance vm version used new
    mit von und der die das ein eine karte grafikkarte grafikkarten speicher avec de et une la le carte cartes graphique
    graphiques mémoire hp sli sized standard processor processors apu igpu soc chip notebook ml free tier spaces space
    inference endpoint endpoints nvlink nvlinked ddr4 ddr5 ecc lenovo asus acer msi dell gigabyte evga zotac samsung
    air mini studio gmktec beelink minisforum nuc series nvgpu serverless pod secure community asrock maxsun sparkle
    no without wk turin genoa bergamo milan rome naples sapphire powercolor xfx pny palit inno3d galax gunnir
    onix gddr6 gddr6x gddr7"""
FILLERS: Final = frozenset(_FILLERS.split())
"""Words that say nothing about which device it is; they are passed over where the name is not found with them."""
SIZE_WORDS: Final = ("g", "gb", "gib")
SYNONYMS: Final = {
    "mobile": "laptop",
    "portable": "laptop",
    "notebook": "laptop",
    "maxq": "max-q",
    "rpi": "raspberry-pi",
    "mbp": "macbook pro",
    "mba": "macbook air",
}
_FRONT: Final = re.compile(r"\s*([0-9]{1,12})(?:\s*[x×*]\s*|\s+)(\S.*)", re.IGNORECASE | re.DOTALL)
_TIMES: Final = re.compile(r"\s*[0-9]+\s*[x×*]", re.IGNORECASE)
_BEHIND: Final = re.compile(r"(.*\S)(?:\s*[×*]\s*|\s*\(?[x×*]|[\s_-]x\s*)([0-9]{1,4})\)?\s*", re.IGNORECASE | re.DOTALL)
_COLON: Final = re.compile(r"(?<=\S)\s*:\s*([0-9]{1,4})\s*[x×]?\s*$", re.IGNORECASE)
"""A count where Modal and SkyPilot write it (`A100-80GB:4`, `A100:4x`)."""
_BEHIND_X: Final = re.compile(r"(.*\S)[\s_-]+([0-9]{1,2})[x×]\s*", re.IGNORECASE | re.DOTALL)
_WORDED: Final = re.compile(rf"\s*({'|'.join(COUNT_WORDS)})[\s-]+(\S.*)", re.IGNORECASE | re.DOTALL)
_WORDED_BEHIND: Final = re.compile(rf"\s*(\S.*?)[\s-]+({'|'.join(COUNT_WORDS)})\s*", re.IGNORECASE | re.DOTALL)
_SIZE: Final = re.compile(
    r"(?<![0-9.])([0-9]{1,5}(?:\.[0-9]+)?)(\s*-?(?:g(?:i?b|o)|gigs?)|g)(?![a-z0-9])", re.IGNORECASE
)
_BARE: Final = re.compile(r"(.*\S)\s+([1-9][0-9]{1,2})", re.DOTALL)
"""A number behind a name may be its memory (`m2 ultra 192`), where nothing is called so and that much is sold."""
_SCREEN: Final = re.compile(r"\b1[0-9](?:\.[0-9])?\s?-?(?:\"|”|''|inch(?:es)?\b|in\b)", re.IGNORECASE)
_HOST_TYPE: Final = re.compile(
    r"\bn1-(?:standard|highmem|highcpu|ultramem)-\d{1,3}\b(?:\s*(?:with|and|[+,]))?", re.IGNORECASE
)
"""Google's machines that cards are attached to."""
_DRIVER: Final = re.compile(
    r"\b(?:\d{1,3}|[a-z]+)-core(?:s|\s+processor)\b|\b\d{1,2}(?:st|nd|rd|th) gen\b|\(tm\)|\bmodel [ab] rev \d\.\d\b"
    r"|\((?:znver\d|bdver\d|[a-z]+(?:lake|well|bridge|rapids|mere|forest)(?:-\w+)?)\)",
    re.IGNORECASE,
)
"""What drivers write around a processor: `AMD EPYC 7763 64-Core Processor`, `13th Gen Intel(R) Core(TM) i9-13900K`,
`Raspberry Pi 5 Model B Rev 1.0`, and compilers call it behind: `(znver4)`.
"""
_APPLE: Final = re.compile(r"(?<=\s)\d{1,2}P\+\d{1,2}E(?:\+(\d{1,3})GPU)?(?![\w+])", re.IGNORECASE)
"""Cores of a Mac as llama.cpp's llamafile writes them: `Apple M4 Max 12P+4E+40GPU`."""
_MAX_Q: Final = re.compile(r"\bwith max-q design\b", re.IGNORECASE)
_NO_GRAPHICS: Final = re.compile(r"\b(i[3579]-\d{4,5}k?)f\b", re.IGNORECASE)
"""The letter of Intel's processors without graphics, which are the same but for that."""
_YEAR: Final = re.compile(r"20[0-3][0-9]|1[1-7]|2[47]")
"""Years and inches, which people write behind the names of notebooks and desktops."""
INCHED: Final = frozenset(("macbook", "imac", "laptop", "notebook"))
"""Words with which a number in front may be the inches of a screen."""
SPACED: Final = re.compile(r"[\s,;:()/_]+")
_AROUND: Final = re.compile(
    r"\bvf$|^nvidia-smi:\s*|(?<=\bxeon) 6(?= \d{4}[ep])|\s+(?:with nvlink|(?<=\dx)nvlink|(?<=x\d )nvlink|turbo)$",
    re.IGNORECASE,
)
"""What stands around a name and is none: a virtual function of a card, what people copy with it, a series twice."""
_PLURAL: Final = re.compile(r"([0-9])s")


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a text: what was read off, and the name that is left."""

    text: str
    count: int | None = None
    sizes_gib: tuple[float, ...] = ()
    whole: bool = False
    """It has sizes of memory in it that another reading reads off: it counts if the whole is a name."""
    bare: bool = False
    """Its size has no unit: it may as well be part of a name that is not known (`ascend 950`)."""


def readings(text: str) -> Iterator[Reading]:
    """Yield what the text may say: as it stands, and with a count that it seems to begin or to end with."""
    text = _AROUND.sub(" ", text).strip()
    text = _APPLE.sub(lambda cores: f"{cores[1]} core" if cores[1] else "", _COLON.sub(r" x\1", text))
    text = _MAX_Q.sub("max-q", _DRIVER.sub(" ", _HOST_TYPE.sub(" ", text))).strip()
    yield from _sized(text, None)
    worded, front, behind = _WORDED.fullmatch(text), _FRONT.fullmatch(text), _BEHIND.fullmatch(text)
    behind = behind or _BEHIND_X.fullmatch(text)
    if worded:
        yield from _sized(worded[2], COUNT_WORDS[worded[1].lower()])
    trailing = _WORDED_BEHIND.fullmatch(_SIZE.sub(" ", text).strip())
    if trailing:
        sizes = " ".join(map("".join, _SIZE.findall(text)))
        yield from _sized(f"{trailing[1]} {sizes}".strip(), COUNT_WORDS[trailing[2].lower()])
    if front and int(front[1]) <= MOST_UNNAMED:
        yield from _sized(front[2], int(front[1]))
    elif front and _TIMES.match(text):
        yield Reading(front[2], int(front[1]), whole=True)
    if behind:
        yield from _sized(behind[1], int(behind[2]))
    machine = rented(text)
    if machine:
        yield from _sized(*machine)
    bare = _BARE.fullmatch(text)
    if bare:
        for reading in readings(bare[1]):
            yield Reading(reading.text, reading.count, (*reading.sizes_gib, float(bare[2])), bare=True)


def says_two_sizes(text: str) -> bool:
    """Whether sizes of memory stand in a text: that of the card and another."""
    return len(_SIZE.findall(text[:LONGEST_TEXT])) > 1


def _sized(text: str, count: int | None) -> Iterator[Reading]:
    """Yield a text as it stands, then without the sizes of memory in it."""
    sizes = [
        float(number)
        for number, unit in _SIZE.findall(text)
        if unit.lower() != "g" or float(number) <= LARGEST_BARE_GIB
    ]
    yield Reading(text, count, whole=bool(sizes))
    if sizes:
        yield Reading(_SIZE.sub(" ", text).strip(" ,()-_/"), count, tuple(sizes))


def counts(words: Sequence[str]) -> bool:
    """Whether a number of two digits that begins a name is how many of it: inches are those of a computer's screen."""
    return len(words[0]) == 2 and not any(word in INCHED for word in words)


def spellings(name: str) -> Iterator[str]:
    """Yield a name, then with less and less of what people write around names: inches, fillers, years, a plural."""
    yield name
    words = [word for word in SPACED.split(_SCREEN.sub(" ", name).lower()) if word]
    for change in (
        lambda words: [SYNONYMS.get(word, word) for word in words],
        lambda words: [word for word in words if word not in FILLERS],
        lambda words: [
            word for at, word in enumerate(words) if not _YEAR.fullmatch(word) or (not at and counts(words))
        ],
        lambda words: [_PLURAL.sub(r"\1", word) for word in words],
        lambda words: [_NO_GRAPHICS.sub(r"\1", word) for word in words],
    ):
        changed = change(words)
        if changed and (changed != words or " ".join(changed) != name.lower()):
            yield " ".join(changed)
        words = changed or words


_SPELLED: Final = tuple(
    re.compile(rf"(?:[a-z]+[\s:/]+)?{pattern}", re.IGNORECASE)
    for pattern in (
        r"gpu-(?P<device>[a-z0-9]+(?:-(?:sxm|pcie|nvl))?)(?:-[a-z])?_(?P<count>\d{1,2})gpu-\d+vcpu-\d+gb",
        r"gpu-(?P<device>[a-z0-9]+?)x(?P<count>\d{1,2})-(?P<memory>\d+)gb",
        r"(?P<count>\d{1,2})(?P<device>[a-z]+\d+[a-z]*)(?:\.(?P<memory>\d+)s)?\.\d+v",
        r"n\d-(?P<device>[a-z0-9]+(?:-[a-z0-9]+)?)x(?P<count>\d{1,2})(?:-nvlink)?",
        r"(?P<device>[a-z0-9]+)-(?P<memory>\d+)gb(?P<form>-sxm|-pcie)?(?:-ib)?\.(?P<count>\d{1,2})x",
        r"(?P<device>[a-z]+\d+[a-z]*(?:-sxm)?)-(?P<count>\d{1,2})-(?P<memory>\d+)g",
        r"(?P<device>tpu-v5litepod|v5litepod)-(?P<slice>\d+)",
        r"gpu_(?P<count>\d{1,2})x_(?P<device>[a-z]+\d+[a-z]*)(?:_(?P<memory>\d+)gb)?(?P<form>_sxm|_pcie)?\d?",
        r"gd-(?P<count>\d{1,2})x(?P<device>[a-z]+\d+[a-z]*?)(?:ib)?-i\d+",
        r"(?P<device>gb\d00)[\s-]nvl(?P<count>\d{1,3})",
    )
)
"""Nebius, DigitalOcean, Verda, Hyperstack, Crusoe, Scaleway, SkyPilot's name of Google's slices, Lambda,
CoreWeave and NVIDIA.
"""


def rented(text: str) -> tuple[str, int | None] | None:
    """The device and the count in a machine's name, in words that people use; None where no cloud spells so."""
    match = next((found for found in (spelled.fullmatch(text.strip()) for spelled in _SPELLED) if found), None)
    if match is None:
        return None
    said = match.groupdict()
    if said.get("slice"):
        return f"v5litepod-{said['slice']}", None
    device = f"{said['device']}{said.get('form') or ''}"
    memory = f" {said['memory']}gb" if said.get("memory") else ""
    return device + memory, int(said["count"])

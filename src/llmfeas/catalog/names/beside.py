"""What people write beside the name of a device: main memory, a processor, the computer that it is in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ...record import dataclass
from .typed import FILLERS, SPACED

_MEMORY: Final = r"(?:(?:of|system|main|host|cpu)\s+)*(?:ram|dram|ddr[345]\S*(?:\s+ram)?|arbeitsspeicher)"
_MAIN: Final = re.compile(
    r"[\s,+&]*(?:\b(?:with|and|mit|und|avec|et)\s+)?"
    rf"(?<![0-9.])([0-9]{{1,4}})\s*-?g(?:i?b|o)?\s*{_MEMORY}\b"
    rf"|[\s,+&]*\b(?:ram|ddr[345])\s*:?\s*([0-9]{{1,4}})\s*-?g(?:i?b|o)?\b",
    re.IGNORECASE,
)
_AND: Final = re.compile(
    r"\s*(?:[+&]|(?<=\s)(?:and|plus|with(?!\s+max-q)|und|mit|et|avec|y|con)(?=\s))\s*", re.IGNORECASE
)
_NOTEBOOK_WORDS: Final = """legion loq omen victus nitro predator helios triton tuf rog zephyrus strix scar blade razer
    katana raider vector stealth sword cyborg crosshair alienware aorus xmg g14 g15 g16 thinkpad ideapad yoga xps
    latitude inspiron vostro zbook elitebook probook spectre envy pavilion zenbook vivobook proart expertbook swift
    aspire gram matebook magicbook vaio slimbook tuxedo system76 schenker framework"""
_NOTEBOOKS: Final = frozenset(_NOTEBOOK_WORDS.split())
_COMPUTER_WORDS: Final = """optiplex poweredge precision proliant thinkstation thinkcentre prodesk elitedesk supermicro
    workstation server tower aurora"""
_COMPUTERS: Final = frozenset(_COMPUTER_WORDS.split())
_NUMBERED: Final = _COMPUTERS | frozenset(("latitude", "elitebook", "inspiron", "vostro", "probook"))
"""Series whose models are bare numbers, which elsewhere are those of cards."""
_MODEL_OF_NOTEBOOK: Final = re.compile(
    r"[a-z]{1,2}\d{1,3}[a-z]?|\d{1,2}[a-z]?|gen|pro|slim|plus|carbon|extreme|fury|firefly|studio|area|inch", re.ASCII
)
_MODEL_OF_COMPUTER: Final = re.compile(r"[a-z]{0,3}\d{1,4}[a-z]{0,3}|gen|mini|tower|sff|mt|g\d{1,2}", re.ASCII)
_HP: Final = re.compile(r"z[1-9]\d{0,2}(?:g\d)?", re.ASCII)
_NUMBERS_BEHIND: Final = {True: 2, False: 1}
"""How many words with a number belong to the model of a notebook, and of another computer."""
_MIDDLE: Final = 12
"""Words of a text that is still tried in two parts."""


@dataclass(frozen=True, slots=True)
class Computer:
    """A text without what names the computer."""

    rest: str
    notebook: bool


def without_main_memory(text: str) -> tuple[str, int] | None:
    """A text without the main memory that it says, and that in GiB: `rtx 3090 64gb ram`; None: it says none."""
    match = _MAIN.search(text)
    if match is None:
        return None
    rest = f"{text[: match.start()]} {text[match.end() :]}".strip(" ,+&")
    return (rest, int(match[1] or match[2])) if rest else None


def names_a_computer(text: str) -> bool:
    """Whether a word of a text is the series of a computer: a number behind it is no card's."""
    return any(word in _NOTEBOOKS or word in _COMPUTERS for word in SPACED.split(text.lower()))


def without_computer(text: str) -> Computer | None:
    """A text without the series of a computer and its model in it (`dell optiplex 7070 i7-9700`); None: it has none."""
    kept: list[str] = []
    series: str | None = None
    kinds: set[bool] = set()
    left = 0
    for word in filter(None, SPACED.split(text.lower())):
        if word in _NOTEBOOKS or word in _COMPUTERS or _HP.fullmatch(word):
            series = word
            kinds.add(word in _NOTEBOOKS)
            left = _NUMBERS_BEHIND[word in _NOTEBOOKS]
        elif series and left and _model(word, series):
            left -= any(letter.isdigit() for letter in word)
        elif word not in FILLERS:
            kept.append(word)
            left = 0
    return (
        None
        if series is None or not any(letter.isdigit() for letter in "".join(kept))
        else Computer(" ".join(kept), kinds == {True})
    )


def _model(word: str, series: str) -> bool:
    """Whether a word behind the series of a computer is part of its model: a number, or what goes with one."""
    return (_MODEL_OF_COMPUTER if series in _NUMBERED or _HP.fullmatch(series) else _MODEL_OF_NOTEBOOK).fullmatch(
        word
    ) is not None


def parts(text: str) -> tuple[str, ...]:
    """The parts that stand in a text with a plus, or a word for it, between them."""
    return tuple(filter(None, (part.strip() for part in _AND.split(text))))


def halves(text: str) -> Iterator[tuple[str, str]]:
    """Each way to part a text between two words."""
    words = text.split()
    if len(words) <= _MIDDLE:
        yield from ((" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words)))

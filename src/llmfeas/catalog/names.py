"""Names as people write them: what two spellings have in common, and which known name an unknown one resembles."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final

from ..record import dataclass

if TYPE_CHECKING:
    from .store import Records

Tokens = tuple[str, ...]

LONGEST: Final = 200
UNNUMBERED: Final = 0.1
"""How much less a name without a number resembles one that has it."""
OTHER_DIGIT: Final = 0.65
"""How much one digit resembles another: less than itself, more than two numbers do."""
_WORD: Final = re.compile(r"[a-z]+|[0-9]+(?:\.[0-9]+)?")
_MARKS: Final = re.compile(r"\((?:r|tm|c)\)|@.*")
"""What drivers write into names: `Intel(R) Core(TM) i9-12900K CPU @ 3.20GHz`."""
_VENDORS: Final = """nvidia geforce amd radeon intel apple google aws habana tesla instinct graphics gpu cpu tm
    generation the meta openai mistralai facebook huggingface"""
_SERIES: Final = """rtx gtx rx arc pro quadro titan core xeon platinum gold epyc ryzen threadripper data center max
    instruct chat it base hf model"""
_VENDOR_WORDS: Final = frozenset(_VENDORS.split())
_SERIES_WORDS: Final = frozenset(_SERIES.split())


@dataclass(frozen=True, slots=True)
class Index:
    """Names of one kind, as tokens: what each may be called, and which one a bare family name stands for."""

    names: tuple[tuple[Tokens, str], ...]
    exact: Mapping[str, str]
    short: Mapping[str, tuple[str, ...]]
    defaults: Mapping[Tokens, str]


@functools.lru_cache(maxsize=32)
def index_of(records: Records[Any]) -> Index:
    """Index what the entries are called: ids, names, aliases."""
    names: list[tuple[Tokens, str]] = []
    exact: dict[str, str] = {}
    short: dict[str, tuple[str, ...]] = {}
    defaults: dict[Tokens, str] = {}
    for key, entry in records.names():
        for name in (key, entry.get("name") or key, *(entry.get("aliases") or ())):
            tokens = tokens_of(name)
            names.append((tokens, key))
            exact.setdefault(joined(tokens), key)
            brief = joined(core_of(tokens))
            if key not in short.get(brief, ()):
                short[brief] = (*short.get(brief, ()), key)
        for name in entry.get("default_for") or ():
            defaults[tokens_of(name)] = key
    return Index(tuple(names), exact, short, defaults)


def tokens_of(text: str) -> Tokens:
    """Split `NVIDIA A100-SXM4-80GB` into (a, 100, sxm, 4, 80, gb); of a repository only the last part counts."""
    plain = _MARKS.sub(" ", text[:LONGEST].lower()).rsplit("/", 1)[-1]
    words = _WORD.findall(plain)
    kept = tuple(word for word in words if word not in _VENDOR_WORDS)
    return kept or tuple(words)


def joined(tokens: Tokens) -> str:
    """Join words and numbers; only two numbers in a row keep their border: `llama3-8b` is not `llama38b`."""
    text = ""
    for token in tokens:
        text += f"-{token}" if text[-1:].isdigit() and token[0].isdigit() else token
    return text


def name_key(text: str) -> str:
    """What two spellings of one name have in common: `rtx4070ti` for `NVIDIA GeForce RTX 4070 Ti`."""
    return joined(tokens_of(text))


def squashed(text: str) -> str:
    """The letters and digits of a text, in lower case."""
    return "".join(_WORD.findall(text.lower()))


def core_of(tokens: Tokens) -> Tokens:
    """A name without the words that its whole series shares: (4090,) for (rtx, 4090)."""
    return tuple(word for word in tokens if word not in _SERIES_WORDS) or tokens


def alike(index: Index, text: str) -> list[str]:
    """The ids that are spelled most like `text`; a number counts by the digits it shares from its first on."""
    tokens = tokens_of(text)
    squeezed = "".join(tokens)[:60]
    if not squeezed:
        return []
    scores: dict[str, float] = {}
    for name, key in index.names:
        scores[key] = max(scores.get(key, 0.0), _likeness(squeezed, tokens, name))
    best = sorted(scores, key=lambda key: (-scores[key], len(key), key))[:2]
    return [key for key in best if scores[key] >= max(0.68, scores[best[0]] - 0.12)]


def _likeness(squeezed: str, tokens: Tokens, name: Tokens) -> float:
    ratio = SequenceMatcher(None, squeezed, "".join(name), autojunk=False).ratio()
    numbers = [word for word in tokens if word[0].isdigit()]
    theirs = [word for word in name if word[0].isdigit()]
    if not numbers:
        return ratio
    if not theirs:
        return ratio - UNNUMBERED
    longest = max(numbers, key=len)
    shared = max(_shared_digits(longest, number) for number in theirs)
    return 0.5 * ratio + 0.5 * max(shared, OTHER_DIGIT if len(longest) == 1 else 0.0)


def _shared_digits(one: str, other: str) -> float:
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return same / max(len(one), len(other))


def common_root(text: str, near: list[str]) -> str:
    """A word for `search` that finds the neighbourhood: the digits shared with the best candidate, or a word."""
    tokens = tokens_of(text)
    theirs = [word for key in near[:1] for word in tokens_of(key) if word[0].isdigit()]
    for word in sorted((w for w in tokens if w[0].isdigit()), key=len, reverse=True):
        for number in theirs:
            size = round(_shared_digits(word, number) * max(len(word), len(number)))
            if size >= 2:
                return word[:size]
    shared = [word for word in tokens if near and len(word) > 2 and word in tokens_of(near[0])]
    return max(shared, key=len, default="")

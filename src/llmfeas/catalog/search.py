"""Forgiving look-up: people write `RTX 4070 Ti`, `4070ti`, `8xH100`, `Meta-Llama-3-8B`; the catalog has ids.

A name is read as its words and numbers, without case, punctuation and vendors' words. It is looked up as a whole, then
without series words (`rtx`, `instruct`), then as a part of longer names.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..contract import Json
from ..errors import UsageError
from ..record import dataclass
from ..text import printable
from .device import Device, Offer
from .records import Match

if TYPE_CHECKING:
    from .backend import Backend
    from .store import Catalog, Records

R = TypeVar("R")


_SEARCHED: Final = (
    *(
        "name",
        "architecture",
        "generation",
        "family",
        "organisation",
        "vendor",
        "backend",
        "provider",
        "device",
        "kind",
    ),
)


def find_device(text: str, catalog: Catalog) -> Match[Device]:
    """Find a device by id, name, alias, or what comes close enough to mean one.

    Raises:
        UsageError: `unknown-device` or `ambiguous-device`, with candidates.
    """
    return _find(catalog.devices, "device", text)


def find_backend(text: str, catalog: Catalog) -> Match[Backend]:
    """Find a backend by id, name or alias.

    Raises:
        UsageError: `unknown-backend`, with candidates.
    """
    return _find(catalog.backends, "backend", text)


def find_offer(text: str, catalog: Catalog) -> Match[Offer]:
    """Find an offer by id, name or alias.

    Raises:
        UsageError: `unknown-offer`, with candidates.
    """
    return _find(catalog.offers, "offer", text)


def search(records: Records[Any], query: str, near: Callable[[str], list[str]] | None = None) -> list[str]:
    """The ids of entries that hold every word of `query`, best first; without any, those `near` it.

    Near are those spelled alike, unless told otherwise.
    """
    wanted = [squashed(word) for word in query[:LONGEST].split()]
    scored: list[tuple[tuple[int, int], str]] = []
    for place, key in enumerate(records):
        text = squashed(" ".join(_searched(key, records.raw(key))))
        if all(word in text for word in wanted):
            scored.append(((0 if all(word in squashed(key) for word in wanted) else 1, place), key))
    if scored:
        return [key for _, key in sorted(scored)]
    return alike(index_of(records), query) if near is None else near(query)


def _searched(key: str, entry: Mapping[str, Any]) -> Iterable[str]:
    yield key
    for field in _SEARCHED:
        value = entry.get(field)
        if isinstance(value, str):
            yield value
    yield from entry.get("aliases") or ()


@functools.lru_cache(maxsize=4096)
def _find(records: Records[Any], kind: str, text: str) -> Match[Any]:
    if text in records:
        return Match(records[text])
    index = index_of(records)
    tokens = tokens_of(text)
    whole = joined(tokens)
    if whole in index.exact:
        return Match(records[index.exact[whole]])
    chosen, ids = choice(index, tokens)
    if chosen is None and ids:
        raise ambiguous(kind, text, ids)
    if chosen is None:
        raise unknown(index, kind, text)
    others = tuple(key for key in ids if key != chosen)
    return Match(records[chosen], taken_note(text, chosen, others), others)


def choice(index: Index, tokens: Tokens) -> tuple[str | None, tuple[str, ...]]:
    """The id that words mean, and all that they may mean; None where nothing, or several, may be meant."""
    ids = _candidates(index, tokens)
    meant = {key for name, key in index.defaults.items() if key in ids and holds(tokens, core_of(name))}
    if tokens in index.defaults or (len(ids) > 1 and len(meant) == 1):
        return index.defaults.get(tokens) or meant.pop(), ids
    # nothing follows the words: the 7950X, not the 7950X3D
    ends = {key for name, key in index.names if key in ids and name[-1:] == tokens[-1:] and holds(name, tokens)}
    if len(ends) == 1 and any(word[0].isdigit() for word in tokens):
        return ends.pop(), ids
    return (ids[0] if len(ids) == 1 else None), ids


def _candidates(index: Index, tokens: Tokens) -> tuple[str, ...]:
    """The ids whose name without series words is the one asked for, else those whose names hold all its words.

    Those that begin with the words come first.
    """
    if not any(word[0].isdigit() for word in tokens) and len("".join(tokens)) < 3:
        return ()
    same = tuple(index.short.get(joined(core_of(tokens)), ())) if tokens else ()
    if same and len(same) == 1 and tokens not in index.defaults:
        return same
    held = [(name[: len(tokens)] != tokens, key) for name, key in index.names if tokens and holds(name, tokens)]
    held.sort(key=itemgetter(0))
    return tuple(dict.fromkeys((*same, *(key for _, key in held))))


def holds(name: Tokens, wanted: Tokens) -> bool:
    """Whether the words stand in the name in this order."""
    words = iter(name)
    return all(word in words for word in wanted)


def taken_note(text: str, chosen: str, others: tuple[str, ...], remark: str = "") -> str:
    """What a name was taken for, with a remark on it, and what else it may have meant."""
    asked = "" if text == chosen else f" for '{printable(text, 40)}'"
    note = f"took '{chosen}'{asked}{remark}"
    if not others:
        return note
    shown = ", ".join(others[:6]) + (", …" if len(others) > 6 else "")
    return f"{note}; there {'is' if len(others) == 1 else 'are'} also {shown}"


def ambiguous(kind: str, text: str, ids: tuple[str, ...]) -> UsageError:
    """The error of a name that can mean several."""
    shown = [f"'{key}'" for key in ids[:6]]
    hint = f"Choose {', '.join(shown[:-1])} or {shown[-1]}{' …' if len(ids) > 6 else ''}."
    return UsageError(f"ambiguous-{kind}", f"'{printable(text, 40)}' can mean several {kind}s", hint, ids)


def unknown(index: Index, kind: str, text: str, near: list[str] | None = None) -> UsageError:
    """The error of a name that means nothing, with what may have been meant: what is spelled most like it."""
    near = alike(index, text) if near is None else near
    shown = [f"'{key}'" for key in near]
    listed = ", ".join(shown[:-1]) + " or " + shown[-1] if len(shown) > 1 else "".join(shown)
    several = f"Several {kind}s side by side: 'llmfeas compare'. " if "," in text else ""
    hint = several + (f"Did you mean {listed}? " if near else "")
    found = text.isascii() and text.isalnum() and any(text.lower() in key for _, key in index.names)
    root = common_root(text, near) or (text.lower() if found else "")
    file = ", or give its .safetensors or .gguf: those are counted whatever the type" if kind == "model" else ""
    hint += f"See 'llmfeas {kind}s search {root}'." if root else f"See 'llmfeas {kind}s list'{file}."
    return UsageError(f"unknown-{kind}", f"unknown {kind} '{printable(text, 60)}'", hint, near)


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
    generation the meta openai mistralai facebook huggingface huawei"""
_SERIES: Final = """rtx gtx rx arc pro quadro titan core xeon platinum gold epyc ryzen threadripper data center max
    instruct chat it base hf model"""
_VENDOR_WORDS: Final = frozenset(_VENDORS.split())
_SERIES_WORDS: Final = frozenset(_SERIES.split())


@dataclass(frozen=True)
class Index:
    """What entries of one kind may be called, as tokens, and which one a bare family name stands for."""

    called: Mapping[str, Sequence[str]]
    """The names of each entry, their tokens between spaces."""
    exact: Mapping[str, str]
    short: Mapping[str, Sequence[str]]
    defaults: Mapping[Tokens, str]

    @functools.cached_property
    def names(self) -> tuple[tuple[Tokens, str], ...]:
        """Each name with its id."""
        return tuple((tuple(name.split()), key) for key, names in self.called.items() for name in names)

    def to_dict(self) -> Json:
        """The index as JSON, which `of_json` reads."""
        bare = {" ".join(name): key for name, key in self.defaults.items()}
        return {"called": self.called, "exact": self.exact, "short": self.short, "defaults": bare}

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> Index:
        """The index that a wheel carries."""
        defaults = {tuple(name.split()): key for name, key in told["defaults"].items()}
        return cls(told["called"], told["exact"], told["short"], defaults)


@functools.lru_cache(maxsize=32)
def index_of(records: Records[Any]) -> Index:
    """Index what the entries are called: ids, names, aliases."""
    told = records.indexed()
    return Index.of_json(told) if told else index_from(records.names())


def index_from(entries: Iterable[tuple[str, Mapping[str, Any]]]) -> Index:
    """The same from ids with what is written of them."""
    called: dict[str, list[str]] = {}
    exact: dict[str, str] = {}
    short: dict[str, list[str]] = {}
    defaults: dict[Tokens, str] = {}
    for key, entry in entries:
        called[key] = []
        for tokens in dict.fromkeys(map(tokens_of, (key, entry.get("name") or key, *(entry.get("aliases") or ())))):
            called[key].append(" ".join(tokens))
            whole, core = joined(tokens), core_of(tokens)
            exact.setdefault(whole, key)
            same = short.setdefault(whole if core is tokens else joined(core), [])
            if key not in same:
                same.append(key)
        for name in entry.get("default_for") or ():
            defaults[tokens_of(name)] = key
    return Index(called, exact, short, defaults)


@functools.lru_cache(maxsize=8)
def vocabulary(records: Records[Any]) -> frozenset[str]:
    """All words of names of the entries, and those of vendors and series."""
    return _VENDOR_WORDS | _SERIES_WORDS | {word for name, _ in index_of(records).names for word in name}


def tokens_of(text: str) -> Tokens:
    """Split `NVIDIA A100-SXM4-80GB` into (a, 100, sxm, 4, 80, gb); of a repository only the last part counts."""
    plain = text[:LONGEST].lower()
    if "(" in plain or "@" in plain:
        plain = _MARKS.sub(" ", plain)
    words = tuple(_WORD.findall(plain.rsplit("/", 1)[-1]))
    if _VENDOR_WORDS.isdisjoint(words):
        return words
    return tuple(word for word in words if word not in _VENDOR_WORDS) or words


def joined(tokens: Tokens) -> str:
    """Join words and numbers; only two numbers in a row keep their border: `llama3-8b` is not `llama38b`."""
    text, after_number = "", False
    for token in tokens:
        number = token[0] <= "9"
        text += f"-{token}" if number and after_number else token
        after_number = number
    return text


def name_key(text: str) -> str:
    """What two spellings of one name have in common: `rtx4070ti` for `NVIDIA GeForce RTX 4070 Ti`."""
    return joined(tokens_of(text))


def squashed(text: str) -> str:
    """The letters and digits of a text, in lower case."""
    return "".join(_WORD.findall(text.lower()))


def is_written(records: Records[Any], key: str, text: str) -> bool:
    """Whether an entry has a name that is written so, vendors' words too: `gpu_8x_v100`, and not `8x v100`."""
    entry, wanted = records.raw(key), squashed(text)
    names = (key, str(entry.get("name") or ""), *(entry.get("aliases") or ()), *(entry.get("default_for") or ()))
    return any(squashed(name) in (wanted, wanted.removeprefix("nvidia")) for name in names)


def core_of(tokens: Tokens) -> Tokens:
    """A name without the words that its whole series shares: (4090,) for (rtx, 4090)."""
    if _SERIES_WORDS.isdisjoint(tokens):
        return tokens
    return tuple(word for word in tokens if word not in _SERIES_WORDS) or tokens


def alike(index: Index, text: str, fits: Callable[[Tokens, Tokens], bool] | None = None) -> list[str]:
    """The ids that are spelled most like `text`; a number counts by the digits it shares from its first on.

    `fits` tells which names (the second) may be meant by the words asked for (the first).
    """
    tokens = tokens_of(text)
    squeezed = "".join(tokens)[:60]
    if not squeezed:
        return []
    scores: dict[str, float] = {}
    for name, key in index.names:
        if fits is not None and not fits(tokens, name):
            continue
        scores[key] = max(scores.get(key, 0.0), _likeness(squeezed, tokens, name))
    if not scores:
        return []
    best = sorted(scores, key=lambda key: (-scores[key], len(key), key))[:2]
    return [key for key in best if scores[key] >= max(0.68, scores[best[0]] - 0.12)]


def _likeness(squeezed: str, tokens: Tokens, name: Tokens) -> float:
    from difflib import SequenceMatcher

    numbers = [word for word in tokens if word[0].isdigit()]
    # who types a number alone leaves out the words of its series
    other = name if len(numbers) < len(tokens) else [word for word in name if word not in _SERIES_WORDS] or name
    ratio = SequenceMatcher(None, squeezed, "".join(other), autojunk=False).ratio()
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

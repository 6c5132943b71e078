"""Forgiving look-up: people write `RTX 4070 Ti`, `4070ti`, `8xH100`, `Meta-Llama-3-8B`; the catalog has ids.

A name is read as its words and numbers, without case, punctuation and vendors' words. It is looked up as a whole, then
without series words (`rtx`, `instruct`), then as a part of longer names.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ..errors import UsageError
from ..record import dataclass
from ..text import printable
from .device import Device, Offer

if TYPE_CHECKING:
    from .architecture import Model
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

_COUNTED: Final = re.compile(r"\s*([0-9]{1,12})(?:[x×*]\s*|\s+[x×*]\s+)(\S.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Match(Generic[R]):
    """What a name was taken for; `note` says so where the name was not exact, `others` are ids it may have meant."""

    record: R
    note: str | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hardware:
    """What `--device` names: a device, how many of it, and the offer it comes in."""

    device: Device
    count: int | None = None
    """As written (`8xh100`) or as offered; None: not said."""
    offer: Offer | None = None
    note: str | None = None
    others: tuple[str, ...] = ()


@functools.lru_cache(maxsize=4096)
def find_hardware(text: str, catalog: Catalog) -> Hardware:
    """Find the device or offer that `text` names, with an optional count in front (`8xh100-sxm`, `2 x T4`).

    Raises:
        UsageError: `unknown-device`, `ambiguous-device`, or `bad-quantity` for a count of 0.
    """
    if text in catalog.devices:
        return Hardware(catalog.devices[text])
    offer = _exact(catalog.offers, text)
    if offer is not None:
        record = catalog.offers[offer]
        return Hardware(catalog.devices[record.device], record.count, record)
    counted = _COUNTED.fullmatch(text[:LONGEST])
    if counted and _exact(catalog.devices, counted[2]) and not _exact(catalog.devices, text):
        return _several(counted, catalog)
    try:
        match = find_device(text, catalog)
    except UsageError:
        if counted is None:
            raise
        return _several(counted, catalog)
    return Hardware(match.record, None, None, match.note, match.others)


def _several(counted: re.Match[str], catalog: Catalog) -> Hardware:
    offer = _exact(catalog.offers, counted[2])
    if offer is not None:
        record = catalog.offers[offer]
        hint = f"Name its devices instead, such as {int(counted[1]) * record.count}x{record.device}."
        raise UsageError("bad-quantity", f"'{offer}' is a whole machine, lent one at a time", hint, [record.device])
    match, count = find_device(counted[2], catalog), int(counted[1])
    if count == 0:
        shown = printable(counted[0], 40)
        hint = "Write for instance 8xh100-sxm."
        raise UsageError("bad-quantity", f"'{shown}' asks for no device at all", hint) from None
    return Hardware(match.record, count, None, match.note, match.others)


def find_device(text: str, catalog: Catalog) -> Match[Device]:
    """Find a device by id, name, alias, or what comes close enough to mean one.

    Raises:
        UsageError: `unknown-device` or `ambiguous-device`, with candidates.
    """
    return _find(catalog.devices, "device", text)


def find_model(text: str, catalog: Catalog) -> Match[Model]:
    """Find a model by id, name, alias, Hugging Face repository, or what comes close enough to mean one.

    Raises:
        UsageError: `unknown-model` or `ambiguous-model`, with candidates.
    """
    return _find(catalog.models, "model", text)


def find_backend(text: str, catalog: Catalog) -> Match[Backend]:
    """Find a backend by id, name or alias.

    Raises:
        UsageError: `unknown-backend`, with candidates.
    """
    return _find(catalog.backends, "backend", text)


def engine_named(text: str, catalog: Catalog) -> str:
    """The id of the engine that a text names by id, name or alias; the text itself where none is called so."""
    return _exact(catalog.engines, text) or text


def find_offer(text: str, catalog: Catalog) -> Match[Offer]:
    """Find an offer by id, name or alias.

    Raises:
        UsageError: `unknown-offer`, with candidates.
    """
    return _find(catalog.offers, "offer", text)


def search(records: Records[Any], query: str) -> list[str]:
    """The ids of entries that hold every word of `query`, best first; without any, those spelled alike."""
    wanted = [squashed(word) for word in query[:LONGEST].split()]
    scored: list[tuple[tuple[int, int], str]] = []
    for place, key in enumerate(records):
        text = squashed(" ".join(_searched(key, records.raw(key))))
        if all(word in text for word in wanted):
            scored.append(((0 if all(word in squashed(key) for word in wanted) else 1, place), key))
    return [key for _, key in sorted(scored)] or alike(index_of(records), query)


def _searched(key: str, entry: Mapping[str, Any]) -> Iterable[str]:
    yield key
    for field in _SEARCHED:
        value = entry.get(field)
        if isinstance(value, str):
            yield value
    yield from entry.get("aliases") or ()


def _exact(records: Records[Any], text: str) -> str | None:
    return text if text in records else index_of(records).exact.get(name_key(text))


@functools.lru_cache(maxsize=4096)
def _find(records: Records[Any], kind: str, text: str) -> Match[Any]:
    if text in records:
        return Match(records[text])
    index = index_of(records)
    tokens = tokens_of(text)
    whole = joined(tokens)
    if whole in index.exact:
        return Match(records[index.exact[whole]])
    ids = _candidates(index, tokens)
    meant = {key for name, key in index.defaults.items() if key in ids and _holds(tokens, core_of(name))}
    if tokens in index.defaults or (len(ids) > 1 and len(meant) == 1):
        chosen = index.defaults.get(tokens) or meant.pop()
    elif len(ids) == 1:
        chosen = ids[0]
    elif ids:
        raise _ambiguous(kind, text, ids)
    else:
        raise _unknown(index, kind, text)
    others = tuple(key for key in ids if key != chosen)
    return Match(records[chosen], _note(text, chosen, others), others)


def _candidates(index: Index, tokens: Tokens) -> tuple[str, ...]:
    """The ids whose name without series words is the one asked for, else those whose names hold all its words.

    Those that begin with the words come first.
    """
    if not any(word[0].isdigit() for word in tokens) and len("".join(tokens)) < 3:
        return ()
    same = index.short.get(joined(core_of(tokens)), ()) if tokens else ()
    if same and len(same) == 1 and tokens not in index.defaults:
        return same
    held = [(name[: len(tokens)] != tokens, key) for name, key in index.names if tokens and _holds(name, tokens)]
    held.sort(key=itemgetter(0))
    return tuple(dict.fromkeys((*same, *(key for _, key in held))))


def _holds(name: Tokens, wanted: Tokens) -> bool:
    """Whether the words stand in the name in this order; a version is no size: `gemma 4` is not in `gemma-3-4b`."""
    words = iter(name)
    if not all(word in words for word in wanted):
        return False
    version, place = _version(wanted), 0
    for index, word in enumerate(wanted):
        while name[place : place + 1] not in ((word,), ()) or (
            index == version and name[place + 1 : place + 2] in SIZES
        ):
            place += 1
        place += 1
    return place <= len(name)


def _version(wanted: Tokens) -> int | None:
    """Where the first number asked for stands, if it is small and has no unit of a size behind it."""
    place = next((place for place, word in enumerate(wanted) if word[0].isdigit()), None)
    if place is None or float(wanted[place]) >= NO_VERSION or wanted[place + 1 : place + 2] in SIZES:
        return None
    return place


def _note(text: str, chosen: str, others: tuple[str, ...]) -> str:
    note = f"took '{chosen}' for '{printable(text, 40)}'"
    if not others:
        return note
    shown = ", ".join(others[:6]) + (", …" if len(others) > 6 else "")
    return f"{note}; there {'is' if len(others) == 1 else 'are'} also {shown}"


def _ambiguous(kind: str, text: str, ids: tuple[str, ...]) -> UsageError:
    shown = [f"'{key}'" for key in ids[:6]]
    hint = f"Choose {', '.join(shown[:-1])} or {shown[-1]}{' …' if len(ids) > 6 else ''}."
    return UsageError(f"ambiguous-{kind}", f"'{printable(text, 40)}' can mean several {kind}s", hint, ids)


def _unknown(index: Index, kind: str, text: str) -> UsageError:
    near = alike(index, text)
    shown = [f"'{key}'" for key in near]
    listed = ", ".join(shown[:-1]) + " or " + shown[-1] if len(shown) > 1 else "".join(shown)
    hint = f"Did you mean {listed}? " if near else ""
    root = common_root(text, near)
    hint += f"See 'llmfeas {kind}s search {root}'." if root else f"See 'llmfeas {kind}s list'."
    return UsageError(f"unknown-{kind}", f"unknown {kind} '{printable(text, 60)}'", hint, near)


Tokens = tuple[str, ...]

LONGEST: Final = 200
SIZES: Final = (("b",), ("m",))
"""What follows a number of parameters: billions or millions."""
NO_VERSION: Final = 10
"""From this number on it is no model's version."""
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

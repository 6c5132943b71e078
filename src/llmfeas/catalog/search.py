"""Forgiving look-up: people write `RTX 4070 Ti`, `4070ti`, `8xH100`, `Meta-Llama-3-8B`; the catalog has ids.

A name is read as its words and numbers, without case, punctuation and vendors' words. It is looked up as a whole, then
without series words (`rtx`, `instruct`), then as a part of longer names.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ..errors import UsageError
from ..record import dataclass
from ..text import printable
from .device import Device
from .names import LONGEST, Index, Tokens, alike, common_root, core_of, index_of, joined, name_key, squashed, tokens_of
from .offer import Offer

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
    """Whether the words stand in the name in this order."""
    words = iter(name)
    return all(word in words for word in wanted)


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

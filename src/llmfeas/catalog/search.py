"""Forgiving look-up: people write `RTX 4070 Ti`, `4070ti`, `8xH100`, `Meta-Llama-3-8B`; the catalog has ids.

A name is read as its words and numbers, without case, punctuation and vendors' words. It is looked up as a whole, then
without series words (`rtx`, `instruct`), then as a part of longer names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
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


@dataclass(frozen=True, slots=True)
class Match(Generic[R]):
    """What a name was taken for; `note` says so where the name was not exact, `others` are ids it may have meant."""

    record: R
    note: str | None = None
    others: tuple[str, ...] = ()


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
    found: list[tuple[tuple[int, int], str]] = []
    for place, key in enumerate(records):
        text = squashed(" ".join(_searched(key, records.raw(key))))
        if all(word in text for word in wanted):
            found.append(((0 if all(word in squashed(key) for word in wanted) else 1, place), key))
    if found:
        return [key for _, key in sorted(found)]
    return alike(index_of(records), query) if near is None else near(query)


def _searched(key: str, entry: Mapping[str, Any]) -> Iterable[str]:
    yield key
    for field in _SEARCHED:
        value = entry.get(field)
        if isinstance(value, str):
            yield value
    yield from entry.get("aliases") or ()


def exact_id(records: Records[Any], text: str) -> str | None:
    """The id of the entry that has this very name; None where none has."""
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
    return (ids[0] if len(ids) == 1 else None), ids


def _candidates(index: Index, tokens: Tokens) -> tuple[str, ...]:
    """Give the ids whose name without series words is the one asked for, else those whose names hold all its words.

    Those that begin with the words come first.
    """
    if not any(word[0].isdigit() for word in tokens) and len("".join(tokens)) < 3:
        return ()
    same = index.short.get(joined(core_of(tokens)), ()) if tokens else ()
    if same and len(same) == 1 and tokens not in index.defaults:
        return same
    held = [(name[: len(tokens)] != tokens, key) for name, key in index.names if tokens and holds(name, tokens)]
    held.sort(key=itemgetter(0))
    return tuple(dict.fromkeys((*same, *(key for _, key in held))))


def holds(name: Tokens, wanted: Tokens) -> bool:
    """Tell whether the words stand in the name in this order."""
    words = iter(name)
    return all(word in words for word in wanted)


def taken_note(text: str, chosen: str, others: tuple[str, ...]) -> str:
    """Say what a name was taken for, and what else it may have meant."""
    note = f"took '{chosen}' for '{printable(text, 40)}'"
    if not others:
        return note
    shown = ", ".join(others[:6]) + (", …" if len(others) > 6 else "")
    return f"{note}; there {'is' if len(others) == 1 else 'are'} also {shown}"


def ambiguous(kind: str, text: str, ids: tuple[str, ...]) -> UsageError:
    """Make the error of a name that can mean several."""
    shown = [f"'{key}'" for key in ids[:6]]
    hint = f"Choose {', '.join(shown[:-1])} or {shown[-1]}{' …' if len(ids) > 6 else ''}."
    return UsageError(f"ambiguous-{kind}", f"'{printable(text, 40)}' can mean several {kind}s", hint, ids)


def unknown(index: Index, kind: str, text: str, near: list[str] | None = None) -> UsageError:
    """Make the error of a name that means nothing, with what may have been meant: what is spelled most like it."""
    near = alike(index, text) if near is None else near
    shown = [f"'{key}'" for key in near]
    listed = ", ".join(shown[:-1]) + " or " + shown[-1] if len(shown) > 1 else "".join(shown)
    hint = f"Did you mean {listed}? " if near else ""
    root = common_root(text, near)
    hint += f"See 'llmfeas {kind}s search {root}'." if root else f"See 'llmfeas {kind}s list'."
    return UsageError(f"unknown-{kind}", f"unknown {kind} '{printable(text, 60)}'", hint, near)

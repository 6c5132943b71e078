"""Models by their names taken apart (`models`): what `model_choice` chooses from."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ...contract import Json
from ...record import dataclass, fields
from .models import (
    GENERIC,
    OTHER,
    PART,
    SAME,
    TypedName,
    Words,
    first_letters,
    is_size,
    parameters,
    repository,
    typed,
)

MOST_OF_SIZE: Final = 3
"""Models of one size and active part that are worth a hint together."""
_OF_WORDS: Final = ("defaults", "tags")
_SETS: Final = ("owners", "seeing", "own")


NamedModel = tuple[str, str, str, bool, str]
"""A name of a model taken apart: words needed and optional, format, whether it is a tag, and the model's id."""


@dataclass(frozen=True)
class ModelIndex:
    """Names of models taken apart, each with its id, and the ids that bare names of families stand for."""

    told: Sequence[NamedModel]
    defaults: Mapping[Words, str]
    tags: Mapping[Words, str]
    """The ids that names of Ollama's library stand for which say no size."""
    counts: Mapping[str, float]
    """The parameters of models none of whose names says a size."""
    repositories: Mapping[str, str]
    """The ids of repositories' names without their owners, of those that one model has."""
    owners: frozenset[str]
    """Whose repositories are known."""
    seeing: frozenset[str]
    """The ids of models with an encoder of images whose own entry says so."""
    own: frozenset[str]
    """Ids and names of models, not what others call theirs, without sizes."""
    having: Mapping[str, Sequence[int]]
    """Which names have a word of letters."""

    @functools.cached_property
    def names(self) -> tuple[tuple[TypedName, str], ...]:
        """Each name with its id."""
        return tuple(map(_named, self.told))

    @functools.cached_property
    def families(self) -> frozenset[Words]:
        """The words of `own`."""
        return frozenset(tuple(name.split()) for name in self.own)

    @functools.cached_property
    def vocabulary(self) -> frozenset[str]:
        """All words of names."""
        return SAME | GENERIC | OTHER | {word for name, _ in self.names for word in (*name.needed, *name.optional)}

    def to_dict(self) -> Json:
        """The index as JSON, which `of_json` reads."""
        bare = {name: {" ".join(words): key for words, key in getattr(self, name).items()} for name in _OF_WORDS}
        lists = {name: sorted(getattr(self, name)) for name in _SETS}
        return {each.name: getattr(self, each.name) for each in fields(self)} | bare | lists

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> ModelIndex:
        """The index that a wheel carries."""
        bare = {name: {tuple(words.split()): key for words, key in told[name].items()} for name in _OF_WORDS}
        return cls(**{**told, **bare, **{name: frozenset(told[name]) for name in _SETS}})

    def candidates(self, asked: TypedName) -> Iterable[tuple[TypedName, str]]:
        """The names that may have all words asked for: those that have the rarest one of letters."""
        rarest = min((self.having.get(word, ()) for word in asked.needed if word.isalpha()), key=len)
        return (_named(self.told[index]) for index in rarest)

    def beginning(self, asked: TypedName) -> str:
        """The word that a name begins with where models are called by it; empty where none are."""
        word = first_letters(asked)
        return word if any(first_letters(name) == word for name, _ in self.names) else ""

    def of_size(self, asked: TypedName) -> list[str]:
        """The models of the size and active part that a name says which no family does; none where they are many."""
        said = {word for word in asked.needed if is_size(word) or PART.fullmatch(word)}
        keys = list(dict.fromkeys(key for name, key in self.names if said <= set(name.needed)))
        return keys if len(said) > 1 and len(keys) <= MOST_OF_SIZE else []

    def without_owner(self, text: str) -> str:
        """A repository's name without the owner of the one that it was made of: `you/deepseek-ai_DeepSeek-V3.1`."""
        head, slash, tail = text.lower().rpartition("/")
        found = [owner for owner in self.owners if tail.startswith((f"{owner}_", f"{owner}-", f"{owner}."))]
        rest = tail[len(max(found, key=len)) + 1 :] if found else ""
        return head + slash + rest if rest[:1].isalpha() and len(typed(rest).needed) > 1 else text


Told = Mapping[str, Sequence[Any]]
"""Names taken apart in advance, as a wheel carries them: words, format, whether it is a tag, the repository's name."""
NOTHING: Final[Told] = {}


def told_of(entries: Iterable[tuple[str, Mapping[str, Any]]]) -> Told:
    """What `index_of_models` need not find out again."""
    names = {name: typed(name) for key, entry in entries for name in _called(key, entry)}
    return {
        name: (" ".join(said.needed), " ".join(said.optional), said.format, said.tagged, repository(name))
        for name, said in names.items()
    }


def _called(key: str, entry: Mapping[str, Any]) -> Iterator[str]:
    yield from map(str, (key, entry.get("name") or key, *(entry.get("aliases") or ())))


def _taken_apart(name: str, told: Told) -> tuple[str, str, str, bool]:
    if name in told:
        needed, optional, wanted, tagged, _ = told[name]
        return needed, optional, wanted, tagged
    said = typed(name)
    return " ".join(said.needed), " ".join(said.optional), said.format, said.tagged


def _named(told: NamedModel) -> tuple[TypedName, str]:
    needed, optional, wanted, tagged, key = told
    return TypedName(tuple(needed.split()), tuple(optional.split()), wanted, tagged), key


def index_of_models(entries: Iterable[tuple[str, Mapping[str, Any]]], told: Told = NOTHING) -> ModelIndex:
    """Take apart what models are called: ids, names, aliases."""
    entries = tuple(entries)
    names: dict[NamedModel, None] = {}
    defaults: dict[Words, str] = {}
    tags: dict[Words, str] = {}
    counts: dict[str, float] = {}
    published: dict[str, set[str]] = {}
    owners: set[str] = set()
    for key, entry in entries:
        called = [(*_taken_apart(name, told), key) for name in _called(key, entry)]
        names |= dict.fromkeys(called)
        for alias in filter(lambda alias: "/" in alias, map(str, entry.get("aliases") or ())):
            own = told[alias][-1] if alias in told else repository(alias)
            published.setdefault(own, set()).add(key)
            owners.add(alias.split("/")[0].lower())
        for tuned in map(str, entry.get("repositories") or ()):
            published.setdefault(repository(tuned), set()).add(key)
        if not any(is_size(word) for needed, *_ in called for word in needed.split()):
            counts[key] = parameters(str(entry.get("published_parameters") or ""))
        for name in entry.get("default_for") or ():
            meant = typed(str(name))
            (tags if meant.tagged else defaults)[meant.needed] = key
    repositories = {name: min(keys) for name, keys in published.items() if len(keys) == 1}
    written = dict(entries)
    seeing = frozenset(key for key, entry in entries if _sees(entry, written))
    apart, owned = tuple(names), frozenset(owners)
    return ModelIndex(apart, defaults, tags, counts, repositories, owned, seeing, _own(entries, told), _having(apart))


def _own(entries: Iterable[tuple[str, Mapping[str, Any]]], told: Told) -> frozenset[str]:
    names = (str(name) for key, entry in entries for name in (key, entry.get("name") or key))
    return frozenset(
        " ".join(word for word in _taken_apart(name, told)[0].split() if not is_size(word)) for name in names
    )


def _having(names: Iterable[NamedModel]) -> Mapping[str, Sequence[int]]:
    """Which names have a word of letters."""
    having: dict[str, list[int]] = {}
    for index, (needed, optional, *_) in enumerate(names):
        for word in filter(str.isalpha, dict.fromkeys((*needed.split(), *optional.split()))):
            having.setdefault(word, []).append(index)
    return having


def _sees(entry: Mapping[str, Any], written: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether an entry, or the one that it is like, says what an image makes in it."""
    for _ in range(len(written)):
        if entry.get("image_tokens") is not None or "like" not in entry:
            break
        entry = written.get(str(entry["like"]), {})
    return bool(entry.get("image_tokens"))

"""Where entries of the catalog stand, and plain data turned into records without validation: the fast path of data that
was checked before.
"""

from __future__ import annotations

import functools
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from ..contract import PLAIN_TYPES
from ..record import dataclass, is_record

R = TypeVar("R")
T = TypeVar("T")
Convert = Callable[[Any], Any]
Entry = Mapping[str, Any]
Completed = Callable[[Entry, Entry, Callable[[str], Entry | None]], dict[str, Any]]
"""Gives a whole entry of one as written, the section of defaults, and other entries as written by their id."""

Derived = Callable[[dict[str, Any], Entry], dict[str, Any]]
"""Gives an entry with what follows from the rest of it and from the other sections of its files."""


@dataclass(frozen=True, slots=True)
class EntryKind(Generic[R]):
    """Where entries of a kind stand: in `file` under `key`.

    What an entry leaves out stands in the section `base`: under its `base_field`, or where `completed` finds it; what
    then follows from the rest of it, and from other sections of the files, `derived` fills in. More entries of the kind
    stand in the files `more`, which are read where one is asked for that `file` does not have.
    """

    file: str
    key: str
    record: type[R]
    base: str = ""
    base_field: str = ""
    completed: Completed | None = None
    derived: Derived | None = None
    more: tuple[str, ...] = ()
    needed: bool = True
    """A directory without `file` is no catalog."""

    @property
    def files(self) -> tuple[str, ...]:
        """All files that hold entries of the kind, in the order in which they are read."""
        return (self.file, *self.more)


class LikeError(LookupError):
    """An entry is like one that does not exist, or in the end like itself."""


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Lay `changes` over `base`: mappings merge key by key, everything else is replaced; neither is altered."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        if old is not None and isinstance(old, Mapping) and isinstance(value, Mapping):
            value = merged(old, value)
        result[key] = value
    return result


class Built(Mapping[str, T]):
    """A mapping whose values are made of plain data as they are asked for: a question needs few of a catalog's."""

    def __init__(self, written: Mapping[str, Any], convert: Callable[[Any], T]) -> None:
        self._written, self._convert = written, convert
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            self._made[name] = self._convert(self._written[name])
        return self._made[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a name, or the default."""
        return self[name] if name in self._written else default

    def __contains__(self, name: object) -> bool:
        return name in self._written

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)


def built(record: Callable[..., T], raw: Mapping[str, Any]) -> T:
    """Make a record, and those nested in it, of plain mappings and lists.

    Raises:
        TypeError, ValueError: the data does not fit; ask `catalog.validation` what is wrong.
    """
    values = {}
    for key, value in raw.items():
        convert = None if value.__class__ in PLAIN_TYPES else _field_converter(record, key)
        values[key] = value if convert is None else convert(value)
    return record(**values)


@functools.cache
def _field_converter(record: Any, name: str) -> Convert | None:
    """What turns plain data into a field's type; the hints of fields that hold no more than scalars are never read."""
    for kind in record.__mro__:
        if (hint := vars(kind).get("__annotations__", {}).get(name)) is not None:
            return _converter(eval(hint, vars(sys.modules[kind.__module__])) if isinstance(hint, str) else hint)
    return None


def _converter(hint: Any) -> Convert | None:
    """What turns plain data into the hinted type; None where it is that type already."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return _converter(typing.get_args(hint)[0])
    if origin in (types.UnionType, typing.Union):
        converters = [converter for option in typing.get_args(hint) if (converter := _converter(option))]
        return converters[0] if converters else None
    if origin is tuple:
        return _each_of_tuple(_converter(typing.get_args(hint)[0]))
    if origin is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return _each_of_mapping(_converter(typing.get_args(hint)[1]))
    if is_record(hint):
        return functools.partial(built, hint)
    return None


def _each_of_tuple(convert: Convert | None) -> Convert:
    return tuple if convert is None else functools.partial(_tuple_of, convert)


def _tuple_of(convert: Convert, values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(map(convert, values))


def _each_of_mapping(convert: Convert | None) -> Convert | None:
    return None if convert is None else functools.partial(Built, convert=convert)  # which travels to other processes


@dataclass(frozen=True, slots=True)
class Match(Generic[R]):
    """What a name was taken for; `note` says so where the name was not exact, `others` are ids it may have meant."""

    record: R
    note: str | None = None
    others: tuple[str, ...] = ()


_OWN = """id name aliases repositories contexts default_for has_weights like released published_parameters
    training_tokens rope_base"""
OF_ITS_OWN = frozenset((*_OWN.split(), "training_tokens_source", "notes", "sources", "unverified"))
"""What a model does not take from the one that it is like."""
OF_ITS_MAKER = frozenset({"license", "training_tokens", "training_tokens_source", "notes", "sources"})
"""What a model of another maker does not take from its family: of that it has the shapes alone."""


def completed_model(
    entry: Entry, families: Entry, written: Callable[[str], Entry | None], seen: tuple[str, ...] = ()
) -> dict[str, Any]:
    """An entry over its family, or over the model that it is `like`: the same weights trained otherwise.

    Raises:
        LikeError: naming the model that it cannot be like.
    """
    like = entry.get("like")
    if like is None:
        base = families.get(str(entry.get("family")))
        if not isinstance(base, Mapping):
            return dict(entry)
        if entry.get("organisation", base.get("organisation")) != base.get("organisation"):
            base = {key: value for key, value in base.items() if key not in OF_ITS_MAKER}
        return merged(base, entry)
    other = written(like) if isinstance(like, str) and like not in seen else None
    if other is None:
        raise LikeError(like)
    whole = completed_model(other, families, written, (*seen, str(like)))
    result = merged({key: value for key, value in whole.items() if key not in OF_ITS_OWN}, entry)
    alike = all(result.get(key) == whole.get(key) for key in ("context", "organisation"))
    if "rope_base" in whole and alike:  # what is read longer, or was tuned by others, may turn otherwise
        result.setdefault("rope_base", whole["rope_base"])
    del result["like"]
    return result

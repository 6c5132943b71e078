"""Where entries of the catalog stand, and plain data turned into records without validation: the fast path of data that
was checked before.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from ..record import dataclass

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
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def built(record: Callable[..., T], raw: Mapping[str, Any]) -> T:
    """Make a record, and those nested in it, of plain mappings and lists.

    Raises:
        TypeError, ValueError: the data does not fit; ask `catalog.validation` what is wrong.
    """
    plan = _plan(record)
    values = {}
    for key, value in raw.items():
        convert = plan.get(key)
        values[key] = value if convert is None or value is None else convert(value)
    return record(**values)


@functools.cache
def _plan(record: Any) -> dict[str, Convert | None]:
    hints = typing.get_type_hints(record)
    return {field.name: _converter(hints[field.name]) for field in dataclasses.fields(record)}


def _converter(hint: Any) -> Convert | None:
    """What turns plain data into the hinted type; None where it is that type already."""
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        converters = [converter for option in typing.get_args(hint) if (converter := _converter(option))]
        return converters[0] if converters else None
    if origin is tuple:
        return _each_of_tuple(_converter(typing.get_args(hint)[0]))
    if origin is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return _each_of_mapping(_converter(typing.get_args(hint)[1]))
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return functools.partial(built, hint)
    return None


def _each_of_tuple(convert: Convert | None) -> Convert:
    return tuple if convert is None else lambda values: tuple(map(convert, values))


def _each_of_mapping(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda values: {key: convert(value) for key, value in values.items()}

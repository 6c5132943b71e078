"""The JSON contract, stated once: records say with their fields what is written and what its JSON Schema holds.

A key is a field, or a property that is marked `published`. Its type, whether it may be missing or null, and its
docstring are the schema's (`render.schema`). What a record needs for itself alone is a `hidden` field.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from .record import dataclass, field, fields

if TYPE_CHECKING:
    published = property
else:

    class published(property):  # noqa: N801 - to be used as `property` is
        """A property that is written, after the fields."""


T = TypeVar("T")
Json = dict[str, Any]


class Absent(enum.Enum):
    """The type of `ABSENT`: a key whose type allows it is not always there."""

    ABSENT = 0

    def __bool__(self) -> bool:
        return False


ABSENT: Final = Absent.ABSENT
"""The value of a key that is left out."""

NULL: Final = "null"
MayBeNull = Annotated[T, NULL]
"""What is known today and may be null one day: readers of the contract have to be ready for that."""
ADDED: Final = "added"
Added = Annotated[T, ADDED]
"""A key that results of older versions lack."""


@dataclass(frozen=True, slots=True)
class Keys:
    """In `Annotated[Mapping[str, X], Keys(names)]`: the keys that the mapping has, all of them."""

    names: tuple[str, ...]
    added: tuple[str, ...] = ()
    """Those that results of older versions lack."""


def hidden(**more: Any) -> Any:
    """A field that is not written; `more` is what `dataclasses.field` takes."""
    return field(metadata={"hidden": True}, **more)


class Published:
    """A record that goes out as JSON."""

    __slots__ = ()

    def to_dict(self) -> Json:
        """What the contract writes of it: plain data."""
        return written(self)


def is_written_whole(kind: type) -> bool:
    """Whether records of a kind are written by their keys, and not in a way of their own."""
    return getattr(kind, "to_dict", None) is Published.to_dict


PLAIN_TYPES: Final = frozenset((str, int, float, bool, type(None)))
"""Types of values that JSON has as they are."""


@functools.cache
def keys_of(record: Any) -> tuple[str, ...]:
    """The keys of a record, in the order in which they are written."""
    names = [each.name for each in fields(record) if "hidden" not in each.metadata]
    properties = [name for kind in reversed(record.__mro__) for name, each in vars(kind).items() if _is_written(each)]
    return tuple(dict.fromkeys((*names, *properties)))


def _is_written(member: object) -> bool:
    return isinstance(member, published)


def written(record: Any) -> Json:
    """A record as a mapping of its keys to plain data."""
    found = {key: plain(value) for key, value in shallow(record).items()}
    return {key: value for key, value in found.items() if value is not ABSENT} if ABSENT in found.values() else found


NO_FIELDS: Final[Json] = {}


def shallow(record: Any) -> Json:
    """A record as a mapping of its keys to values that may be records themselves: what an encoder asks for, to read."""
    keys, values = readers(record.__class__)
    held: Json = getattr(record, "__dict__", NO_FIELDS)
    if tuple(held) == keys:
        return held
    return dict(zip(keys, values(record), strict=False))


@functools.cache
def readers(kind: Any) -> tuple[tuple[str, ...], Callable[[object], tuple[Any, ...]]]:
    """The keys of a kind of record, and what reads all of their values and the first again, so that there are many."""
    keys = keys_of(kind)
    return keys, attrgetter(*keys, keys[0])


def plain(value: Any) -> Any:
    """Any value of the contract as JSON has it: records and mappings become objects, sequences lists."""
    if value.__class__ in PLAIN_TYPES or value is ABSENT:
        return value
    if isinstance(value, Published):
        return value.to_dict()
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 - the second asks far longer
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value.to_dict() if hasattr(value, "to_dict") else written(value)


@dataclass(frozen=True, slots=True)
class Note(Published):
    """A warning or a reason: a stable code for scripts and one sentence for people."""

    code: str
    message: str


def given(values: Mapping[str, object]) -> Json:
    """The `inputs` of a command that settles nothing: what was said."""
    return {name: {"value": plain(value), "origin": "given"} for name, value in values.items()}


def envelope(
    name: str, catalog: str, inputs: Mapping[str, object], result: object, warnings: Sequence[object] = ()
) -> Json:
    """What a command writes: its result in the envelope that all commands share; `catalog` is the data's digest."""
    found = document(name, catalog, inputs, result, warnings)
    return {**found, "result": written(result) if isinstance(result, Published) else plain(result)}


def document(
    name: str, catalog: str, inputs: Mapping[str, object], result: object, warnings: Sequence[object] = ()
) -> Json:
    """The same with the result as it is, which JSON can be written of without taking it apart."""
    from . import __version__

    return {
        "schema": f"llmfeas.{name}/1",
        "llmfeas": __version__,
        "catalog": catalog,
        "inputs": inputs,
        "result": result,
        "warnings": plain(warnings),
    }

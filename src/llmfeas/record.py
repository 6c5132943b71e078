"""Dataclasses that are cheap to define and to build: a start-up defines 180 of them, a sweep builds millions.

The standard decorator writes and compiles five methods for each class, half a millisecond; here `__init__` is compiled
when the first record is made, and the others are shared. To a type checker all of this is `dataclasses`, which refuses
assignments to what is frozen; at run time nothing does, and `__init__` need not work around it. The tools of
`dataclasses` work on a record too: it makes its standard fields when they ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, eq=True):
        """Make a dataclass; the arguments mean what they mean to `dataclasses.dataclass`."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, slots=slots, kw_only=kw_only, eq=eq)
        own = vars(cls)
        defined = set(own)
        fields = dict(_inherited(cls))
        hints = {name: hint for name, hint in cls.__annotations__.items() if _is_field(hint)}
        written = {name: _Field(name, hint, own.get(name, _MISSING), kw_only) for name, hint in hints.items()}
        fields.update(written)
        made = _slotted(cls, written) if slots else _plain(cls, written)
        made.__record__ = fields
        made.__dataclass_fields__ = _StandardFields(made)
        made.__match_args__ = tuple(name for name, each in fields.items() if each.init and not each.kw_only)
        if "__init__" not in defined:
            made.__init__ = _compiling(made)
        if "__repr__" not in defined:
            made.__repr__ = _representation
        if eq and "__eq__" not in defined:
            names = [name for name, each in fields.items() if each.compare]
            made.__compared__ = staticmethod(attrgetter(*names) if names else _nothing)
            made.__eq__ = _equals
            if "__hash__" not in defined:
                made.__hash__ = _hash if frozen else None
        return made

    def field(**said):
        """What a field says besides its type, as `dataclasses.field`."""
        return _Said(said)

    def replace(record, /, **changes):
        """A copy of a record in which some fields are others, as `dataclasses.replace`."""
        for name, each in record.__record__.items():
            if each.init and name not in changes:
                changes[name] = getattr(record, name)
        return record.__class__(**changes)


_MISSING: Any = object()


class _Said(dict[str, Any]):
    """What `field` was told."""


class _Field:
    """A field of a record: the part of `dataclasses.Field` that making, comparing and writing one needs."""

    __slots__ = ("compare", "default", "factory", "hint", "init", "kw_only", "metadata", "name", "repr", "said")

    def __init__(self, name: str, hint: Any, default: Any, kw_only: bool) -> None:
        if default.__class__.__module__ == "dataclasses":
            raise TypeError(f"{name}: a record's field is one of llmfeas.record")
        said = default if isinstance(default, _Said) else {} if default is _MISSING else {"default": default}
        self.name, self.hint, self.said = name, hint, said
        self.default, self.factory = said.get("default", _MISSING), said.get("default_factory")
        self.init, self.repr, self.compare = (said.get(key, True) for key in ("init", "repr", "compare"))
        self.kw_only, self.metadata = said.get("kw_only", kw_only), said.get("metadata", {})


def is_record(kind: object) -> bool:
    """Whether this is a class of records, or one of them."""
    return hasattr(kind, "__record__")


def fields(record: Any) -> tuple[_Field, ...]:
    """The fields of a record, or of a class of them, in their order."""
    return tuple(record.__record__.values())


def _inherited(cls: Any) -> Iterator[tuple[str, _Field]]:
    for base in reversed(cls.__mro__[1:]):
        yield from vars(base).get("__record__", {}).items()


def _is_field(hint: object) -> bool:
    return not str(hint).startswith(("ClassVar", "typing.ClassVar"))


def _plain(cls: Any, written: dict[str, _Field]) -> Any:
    """The class with the defaults of its fields as attributes, as the standard decorator leaves it."""
    for name, each in written.items():
        if each.default is not _MISSING:
            setattr(cls, name, each.default)
        elif name in vars(cls):
            delattr(cls, name)
    return cls


def _slotted(cls: Any, written: dict[str, _Field]) -> Any:
    """The class anew with slots in place of the defaults of its fields."""
    taken = {name for base in cls.__mro__[1:] for name in getattr(base, "__slots__", ())}
    members = {name: value for name, value in vars(cls).items() if name not in written}
    for name in ("__dict__", "__weakref__"):
        members.pop(name, None)
    members["__slots__"] = tuple(name for name in written if name not in taken)
    members["__qualname__"] = cls.__qualname__
    return type(cls)(cls.__name__, cls.__bases__, members)


def _compiling(cls: Any) -> Callable[..., None]:
    """An `__init__` that puts the compiled one in its place."""

    def initialize(self: Any, *values: Any, **named: Any) -> None:
        cls.__init__ = made = _initializer(cls)
        made(self, *values, **named)

    return initialize


def _initializer(cls: Any) -> Callable[..., None]:
    """Compile `__init__`; the names that stand in it are those of our own fields."""
    known: dict[str, Any] = {"_MISSING": _MISSING}
    positional: list[str] = []
    named: list[str] = []
    body: list[str] = []
    for name, each in cls.__record__.items():
        known[f"_{name}_default"], known[f"_{name}_factory"] = each.default, each.factory
        value = name
        if each.factory is not None:
            value = f"_{name}_factory() if {name} is _MISSING else {name}" if each.init else f"_{name}_factory()"
        elif not each.init:
            value = f"_{name}_default"
        optional = "=_MISSING" if each.factory else "" if each.default is _MISSING else f"=_{name}_default"
        if each.init:
            (named if each.kw_only else positional).append(name + optional)
        if each.init or each.factory or each.default is not _MISSING:
            body.append(f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    given = ", ".join(("self", *positional, *(("*", *named) if named else ())))
    exec(f"def __init__({given}):\n" + ("\n".join(body) or " pass"), known)
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


class _StandardFields:
    """`__dataclass_fields__` of a record, by the standard decorator on a twin of the class, once somebody asks."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    def __get__(self, record: object, owner: Any) -> Any:
        import dataclasses

        cls = self.cls
        said = {each.name: dataclasses.field(**{"kw_only": each.kw_only, **each.said}) for each in fields(cls)}
        hints = {each.name: each.hint for each in fields(cls)}
        twin = type(cls.__name__, (), {**said, "__annotations__": hints, "__module__": cls.__module__})
        cls.__dataclass_fields__ = vars(dataclasses.dataclass(twin, init=False))["__dataclass_fields__"]
        return cls.__dataclass_fields__


def _nothing(record: Any) -> tuple[()]:
    return ()


def _equals(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.__compared__(self) == self.__compared__(other)


def _hash(self: Any) -> int:
    return hash(self.__compared__(self))


def _representation(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"

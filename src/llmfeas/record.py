"""Dataclasses that are cheap to define and to build: a start-up defines 180 of them, a sweep builds millions.

The standard decorator writes and compiles five methods for each class, half a millisecond; here `__init__` is made when
the first record is, with the code of all classes that have as many fields, the others are shared, and fields are read
when somebody asks for them. To a type checker all of this is `dataclasses`, which refuses assignments to what is
frozen; at run time nothing does, and `__init__` need not work around it. The tools of `dataclasses` work on a record
too: it makes its standard fields when they ask.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType
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
        hints = {name: hint for name, hint in cls.__annotations__.items() if _is_field(hint)}
        said = {name: own[name] for name in hints if name in own}
        for name, default in said.items():
            if default.__class__.__module__ == "dataclasses":
                raise TypeError(f"{name}: a record's field is one of llmfeas.record")
        made = _slotted(cls, hints) if slots else _plain(cls, said)
        _Later(made, "__record__", lambda cls: _fields_of(cls, hints, said, kw_only))
        _Later(made, "__dataclass_fields__", _standard_fields)
        _Later(made, "__match_args__", _positional)
        if "__init__" not in own:
            made.__init__ = _compiling(made)
        if "__repr__" not in own:
            made.__repr__ = _representation
        if eq and "__eq__" not in own:
            _Later(made, "__compared__", _compared)
            made.__eq__ = _equals
            if "__hash__" not in own:
                made.__hash__ = _hash if frozen else None
        return made

    def field(**said):
        """What a field says besides its type, as `dataclasses.field`."""
        return _Said(said)

    def replace(record, /, **changes):
        """A copy of a record in which some fields are others, as `dataclasses.replace`; a large one has its own way."""
        if hasattr(record, "__replace__"):
            return record.__replace__(**changes)
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


class _Later:
    """An attribute of a class that is made when it is first asked for: most classes are never asked for most."""

    __slots__ = ("cls", "make", "name")

    def __init__(self, cls: Any, name: str, make: Callable[[Any], Any]) -> None:
        self.cls, self.name, self.make = cls, name, make
        setattr(cls, name, self)

    def __get__(self, record: object, owner: object) -> Any:
        made = self.make(self.cls)
        setattr(self.cls, self.name, made)
        return made


def _fields_of(cls: Any, hints: dict[str, Any], said: dict[str, Any], kw_only: bool) -> dict[str, _Field]:
    """The fields of a class: those of its bases, and its own."""
    found: dict[str, _Field] = {}
    for base in reversed(cls.__mro__[1:]):
        if "__record__" in vars(base):
            found.update(base.__record__)
    for name, hint in hints.items():
        found[name] = _Field(name, hint, said.get(name, _MISSING), kw_only)
    return found


def _positional(cls: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(cls) if each.init and not each.kw_only)


def _compared(cls: Any) -> Callable[[object], object]:
    names = [each.name for each in fields(cls) if each.compare]
    return attrgetter(*names) if names else type


def _is_field(hint: object) -> bool:
    return not str(hint).startswith(("ClassVar", "typing.ClassVar"))


def _plain(cls: Any, said: dict[str, Any]) -> Any:
    """The class with the defaults of its fields as attributes, as the standard decorator leaves it."""
    for name, value in said.items():
        if not isinstance(value, _Said):
            continue
        if "default" in value:
            setattr(cls, name, value["default"])
        else:
            delattr(cls, name)
    return cls


def _slotted(cls: Any, written: Collection[str]) -> Any:
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
    """`__init__` of a class; what is not plain is compiled for it alone."""
    plain = all(each.init and each.factory is None for each in fields(cls))
    made = _of_shape(cls) if plain else _own(cls)
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _of_shape(cls: Any) -> Callable[..., None]:
    """`__init__` with the code of all classes that have as many fields, under other names."""
    every = sorted(fields(cls), key=lambda each: each.kw_only)
    names, named = [each.name for each in every], [each for each in every if each.kw_only]
    defaults = [each.default for each in every if not each.kw_only]
    while _MISSING in defaults:
        if defaults.pop(0) is not _MISSING:
            raise TypeError(f"{cls.__qualname__}: a field without a default follows one that has one")
    code = _shape(len(names), hasattr(cls, "__post_init__"))
    code = code.replace(
        co_argcount=1 + len(names) - len(named),
        co_kwonlyargcount=len(named),
        co_varnames=("self", *names),
        co_names=(*names, *code.co_names[len(names) :]),
    )
    made = FunctionType(code, {}, "__init__", tuple(defaults))
    made.__kwdefaults__ = {each.name: each.default for each in named if each.default is not _MISSING}
    return made


@cache
def _shape(count: int, more: bool) -> CodeType:
    names = [f"field_{place}" for place in range(count)]
    body = [*(f" self.{name} = {name}" for name in names), *([" self.__post_init__()"] if more else ())]
    found: dict[str, Any] = {}
    exec(f"def __init__({', '.join(('self', *names))}):\n" + ("\n".join(body) or " pass"), found)
    made: CodeType = found["__init__"].__code__
    return made


def _own(cls: Any) -> Callable[..., None]:
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
    return made


def _standard_fields(cls: Any) -> Any:
    """`__dataclass_fields__` of a record, by the standard decorator on a twin of the class."""
    import dataclasses

    said = {each.name: dataclasses.field(**{"kw_only": each.kw_only, **each.said}) for each in fields(cls)}
    hints = {each.name: each.hint for each in fields(cls)}
    twin = type(cls.__name__, (), {**said, "__annotations__": hints, "__module__": cls.__module__})
    return vars(dataclasses.dataclass(twin, init=False))["__dataclass_fields__"]


def _equals(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.__compared__(self) == self.__compared__(other)


def _hash(self: Any) -> int:
    return hash(self.__compared__(self))


def _representation(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"

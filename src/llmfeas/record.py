"""Dataclasses that are cheap to define and to build: a start-up defines 180 of them, a sweep builds millions.

The standard decorator writes and compiles five methods for each class, half a millisecond; here fields are read when
somebody asks for them, records are filled as a mapping, and `__init__` is compiled where many of a class are made from
values in their places, with the code of all classes that have as many fields: from names Python fills thirty fields in
seven times the time of a mapping. To a type checker all of this is `dataclasses`,
which refuses assignments to what is frozen and to what is no field; at run time nothing does, and `__init__` need not
work around it. The tools of `dataclasses` work on a record too: it makes its standard fields when they ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import TypeVar

    T = TypeVar("T")

    def compact(cls: type[T]) -> type[T]:
        """The same class."""
        return cls
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, eq=True):
        """Make a dataclass; the arguments mean what they mean to `dataclasses.dataclass`, but for slots (`compact`)."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, kw_only=kw_only, eq=eq)
        own = cls.__dict__
        cls.__record__ = _NAMED if kw_only else _PLACED
        cls.__dataclass_fields__ = _STANDARD
        cls.__match_args__ = _POSITIONAL
        if "__init__" not in own:
            cls.__init__ = _tentative(cls)
        if "__repr__" not in own:
            cls.__repr__ = _representation
        if eq and "__eq__" not in own:
            cls.__compared__ = _COMPARED
            cls.__eq__ = _equals
            if "__hash__" not in own:
                cls.__hash__ = _hash if frozen else None
        return cls

    def compact(cls):
        """A class with slots, for a record of which there are very many: making such a class takes twice as long."""
        own = vars(cls)
        names = [name for name, hint in cls.__annotations__.items() if _is_field(hint)]
        members = {name: value for name, value in own.items() if name not in (*names, "__dict__", "__weakref__")}
        said = {name: own[name] for name in names if name in own}
        members |= {"__slots__": tuple(names), "__said__": said, "__qualname__": cls.__qualname__}
        return type(cls)(cls.__name__, cls.__bases__, members)

    def field(**said):
        """What a field says besides its type, as `dataclasses.field`."""
        return _Said(said)

    def replace(record, /, **changes):
        """A copy of a record in which some fields are others, as `dataclasses.replace`; a large one has its own way."""
        if hasattr(record, "__replace__"):
            return record.__replace__(**changes)
        names = _copied(record.__class__)
        if names is not None:
            held = record.__dict__
            state = {**{name: held[name] for name in names}, **changes}
            if len(state) == len(names):
                copy = object.__new__(record.__class__)
                copy.__dict__ = state
                return copy
        for name, each in record.__record__.items():
            if each.init and name not in changes:
                changes[name] = getattr(record, name)
        return record.__class__(**changes)


_MISSING: Any = object()
TENTATIVE = 64
"""So many records of a class are made from values in their places before its `__init__` is compiled."""


class _Said(dict[str, Any]):
    """What `field` was told; as an attribute of the class it is the default, where there is one."""

    def __get__(self, record: object, owner: object) -> Any:
        if "default" in self:
            return self["default"]
        raise AttributeError("a field without a default")


_NOTHING: dict[str, Any] = {}


class _Field:
    """A field of a record: the part of `dataclasses.Field` that making, comparing and writing one needs."""

    init = repr = compare = True
    factory: Any = None
    metadata: Any = _NOTHING
    said: dict[str, Any] = _NOTHING

    def __init__(self, name: str, hint: Any, default: Any, kw_only: bool) -> None:
        self.name, self.hint, self.default, self.kw_only = name, hint, default, kw_only
        if default.__class__ is _Said:
            self.said, get = default, default.get
            self.default, self.factory = get("default", _MISSING), get("default_factory")
            self.init, self.repr, self.compare = get("init", True), get("repr", True), get("compare", True)
            self.kw_only, self.metadata = get("kw_only", kw_only), get("metadata", _NOTHING)
        elif default.__class__.__module__ == "dataclasses":
            raise TypeError(f"{name}: a record's field is one of llmfeas.record")


def is_record(kind: object) -> bool:
    """Whether this is a class of records, or one of them."""
    return hasattr(kind, "__record__")


def fields(record: Any) -> tuple[_Field, ...]:
    """The fields of a record, or of a class of them, in their order."""
    return tuple(record.__record__.values())


class _Later:
    """An attribute of classes that each makes when it is first asked for: most are never asked for most."""

    __slots__ = ("make", "name")

    def __init__(self, name: str, make: Callable[[Any], Any]) -> None:
        self.name, self.make = name, make

    def __get__(self, record: object, owner: Any) -> Any:
        cls = next(cls for cls in owner.__mro__ if vars(cls).get(self.name) is self)
        made = self.make(cls)
        setattr(cls, self.name, made)
        return made


def _fields_of(cls: Any, kw_only: bool = False) -> dict[str, _Field]:
    """The fields of a class: those of its bases, and its own."""
    found: dict[str, _Field] = {}
    for base in cls.__mro__[-2:0:-1]:
        if "__record__" in vars(base):
            found.update(base.__record__)
    own = vars(cls)
    said = own.get("__said__", own)
    for name, hint in cls.__annotations__.items():
        if _is_field(hint):
            default = said.get(name, _MISSING)
            found[name] = each = _Field(name, hint, default, kw_only)
            if default.__class__ is _Said and said is own:
                _tell(cls, each)
    return found


def _is_field(hint: object) -> bool:
    return not str(hint).startswith(("ClassVar", "typing.ClassVar"))


def _tell(cls: Any, field: _Field) -> None:
    """Leave the default as an attribute of the class, as the standard decorator does."""
    if field.default is _MISSING:
        delattr(cls, field.name)
    else:
        setattr(cls, field.name, field.default)


def _positional(cls: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(cls) if each.init and not each.kw_only)


@cache
def _copied(record: Any) -> tuple[str, ...] | None:
    """The names of all fields where a record is nothing but their values; None where making one does more."""
    every = record.__record__
    more = (
        hasattr(record, "__post_init__") or "__slots__" in vars(record) or not all(each.init for each in every.values())
    )
    return None if more else tuple(every)


def _compared(cls: Any) -> Callable[[object], object]:
    names = [each.name for each in fields(cls) if each.compare]
    return attrgetter(*names) if names else type


def _standard_fields(cls: Any) -> Any:
    """`__dataclass_fields__` of a record, by the standard decorator on a twin of the class."""
    import dataclasses

    plain = {each.name: {} if each.default is _MISSING else {"default": each.default} for each in fields(cls)}
    told = {each.name: {"kw_only": each.kw_only, **(each.said or plain[each.name])} for each in fields(cls)}
    said = {name: dataclasses.field(**one) for name, one in told.items()}
    hints = {each.name: each.hint for each in fields(cls)}
    twin = type(cls.__name__, (), {**said, "__annotations__": hints, "__module__": cls.__module__})
    return vars(dataclasses.dataclass(twin, init=False))["__dataclass_fields__"]


def _in_order(cls: Any) -> tuple[str, ...]:
    """The positional fields.

    Raises:
        TypeError: one without a default stands behind one that has one.
    """
    every, placed = cls.__record__, _positional(cls)
    without = [name for name in placed if every[name].default is _MISSING and not every[name].factory]
    if without != list(placed[: len(without)]):
        raise TypeError(f"{cls.__qualname__}: a field without a default follows one that has one")
    return placed


_PLACED = _Later("__record__", _fields_of)
_NAMED = _Later("__record__", lambda cls: _fields_of(cls, kw_only=True))
_STANDARD = _Later("__dataclass_fields__", _standard_fields)
_POSITIONAL = _Later("__match_args__", _positional)
_COMPARED = _Later("__compared__", _compared)


def _tentative(cls: Any) -> Callable[..., None]:
    """An `__init__` that finds out, when it is first called, how to fill records name by name."""

    def __init__(self: Any, /, *values: Any, **named: Any) -> None:  # noqa: N807
        cls.__init__ = made = _filling(cls)
        made(self, *values, **named)

    return __init__


def _filling(cls: Any) -> Callable[..., None]:
    """An `__init__` that fills records as a mapping; where many come from values in their places it puts the compiled
    one in its place, and where what it was given does not fit, which that one refuses.

    Raises:
        TypeError: a positional field without a default stands behind one that has one.
    """
    every, more, left = cls.__record__, hasattr(cls, "__post_init__"), TENTATIVE
    defaults = {name: each.default for name, each in every.items() if each.default is not _MISSING}
    factories = [(name, each.factory) for name, each in every.items() if each.factory]
    unnamed = {name for name, each in every.items() if not each.init}
    if unnamed.difference(defaults, dict(factories)) or "__slots__" in vars(cls):
        return _initializer(cls)
    placed, count, may_be_named = _in_order(cls), len(every), every.keys() - unnamed
    _share_keys(cls, every)

    def __init__(self: Any, /, *values: Any, **named: Any) -> None:  # noqa: N807
        nonlocal left
        fits = named.keys() <= may_be_named
        state = named
        if values:
            left -= 1
            state = dict(zip(placed, values, strict=False))
            fits = fits and len(values) <= len(placed) and state.keys().isdisjoint(named)
            state.update(named)
        if len(state) != count:
            state = {**defaults, **state}
            for name, make in factories:
                if name not in state:
                    state[name] = make()
        if left < 0 or not fits or len(state) != count:  # of its fields alone: then all are there
            cls.__init__ = made = _initializer(cls)
            made(self, *values, **named)
            return
        self.__dict__ = state
        if more:
            self.__post_init__()

    return __init__


def _share_keys(cls: Any, names: Iterable[str]) -> None:
    """Have Python learn the attributes of a class from a first record, filled one by one: of each that comes with a
    mapping it concludes that there are fewer, and compiled ones would take twice as long.
    """
    first = object.__new__(cls)
    for name in names:
        setattr(first, name, None)


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
    defaults = [each.default for each in every if not each.kw_only and each.default is not _MISSING]
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


def _equals(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.__compared__(self) == self.__compared__(other)


def _hash(self: Any) -> int:
    return hash(self.__compared__(self))


def _representation(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"

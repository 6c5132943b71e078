"""Our dataclasses behave as the standard ones do, apart from being frozen at run time."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pickle
from typing import ClassVar

import pytest

from llmfeas.record import TENTATIVE, compact, dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0
    note: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Point):
    name: str
    tags: list[str] = field(default_factory=list)
    total: int = field(default=0, init=False)


@dataclass(slots=True)
class Counter:
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Token:
    text: str


@dataclass(frozen=True)
class Empty:
    pass


@dataclass(frozen=True, slots=True)
class Hashed:
    x: int

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "own"


def test_values_are_equal_by_their_compared_fields() -> None:
    assert Point(1, note="a") == Point(1, 0, note="b")
    assert Point(1) != Point(2)
    assert Point(1) != (1, 0)
    assert Named(x=1, name="n") != Point(1)
    assert Empty() == Empty()


def test_frozen_values_are_keys() -> None:
    assert {Point(1): "a"}[Point(1, 0, "note")] == "a"
    assert hash(Point(1, 2)) != hash(Point(2, 1))
    assert hash(Hashed(1)) == 7
    assert hash(Empty()) == hash(Empty())
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter(1))


def test_identity_where_it_is_asked_for() -> None:
    assert Token("a") != Token("a")
    assert len({Token("a"), Token("a")}) == 2


def test_representation() -> None:
    assert repr(Named(x=1, name="n")) == "Named(x=1, y=0, name='n', tags=[], total=0)"
    assert repr(Hashed(1)) == "own"


@dataclass(frozen=True, slots=True)
@compact
class Small:
    x: int
    y: list[int] = field(default_factory=list, compare=False)
    kind: ClassVar[str] = "small"

    def doubled(self) -> int:
        return self.x * 2


def test_a_compact_record_has_slots() -> None:
    small = Small(1)
    assert not hasattr(small, "__dict__")
    with pytest.raises(AttributeError):
        small.z = 3  # type: ignore[attr-defined]
    assert (small.y, small.kind, small.doubled(), Small.__qualname__) == ([], "small", 2, "Small")
    assert small == Small(1, [2]) == pickle.loads(pickle.dumps(small))
    assert small.y is not Small(1).y


def test_defaults_and_post_init() -> None:
    for x in (-1, *range(2 * TENTATIVE), -1):
        if x >= 0:
            assert (Point(x).y, Point(x, y=2).note) == (0, "")
            continue
        with pytest.raises(ValueError, match="x"):
            Point(x)
        with pytest.raises(TypeError):
            Named(1, 2, "", "n")  # type: ignore[misc]


def test_defaults_are_attributes_of_the_class() -> None:
    """As the standard decorator leaves them, also before somebody asks for fields."""

    @dataclass
    class Fresh:
        x: int = 1
        y: int = field(default=2)
        z: list[int] = field(default_factory=list)

    for _ in range(2):
        assert (Fresh.x, Fresh.y, hasattr(Fresh, "z")) == (1, 2, False)
        assert Fresh().z == []


def arguments(count: int) -> list[tuple[tuple[int, ...], dict[str, int]]]:
    """Calls that fit and calls that do not, for fields a, b = 5, *, c, d = 7."""
    return [
        (tuple(range(placed)), dict.fromkeys(named, 9))
        for placed in range(count)
        for size in range(count)
        for named in itertools.combinations("abcde", size)
    ]


def test_the_first_records_are_made_as_later_ones_are() -> None:
    """By name or compiled: the same values, and the same message where they do not fit."""

    def outcome(kind: type[object], placed: tuple[int, ...], named: dict[str, int]) -> object:
        try:
            return sorted(vars(kind(*placed, **named)).items())
        except TypeError as error:
            return str(error)

    for placed, named in arguments(4):

        @dataclasses.dataclass
        class Standard:
            a: int
            b: int = 5
            c: int = dataclasses.field(kw_only=True)
            d: int = dataclasses.field(default=7, kw_only=True)

        @dataclass
        class Ours:
            a: int
            b: int = 5
            c: int = field(kw_only=True)
            d: int = field(default=7, kw_only=True)

        expected = str(outcome(Standard, placed, named)).replace("Standard", "Ours")
        assert [str(outcome(Ours, placed, named)) for _ in range(2 * TENTATIVE)] == [expected] * 2 * TENTATIVE


def test_the_tools_of_the_standard_library_work() -> None:
    point = dataclasses.replace(Point(1), y=5)
    assert dataclasses.asdict(point) == {"x": 1, "y": 5, "note": ""}
    assert dataclasses.is_dataclass(Point)
    assert pickle.loads(pickle.dumps(point)) == point


def test_standard_fields_are_those_that_the_standard_decorator_makes() -> None:
    """Ours are read from the same class, so that the two cannot drift apart."""
    for kind in (Point, Named, Counter, Token, Empty, Hashed):
        standard, ours = dataclasses.fields(kind), kind.__record__.values()  # type: ignore[attr-defined]
        for one, other in zip(standard, ours, strict=True):
            assert one.name == other.name
            assert (one.init, one.repr, one.compare, one.kw_only) == (
                other.init,
                other.repr,
                other.compare,
                other.kw_only,
            )
            assert one.default_factory is (other.factory or dataclasses.MISSING)
            assert one.type == other.hint


def test_a_copy_differs_in_what_is_said() -> None:
    named = Named(x=1, name="n")
    assert replace(named, name="m") == Named(x=1, name="m")
    assert replace(named).tags is named.tags
    assert Named(x=1, name="m").tags is not named.tags
    with pytest.raises(TypeError, match=r"Named\.__init__\(\) got an unexpected keyword argument 'z'"):
        replace(named, z=1)  # type: ignore[call-arg]


@dataclass(frozen=True)
class Plain:
    x: int
    y: int = 2

    @functools.cached_property
    def sum(self) -> int:
        return self.x + self.y


def test_a_copy_of_nothing_but_values_forgets_what_was_found_out_of_them() -> None:
    plain = Plain(1)
    assert plain.sum == 3
    assert (replace(plain, x=5).sum, replace(plain), vars(replace(plain))) == (7, plain, {"x": 1, "y": 2})
    with pytest.raises(TypeError, match=r"Plain\.__init__\(\) got an unexpected keyword argument 'z'"):
        replace(plain, z=1)  # type: ignore[call-arg]


def test_a_field_without_a_default_stands_before_those_with_one() -> None:
    @dataclass
    class Wrong:
        x: int = 1
        y: str  # type: ignore[misc]

    with pytest.raises(TypeError, match="without a default"):
        Wrong(1, "y")


def test_defaults_are_those_of_the_last_fields_and_of_named_ones() -> None:
    @dataclass(kw_only=True)
    class Late(Point):
        z: int = 3
        name: str

    made = Late(5, name="n")
    assert (made.x, made.y, made.note, made.z, made.name) == (5, 0, "", 3, "n")
    with pytest.raises(TypeError, match=r"missing 1 required keyword-only argument: 'name'"):
        Late(5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'x'"):
        Late(name="n")  # type: ignore[call-arg]


def test_a_class_variable_is_no_field() -> None:
    @dataclass(frozen=True)
    class Configured:
        x: int
        kind: ClassVar[str] = "k"

    assert [each.name for each in dataclasses.fields(Configured)] == ["x"]
    assert Configured(1).kind == "k"


def test_a_field_of_the_standard_library_is_refused() -> None:
    @dataclass
    class Wrong:
        x: int = dataclasses.field(default=1)

    with pytest.raises(TypeError, match="llmfeas"):
        Wrong()

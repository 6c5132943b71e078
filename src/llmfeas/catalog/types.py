"""Constrained field types of the catalog's records.

The records are plain frozen dataclasses: cheap to import and to build. pydantic reads the same annotations whenever
data comes from outside (`catalog.validation`), so that a constraint is written once.
"""

from __future__ import annotations

import functools
import operator
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar

from ..record import fields, is_record


class Limits:
    """Bounds of a value, in pydantic's words; pydantic asks for them, and nobody else pays for them."""

    __slots__ = ("bounds",)

    def __init__(self, **bounds: float | str) -> None:
        self.bounds = bounds

    def __get_pydantic_core_schema__(self, source: object, handler: Callable[[object], dict[str, Any]]) -> Any:
        """Add the bounds to the schema of the bare type."""
        return {**handler(source), **self.bounds}

    def broken_by(self, value: float) -> str:
        """Say which bound a number breaks; empty where it is within."""
        for name, bound in self.bounds.items():
            if name not in _BOUNDS:
                continue
            within, words = _BOUNDS[name]
            if not within(value, bound):
                return f"is {value:.6g}, but must be {words} {bound:.6g}"
        return ""


_BOUNDS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "gt": (operator.gt, "above"),
    "ge": (operator.ge, "at least"),
    "le": (operator.le, "at most"),
}


def beyond_limits(record: Any) -> Iterator[str]:
    """Yield what pydantic would refuse of a record's numbers, those of records in it too: `mla.v_head_dim is 0, ...`.

    For records that a program has computed from what it read: nobody has checked them.
    """
    kind: type = type(record)
    hints = hints_of(kind)
    for field in fields(record):
        value = getattr(record, field.name)
        parts = value if isinstance(value, tuple) else (value,)
        for number, part in enumerate(parts):
            if is_record(part):
                place = f"{field.name}[{number}]" if isinstance(value, tuple) else field.name
                yield from (f"{place}.{fault}" for fault in beyond_limits(part))
        if isinstance(value, int | float):
            faults = (limits.broken_by(value) for limits in _limits_in(hints[field.name]))
            yield from (f"{field.name} {fault}" for fault in faults if fault)


@functools.cache
def hints_of(kind: type) -> Mapping[str, Any]:
    """The types of a record's fields, with their bounds."""
    return typing.get_type_hints(kind, include_extras=True)


def _limits_in(hint: Any) -> Iterator[Limits]:
    """Find the bounds in a hint such as `Count | None`."""
    for part in typing.get_args(hint):
        if isinstance(part, Limits):
            yield part
        elif typing.get_origin(part) is typing.Annotated:
            yield from _limits_in(part)


_UNSEEN = "\x00-\x1f\x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000"
_UNSEEN += "\ue000-\uf8ff\ufeff\ufff9-\ufffb"
"""Characters that control, order or hide others; as a regular expression of JSON Schema has them."""
Count = Annotated[int, Limits(gt=0, le=10**15)]
CountOrZero = Annotated[int, Limits(ge=0, le=10**15)]
Layers = Annotated[int, Limits(gt=0, le=10_000)]
Few = Annotated[int, Limits(gt=0, le=100)]
"""What is unrolled one by one: far above any real model, low enough to stay quick."""
Positive = Annotated[float, Limits(gt=0, le=1e30)]
PositiveOrZero = Annotated[float, Limits(ge=0, le=1e30)]
Gib = Annotated[float, Limits(gt=0, le=1e6)]
"""Memory of a device or machine. The largest of each kind is far above whatever was built, wafers included."""
GbPerS = Annotated[float, Limits(gt=0, le=1e8)]
TflopPerS = Annotated[float, Limits(gt=0, le=1e7)]
Watts = Annotated[float, Limits(gt=0, le=1e6)]
Usd = Annotated[float, Limits(ge=0, le=1e9)]
Spread = Annotated[float, Limits(ge=0, le=5)]
"""Standard deviation of a logarithm."""
Fraction = Annotated[float, Limits(ge=0, le=1)]
Share = Annotated[float, Limits(gt=0, le=1)]
Identifier = Annotated[str, Limits(min_length=1, max_length=100, pattern=f"^[^{_UNSEEN}]+$")]
"""A name: whatever shows it may do so as it stands."""


class Strict:
    """A record of data: to pydantic unknown keys and non-finite numbers are errors."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "allow_inf_nan": False, "arbitrary_types_allowed": False}

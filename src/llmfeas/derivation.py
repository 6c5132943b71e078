"""Arithmetic that can say itself: the same function, of plain numbers or of numbers with names.

What computes a figure names the numbers that go into it, `say("tokens", work.tokens, "tokens")`. While figures are
computed `plain` hands each number on as it is. A derivation runs the same code with a `Parts`, whose numbers remember
the arithmetic that they went through: no formula is written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from .record import dataclass

DERIVED, MODEL, DEVICE, SETTING = "derived", "model", "device", "setting"
"""Where a number comes from; a setting's is that of the question."""
PEAK, BANDWIDTH = "of peak", "of bandwidth"
"""Origins of rates that are told as a calibrated share of what the device states."""
EFFICIENCY, ENGINES, RUNTIME = "data/efficiency.yaml", "data/engines.yaml", "data/runtime.yaml"
"""Origins of what was calibrated on measurements."""


class Say(Protocol):
    """Names a number of a formula."""

    def __call__(self, name: str, value: float, unit: str = "", origin: str = DERIVED, /) -> float:
        """The number, which goes by this name in what is made of it."""


def plain(_name: str, value: float, _unit: str = "", _origin: str = DERIVED, /) -> float:
    """The number alone."""
    return value


Note = Callable[[str], Say]
"""What names the numbers of a part."""


def unnoted(_part: str) -> Say:
    """Nobody asks how the parts come about."""
    return plain


SUM, PRODUCT, POWER, ATOM = range(4)
"""How tightly the last operation of a formula binds."""


class NamedNumber(float):
    """A number and the formula over names that it came from."""

    __slots__ = ("binds", "formula")
    formula: str
    binds: int

    def __new__(cls, value: float, formula: str, binds: int = ATOM) -> NamedNumber:
        """A number that goes by a formula."""
        made = super().__new__(cls, value)
        made.formula, made.binds = formula, binds
        return made

    def __add__(self, other: float) -> NamedNumber:
        if not isinstance(other, NamedNumber) and not other:
            return self
        return _joined(float(self) + float(other), self, " + ", other, SUM)

    def __radd__(self, other: float) -> NamedNumber:
        return _joined(float(other) + float(self), other, " + ", self, SUM) if other else self

    def __sub__(self, other: float) -> NamedNumber:
        return _joined(float(self) - float(other), self, " - ", other, SUM, strict=True)

    def __rsub__(self, other: float) -> NamedNumber:
        return _joined(float(other) - float(self), other, " - ", self, SUM, strict=True)

    def __mul__(self, other: float) -> NamedNumber:
        return _joined(float(self) * float(other), self, " * ", other, PRODUCT)

    def __rmul__(self, other: float) -> NamedNumber:
        return _joined(float(other) * float(self), other, " * ", self, PRODUCT)

    def __truediv__(self, other: float) -> NamedNumber:
        return _joined(float(self) / float(other), self, " / ", other, PRODUCT, strict=True)

    def __rtruediv__(self, other: float) -> NamedNumber:
        return _joined(float(other) / float(self), other, " / ", self, PRODUCT, strict=True)

    def __pow__(self, other: float, _modulo: None = None) -> NamedNumber:
        value: float = float(self) ** float(other)
        return NamedNumber(value, f"{_bracketed(self, ATOM)} ** {_bracketed(other, ATOM)}", POWER)


def _joined(value: float, left: float, sign: str, right: float, binds: int, *, strict: bool = False) -> NamedNumber:
    """Two formulas in one; `strict` where what binds as tightly on the right needs brackets."""
    return NamedNumber(value, f"{_bracketed(left, binds)}{sign}{_bracketed(right, binds + strict)}", binds)


def _bracketed(number: float, binds: int) -> str:
    if isinstance(number, NamedNumber):
        return number.formula if number.binds >= binds else f"({number.formula})"
    return formula_of(number)


def formula_of(number: float) -> str:
    """The formula of a number; one without a name stands for itself."""
    return number.formula if isinstance(number, NamedNumber) else f"{number:.12g}"


def largest(*numbers: float) -> float:
    """The largest of some numbers."""
    return _picked(max(numbers), "max", numbers)


def smallest(*numbers: float) -> float:
    """The smallest of some numbers."""
    return _picked(min(numbers), "min", numbers)


def _picked(value: float, name: str, numbers: tuple[float, ...]) -> float:
    if any(isinstance(number, NamedNumber) for number in numbers):
        return NamedNumber(value, f"{name}({', '.join(map(formula_of, numbers))})")
    return value


def applied(function: Callable[[float], float], number: float) -> float:
    """A function of `math` of a number, which stands by its own name in a formula."""
    value = function(number)
    if isinstance(number, NamedNumber):
        return NamedNumber(value, f"{function.__name__}({formula_of(number)})")
    return value


def soft_maximum(first: float, second: float, sharp: float) -> float:
    """What two take that work side by side, `(a^n + b^n)^(1/n)`: a little more than the longer."""
    if isinstance(first, NamedNumber) and not isinstance(sharp, NamedNumber):
        sharp = NamedNumber(sharp, formula_of(sharp))
    seconds: float = (first**sharp + second**sharp) ** (1 / sharp) if second else first
    return seconds


@dataclass(frozen=True, slots=True)
class Noted:
    """A number that goes into a formula: its name, value, unit, and where it comes from."""

    name: str
    value: float
    unit: str
    origin: str


class Parts:
    """The numbers of the parts of a figure, each under the name that its formula has for it."""

    def __init__(self, origins: Mapping[str, str], peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> None:
        self.origins = origins
        self.stated = {
            PEAK: Noted("peak", peak_flop_per_s, "FLOP/s", DEVICE),
            BANDWIDTH: Noted("bandwidth", bandwidth_bytes_per_s, "bytes/s", DEVICE),
        }
        self.numbers: dict[str, dict[str, Noted]] = {}

    def __call__(self, part: str) -> Say:
        """What names the numbers of a part."""
        known = self.numbers.setdefault(part, {})

        def say(name: str, value: float, unit: str = "", origin: str = DERIVED, /) -> float:
            if origin in self.stated:
                whole = self.stated[origin]
                known[whole.name] = whole
                known[name] = Noted(name, value / whole.value, "", EFFICIENCY)
                return NamedNumber(value, f"{whole.name} * {name}", PRODUCT)
            origin = self.origins.get(name, DERIVED) if origin == SETTING else origin
            value = float(value) if isinstance(value, NamedNumber) else value
            before = known.setdefault(name, Noted(name, value, unit, origin))
            assert before.value == value, f"{part}: {name} is {before.value} and {value}"
            return NamedNumber(value, name)

        return say

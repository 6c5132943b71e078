"""Quantities as people write and read them; the only module that knows GB from GiB.

Inside, everything is in base units: bytes, seconds, FLOP, FLOP/s, USD, kWh. Counts are decimal (k M B T); a year has
365 days.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from .errors import UsageError
from .ranges import Range
from .text import printable

KILO: Final = 10**3
MEGA: Final = 10**6
GIGA: Final = 10**9
TERA: Final = 10**12
PETA: Final = 10**15
KB: Final = 10**3
MB: Final = 10**6
GB: Final = 10**9
TB: Final = 10**12
KIB: Final = 2**10
MIB: Final = 2**20
GIB: Final = 2**30
TIB: Final = 2**40
MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY
YEAR: Final = 365 * DAY

Number = str | float | int
Scale = Sequence[tuple[float, str]]
"""Units from small to large: (size in base units, name)."""

_COUNT_UNITS: Final[Mapping[str, float]] = {"": 1, "k": KILO, "m": MEGA, "b": GIGA, "g": GIGA, "t": TERA, "p": PETA}
_BYTE_UNITS: Final[Mapping[str, float]] = dict(
    zip(
        ["b", "byte", "bytes", "kb", "mb", "gb", "tb", "pb", "kib", "mib", "gib", "tib", "pib"],
        (1, 1, 1, KB, MB, GB, TB, PETA, KIB, MIB, GIB, TIB, 2**50),
        strict=True,
    )
)
_DURATION_NAMES: Final = (
    *((1e-6, "us µs"), (1e-3, "ms"), (1, "s sec second seconds"), (MINUTE, "m min minute minutes")),
    *((HOUR, "h hour hours"), (DAY, "d day days"), (WEEK, "w week weeks"), (YEAR, "y year years")),
)
_DURATION_UNITS: Final[Mapping[str, float]] = {name: size for size, names in _DURATION_NAMES for name in names.split()}
_NUMBER: Final = r"[+-]?(?:\d[\d_]*(?:,\d{3})*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_QUANTITY: Final = rf"\s*({_NUMBER})\s*([^\W\d_]*|%)\s*"
_LONGEST: Final = 60

COUNT_SCALE: Final[Scale] = ((1, ""), (KILO, "k"), (MEGA, "M"), (GIGA, "B"), (TERA, "T"))
BYTE_SCALE: Final[Scale] = ((1, "B"), (KIB, "KiB"), (MIB, "MiB"), (GIB, "GiB"), (TIB, "TiB"))
BANDWIDTH_SCALE: Final[Scale] = ((1, "B/s"), (KB, "kB/s"), (MB, "MB/s"), (GB, "GB/s"), (TB, "TB/s"))
FLOP_RATE_SCALE: Final[Scale] = ((GIGA, "GFLOP/s"), (TERA, "TFLOP/s"), (PETA, "PFLOP/s"), (10**18, "EFLOP/s"))
ENERGY_SCALE: Final[Scale] = ((1, "kWh"), (KILO, "MWh"), (MEGA, "GWh"), (GIGA, "TWh"))
MASS_SCALE: Final[Scale] = ((1e-6, "mg"), (1e-3, "g"), (1, "kg"), (KILO, "t"), (MEGA, "kt"))
DURATION_SCALE: Final[Scale] = (
    *((1e-6, "µs"), (1e-3, "ms"), (1, "s"), (MINUTE, "min")),
    *((HOUR, "h"), (DAY, "days"), (YEAR, "years")),
)
MANY_USD: Final = 99_950
"""Dollars from which on three digits say enough."""
_DURATION_STEPS: Final = (1e-3, 1, 2 * MINUTE, 2 * HOUR, 3 * DAY, 2 * YEAR)
"""Where the next unit of DURATION_SCALE takes over: 90 s, 41 h and 112 days read better than 1.5 min and 0.31 years."""


def _refusal(text: object, what: str, problem: str, example: str) -> UsageError:
    return UsageError("bad-quantity", f"{what}: '{printable(text, 40)}' {problem}", f"Write for instance {example}.")


def _parsed(value: Number, units: Mapping[str, float], what: str, kind: str, example: str) -> float:
    if isinstance(value, float | int) and not isinstance(value, bool):
        number = float(value) if abs(value) < 1e300 else math.inf
    else:
        match = re.fullmatch(_QUANTITY, value) if isinstance(value, str) and len(value) <= _LONGEST else None
        if match is None:
            raise _refusal(value, what, f"is no {kind}", example)
        plain, unit = float(match[1].replace(",", "").replace("_", "")), match[2].lower()
        if not (plain or unit):
            return 0.0
        if unit not in units:
            problem = f"has an unknown unit '{printable(unit, 20)}'" if unit else f"has no unit, which a {kind} needs"
            raise _refusal(value, what, problem, example)
        number = plain * units[unit]
    if not math.isfinite(number):
        raise _refusal(value, what, "is not a finite number", example)
    return number


def _bounded(
    number: float, value: Number, what: str, bounds: tuple[float, float], example: str, shown: Callable[[float], str]
) -> float:
    if number < bounds[0]:
        raise _refusal(value, what, f"is below the smallest that makes sense, {shown(bounds[0])}", example)
    if number > bounds[1]:
        raise _refusal(value, what, f"is above the largest that makes sense, {shown(bounds[1])}", example)
    return number


def parse_count(
    value: Number,
    what: str = "count",
    minimum: float = 0,
    maximum: float = 1e18,
    example: str = "10B or 3.3e9",
    kind: str = "count",
) -> float:
    """Read a count; `k M B T` are decimal (10^3, 10^6, 10^9, 10^12). `kind` is what an error calls it.

    Raises:
        UsageError: no count, not finite, or outside `minimum` to `maximum`.
    """
    return _bounded(_parsed(value, _COUNT_UNITS, what, kind, example), value, what, (minimum, maximum), example, digits)


def parse_integer(
    value: Number, what: str = "number", minimum: int = 1, maximum: int = 10**15, example: str = "8 or 2k"
) -> int:
    """Read a whole number; `k M B T` are decimal.

    Raises:
        UsageError: no whole number, or outside `minimum` to `maximum`.
    """
    number = _parsed(value, _COUNT_UNITS, what, "whole number", example)
    _bounded(number, value, what, (minimum, maximum), example, lambda bound: str(int(bound)))
    if not number.is_integer():
        raise _refusal(value, what, "is not a whole number", example)
    return int(number)


LONGEST_INTEGER = 300
"""Digits of a whole number that is a floating-point number too."""


def json_integer(text: str) -> int:
    """A whole number of JSON that is a floating-point number too, which is how others read what we write.

    Raises:
        ValueError: it is beyond all bounds.
    """
    if len(text) > LONGEST_INTEGER:
        raise ValueError(text[:LONGEST_INTEGER])
    return int(text)


def parse_bytes(
    value: Number, what: str = "memory", minimum: float = 1, maximum: float = 2**60, example: str = "16GiB or 16GB"
) -> float:
    """Read an amount of memory in bytes: `16GiB` (2^30) and `16GB` (10^9) differ; a number may lack the unit, and 0.

    Raises:
        UsageError: no amount, a string without unit, or outside `minimum` to `maximum`.
    """
    number = _parsed(value, _BYTE_UNITS, what, "memory size", example)
    return _bounded(number, value, what, (minimum, maximum), example, format_bytes)


def parse_duration(
    value: Number,
    what: str = "duration",
    minimum: float = 1e-6,
    maximum: float = 10**6 * YEAR,
    example: str = "30d or 12h",
) -> float:
    """Read a duration in seconds: `30s 5m 3h 7d 2w 1y` (a year is 365 days); only a number may lack the unit.

    Raises:
        UsageError: no duration, a string without unit, or outside `minimum` to `maximum`.
    """
    number = _parsed(value, _DURATION_UNITS, what, "duration", example)
    return _bounded(number, value, what, (minimum, maximum), example, format_duration)


def parse_fraction(
    value: Number, what: str = "fraction", minimum: float = 0, maximum: float = 1, example: str = "0.45 or 45%"
) -> float:
    """Read a fraction: `0.45` or `45%`.

    Raises:
        UsageError: no fraction, or outside `minimum` to `maximum`.
    """
    units = {"": 1, "%": 0.01}
    return _bounded(_parsed(value, units, what, "fraction", example), value, what, (minimum, maximum), example, digits)


def parse_money(
    value: Number, what: str = "amount", minimum: float = 0, maximum: float = 1e15, example: str = "500 or 1.2k"
) -> float:
    """Read US dollars: `500`, `$500`, `500 USD`, `1.2k`.

    Raises:
        UsageError: no amount, or outside `minimum` to `maximum`.
    """
    bare = value.strip().removeprefix("$") if isinstance(value, str) else value
    units = {**_COUNT_UNITS, "usd": 1}
    return _bounded(
        _parsed(bare, units, what, "amount in USD", example), value, what, (minimum, maximum), example, format_usd
    )


def digits(value: float, significant: int = 3) -> str:
    """Write a number with three significant digits, without needless zeros: `112`, `29.1`, `6.2`, `2.9e20`."""
    if value == 0:
        return "0"
    short = f"{value:.{significant}g}"
    if "e" not in short:
        return short
    text = f"{value:.{significant - 1}e}"
    mantissa, exponent = text.split("e")
    power = int(exponent)
    if not -5 < power < 7:
        return f"{_trimmed(mantissa)}e{power}"
    rounded = float(text)
    return _trimmed(f"{rounded:.{max(0, significant - 1 - power)}f}")


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _unit_for(value: float, scale: Scale, steps: Sequence[float] | None = None) -> tuple[float, str]:
    """Pick the largest unit whose step `value` reaches: by default where the unit before would show 1000."""
    chosen = scale[0]
    for index, unit in enumerate(scale[1:]):
        if abs(value) < (steps[index] if steps else 999.5 * chosen[0]):
            break
        chosen = unit
    return chosen


def separated(number: str) -> str:
    """A whole number of five digits or more with separators, anything else as it is: `8192`, `37,193`, `29.1`."""
    return f"{int(number):,}" if len(number) > 4 and number.isdecimal() else number


def _written(value: float, unit: tuple[float, str]) -> str:
    return f"{separated(digits(value / unit[0]))} {unit[1]}".rstrip()


def format_bytes(value: float) -> str:
    """Write bytes for people, in binary units: `29.1 GiB`."""
    return _written(value, _unit_for(value, BYTE_SCALE))


def format_count(value: float) -> str:
    """Write a count for people: `1.56 B`, `512`."""
    return _written(value, _unit_for(value, COUNT_SCALE))


def format_duration(seconds: float) -> str:
    """Write seconds for people: `41 h`, `112 days`, `2.4 years`."""
    return _written(seconds, _unit_for(seconds, DURATION_SCALE, _DURATION_STEPS))


def format_usd(value: float) -> str:
    """Write US dollars: `$0.35`, `$0.0041`, `$1,230`, `$870 k`, `$4.2 M`."""
    if value >= MANY_USD:
        return f"${format_count(value)}"
    return _dollars(value)


def _dollars(value: float) -> str:
    if 5e-9 < value < 0.00995:  # two digits that say something
        return f"${value:.{min(1 - math.floor(math.log10(value)), 9)}f}"
    return f"${value:,.0f}" if value >= 100 else f"${value:.2f}"


def format_energy(kwh: float) -> str:
    """Write energy: `770 kWh`, `1.2 MWh`, `3.4 GWh`."""
    return _written(kwh, _unit_for(kwh, ENERGY_SCALE))


def format_mass(kg: float) -> str:
    """Write a mass: `350 g`, `24 kg`, `1.2 t`."""
    return _written(kg, _unit_for(kg, MASS_SCALE))


def format_flop(flop: float) -> str:
    """Write a count of floating-point operations: `2.9e20`."""
    mantissa, exponent = f"{flop:.2e}".split("e")
    return f"{_trimmed(mantissa)}e{int(exponent)}" if flop else "0"


def format_flop_rate(flop_per_s: float) -> str:
    """Write a rate of computation: `40.1 TFLOP/s`."""
    return _written(flop_per_s, _unit_for(flop_per_s, FLOP_RATE_SCALE))


def format_bandwidth(bytes_per_s: float) -> str:
    """Write a rate of bytes in decimal units, as vendors do: `504 GB/s`."""
    return _written(bytes_per_s, _unit_for(bytes_per_s, BANDWIDTH_SCALE))


def format_percent(fraction: float) -> str:
    """Write a fraction as a percentage: `37 %`, `0.45 %`."""
    return f"{digits(fraction * 100)} %"


def format_range(figure: Range, written: Callable[[float], str]) -> str:
    """Write a range as its expected value and, in parentheses and in the same unit, its ends: `112 days (90 – 150)`.

    `written` is one of this module's `format_` functions of a single value.
    """
    head = written(figure.expected)
    if figure.low == figure.high:
        return head
    scale = _SCALES.get(written)
    if scale is None:
        return f"{head} ({written(figure.low)} – {written(figure.high)})"
    if written is format_usd and figure.expected < MANY_USD:
        return f"{head} ({_dollars(figure.low)} – {_dollars(figure.high)})"
    unit = _unit_for(figure.expected, *scale)
    low, high = (separated(digits(end / unit[0])) for end in (figure.low, figure.high))
    return f"{head} ({low} – {high})"


_SCALES: Final[Mapping[Callable[[float], str], tuple[Scale, Sequence[float] | None]]] = {
    format_bytes: (BYTE_SCALE, None),
    format_count: (COUNT_SCALE, None),
    format_usd: (COUNT_SCALE, None),
    format_duration: (DURATION_SCALE, _DURATION_STEPS),
    format_energy: (ENERGY_SCALE, None),
    format_mass: (MASS_SCALE, None),
    format_flop_rate: (FLOP_RATE_SCALE, None),
    format_bandwidth: (BANDWIDTH_SCALE, None),
    format_percent: (((0.01, "%"),), None),
}

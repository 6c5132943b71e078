"""Plain SVG: what pictures are made of, in colours that a page or the reader's scheme sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from textwrap import wrap

from ..record import dataclass
from ..text import printable

CHARACTER_WIDTH = 6.7
"""Of the letters of a picture, on average."""
SERIES = 8
"""Colours that can be told apart, those of Okabe and Ito (2008); shapes or numbers say the same."""
STYLE = """
.picture{--ink:#1b1f24;--dim:#5f6b76;--line:#c9d1d9;--paper:#fff;--c0:#0072b2;--c1:#e69f00;--c2:#009e73;--c3:#cc79a7;
--c4:#56b4e9;--c5:#d55e00;--c6:#b8a700;--c7:#7a7a7a;font-family:system-ui,sans-serif}
.picture text{fill:var(--ink);font-size:13px}.picture .dim{fill:var(--dim)}.picture .on{fill:#fff;font-weight:600}
.picture .on-light{fill:#000;font-weight:600}
.picture .line{stroke:var(--line);stroke-width:1;fill:none}.picture .ink{stroke:var(--ink);stroke-width:1.5;fill:none}
.picture .limit{stroke:var(--ink);stroke-width:2;stroke-dasharray:6 4}.picture .paper{fill:var(--paper)}
@media (prefers-color-scheme:dark){.picture{--ink:#e6edf3;--dim:#9aa7b2;--line:#3d4650;--paper:#11161c;--c0:#4aa3df;
--c1:#f0b53c;--c2:#2fc79a;--c3:#e39ac4;--c4:#8fd0f5;--c5:#f2813c;--c6:#e6d94a;--c7:#a9a9a9}.picture .on{fill:#000}}
"""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What is drawn on: its width, in units of which a letter is 13 high, and where diagrams begin and end."""

    width: float = 720

    @property
    def left(self) -> float:
        """Where a diagram begins, with room for the names of its axis."""
        return 76 if self.width > 500 else 66

    @property
    def right(self) -> float:
        """Where a diagram ends."""
        return self.width - 20

    @property
    def columns(self) -> int:
        """Names of a legend beside each other."""
        return max(1, int(self.width // 235))


WIDE = Sheet()
NARROW = Sheet(360)
"""For a phone held upright."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: the name to ask for it, its title, what it shows in words, its size, and its markup."""

    name: str
    title: str
    summary: str
    height: float
    marks: tuple[str, ...]
    width: float = WIDE.width

    def svg(self, *, alone: bool = False) -> str:
        """The picture as an `svg` element; one that stands `alone` brings its style."""
        name = f"picture-{self.name}"
        space = ' xmlns="http://www.w3.org/2000/svg"' if alone else ""
        style = f"<style>{STYLE}</style>" if alone else ""
        paper = f'<rect class="paper" width="{self.width:g}" height="{self.height:g}"/>' if alone else ""
        return (
            f'<svg{space} class="picture" viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-labelledby="{name}-title {name}-words"><title id="{name}-title">{escape(self.title)}</title>'
            f'<desc id="{name}-words">{escape(self.summary)}</desc>{style}{paper}{"".join(self.marks)}</svg>'
        )


def text(x: float, y: float, words: object, *, kind: str = "", anchor: str = "start") -> str:
    """Words at a point, on their base line."""
    marked = f' class="{kind}"' if kind else ""
    aligned = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{marked}{aligned}>{escape(printable(words, 120))}</text>'


def paragraph(x: float, y: float, words: str, sheet: Sheet) -> tuple[list[str], float]:
    """Words on as many lines as they need up to the right end, and the base line of the last."""
    lines = wrap(words, int((sheet.right - x) / CHARACTER_WIDTH))
    return [text(x, y + 18 * place, each) for place, each in enumerate(lines)], y + 18 * (len(lines) - 1)


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "line") -> str:
    """A straight line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def box(x: float, y: float, width: float, height: float, series: int) -> str:
    """A filled rectangle in the colour of a series."""
    size = f'width="{max(0.0, width):.1f}" height="{height:.1f}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="var(--c{series % SERIES})"/>'


def number_on(x: float, y: float, number: int, series: int) -> str:
    """A number on a box in the colour of a series."""
    return text(x, y, number, kind="on-light" if series % SERIES in _LIGHT else "on", anchor="middle")


_LIGHT = (1, 3, 4, 6)


def legend(
    labels: Sequence[tuple[int, str]], top: float, sheet: Sheet, columns: int | None = None
) -> tuple[list[str], float]:
    """Names under the colours of their series, numbered in their order; and where a picture that they close ends."""
    marks: list[str] = []
    columns = columns or sheet.columns
    for place, (series, label) in enumerate(labels):
        x, y = 20 + place % columns * (sheet.width - 15) // columns, top + place // columns * 24
        marks += [box(x, y - 11, 13, 13, series), text(x + 20, y, f"{place + 1}  {label}")]
    return marks, top + (len(labels) - 1) // columns * 24 + 16


def path(points: Sequence[tuple[float, float]], series: int) -> str:
    """A line through points in the colour of a series."""
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{joined}" fill="none" stroke="var(--c{series % SERIES})" stroke-width="2.5"/>'


def band(
    upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]], series: int, opacity: float = 0.25
) -> str:
    """The area between two lines: a range, faint, or a part of a stack."""
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*upper, *reversed(lower)])
    return f'<polygon points="{joined}" fill="var(--c{series % SERIES})" opacity="{opacity:g}"/>'


def whisker(x1: float, y1: float, x2: float, y2: float, series: int | None = None) -> str:
    """A range as a line with ends, level or upright."""
    dx, dy = (0.0, 4.0) if y1 == y2 else (4.0, 0.0)
    colour = "var(--ink)" if series is None else f"var(--c{series % SERIES})"
    ends = "".join(f"M{x - dx:.1f} {y - dy:.1f}L{x + dx:.1f} {y + dy:.1f}" for x, y in ((x1, y1), (x2, y2)))
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}{ends}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


_SHAPES: tuple[str, ...] = (
    "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0Z",
    "M-5 -5H5V5H-5Z",
    "M0 -6L6 5H-6Z",
    "M0 -6L6 0L0 6L-6 0Z",
    "M-6 -2H-2V-6H2V-2H6V2H2V6H-2V2H-6Z",
    "M0 6L6 -5H-6Z",
    "M-6 -4L-4 -6L0 -2L4 -6L6 -4L2 0L6 4L4 6L0 2L-4 6L-6 4L-2 0Z",
    "M-3 -6H3V6H-3Z",
)


def mark(x: float, y: float, series: int, *, hollow: bool = False) -> str:
    """A point in the shape and colour of a series."""
    colour = f"var(--c{series % SERIES})"
    fill = "var(--paper)" if hollow else colour
    drawn = f'd="{_SHAPES[series % len(_SHAPES)]}" fill="{fill}" stroke="{colour}" stroke-width="2"'
    return f'<path transform="translate({x:.1f} {y:.1f})" {drawn}/>'


@dataclass(frozen=True, slots=True)
class Scale:
    """Values along a stretch of the picture, in equal steps or in powers of ten."""

    low: float
    high: float
    start: float
    end: float
    powers: bool = False
    steps: Sequence[float] = ()
    """Values to choose ticks from, where powers of ten are not round."""

    def __call__(self, value: float) -> float:
        """Where a value stands."""
        if self.powers:
            low, high, value = math.log10(self.low), math.log10(self.high), math.log10(max(value, self.low / 10))
        else:
            low, high = self.low, self.high
        return self.start + (value - low) / ((high - low) or 1.0) * (self.end - self.start)

    def ticks(self) -> Iterator[float]:
        """Round values along it, four to eight."""
        if self.steps:
            yield from (value for value in self.steps if self.low <= value <= self.high)
            return
        if self.powers:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            step = max(1, math.ceil((last - first) / 6))
            steps = (1.0,) if last - first > 1 else (1.0, 2.0, 5.0)
            candidates = (factor * 10.0**power for power in range(first - 1, last + 1, step) for factor in steps)
            yield from (value for value in candidates if self.low * 0.999 <= value <= self.high * 1.001)
            return
        rough = (self.high - self.low) / 6 or 1.0
        power = 10.0 ** math.floor(math.log10(rough))
        step_size = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        count = math.floor((self.high - self.low) / step_size + 1e-9)
        first_tick = math.ceil(self.low / step_size - 1e-9) * step_size
        yield from (first_tick + index * step_size for index in range(count + 1))


def powers_around(values: Sequence[float], start: float, end: float, steps: Sequence[float] = ()) -> Scale:
    """An axis in powers of ten with room around all values."""
    return Scale(min(values) / 1.4, max(values) * 1.4, start, end, powers=True, steps=steps)


def framed(
    across: Scale,
    up: Scale,
    across_label: str,
    up_label: str,
    across_name: Callable[[float], str],
    up_name: Callable[[float], str],
) -> Iterator[str]:
    """The axes of a diagram with ticks, lines behind it and labels; the names write a value of an axis."""
    for value in across.ticks():
        yield line(across(value), up.start, across(value), up.end)
        yield text(across(value), up.start + 18, across_name(value), kind="dim", anchor="middle")
    for value in up.ticks():
        yield line(across.start, up(value), across.end, up(value))
        yield text(across.start - 8, up(value) + 4, up_name(value), kind="dim", anchor="end")
    yield text((across.start + across.end) / 2, up.start + 40, across_label, anchor="middle")
    yield text(across.start - 64, up.end - 12, up_label)

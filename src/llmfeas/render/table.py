"""The terminal's format: a report laid out for a width, in colours if there are any to be had."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .columns import table_lines
from .layout import Line, bar, cells, flowed, padded, wrapped
from .report import GLUE, Bar, Pair, Report, Role, Section, Span, Table, Verbatim

NARROW = 60
"""Below this width labels stand above their text instead of beside it."""
WIDEST = 100
"""Prose is not set wider than this; tables are."""
LABEL = 11
LONGEST_LEFT = 34
LONGEST_BAR = 30

STYLES: dict[Role, str] = {
    "plain": "",
    "strong": "bold",
    "dim": "dim",
    "good": "green",
    "warn": "yellow",
    "bad": "bold red",
    "bar": "cyan",
}

ASCII = str.maketrans(
    {"✓": "+", "✗": "x", "·": "*", "–": "-", "…": ".", "×": "x", "█": "#", "µ": "u", GLUE: " "}
    | dict.fromkeys("▏▎▍", "")
    | dict.fromkeys("▌▋▊▉", "#")
)
"""What stands for our own signs where the output cannot show them."""


def rendered(report: Report, width: int = 80, colour: bool = False, unicode: bool = True) -> str:
    """Lay the report out in lines of at most `width` columns; escape codes only with `colour`, else plain text."""
    lines = [*_heading(report, min(width, WIDEST))]
    for block in report.blocks:
        if isinstance(block, Table):
            lines += [[], *table_lines(block, width)]
        elif isinstance(block, Verbatim):
            lines += [[], [Span(block.label, "strong")], *([Span(line)] for line in block.text.splitlines())]
        else:
            lines += _section(block, min(width, WIDEST))
    if not unicode:
        lines = [[Span(_ascii(span.text), span.role) for span in line] for line in lines]
    return _coloured(lines) if colour else _plain(lines)


def _ascii(text: str) -> str:
    return re.sub(r" ·(?= |$)", " -", text).translate(ASCII).encode("ascii", "replace").decode()


def _plain(lines: Sequence[Line]) -> str:
    texts = ("".join(span.text for span in line).replace(GLUE, " ").rstrip() for line in lines)
    return "".join(f"{text}\n" for text in texts)


def _coloured(lines: Sequence[Line]) -> str:
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    sink = StringIO()
    console = Console(
        file=sink, color_system="standard", force_terminal=True, legacy_windows=False, highlight=False, no_color=False
    )
    for line in lines:
        text = Text(end="")
        for span in line:
            text.append(span.text.replace(GLUE, " "), style=STYLES[span.role] or None)
        text.rstrip()
        console.print(text, soft_wrap=True, markup=False, emoji=False, highlight=False)
    return sink.getvalue()


def _heading(report: Report, width: int) -> Iterator[Line]:
    title = wrapped([Span(report.title, "strong")], width)
    verdict = report.verdict
    if verdict is None:
        yield from title
    elif len(title) == 1 and cells(report.title) + 3 + cells(verdict.text) <= width:
        yield [*padded(title[0], width - cells(verdict.text)), verdict]
    else:
        yield from title
        yield from wrapped([verdict], width)
    yield from flowed_context(report.context, width)


def flowed_context(parts: Sequence[str], width: int) -> Iterator[Line]:
    """Set the parts of the context line side by side with dots between them."""
    line = ""
    for part in parts:
        longer = f"{line} · {part}" if line else part
        if line and cells(longer) > width - 2:
            yield from wrapped([Span(f"{line} ·", "dim")], width)
            line = part
        else:
            line = longer
    if line:
        yield from wrapped([Span(line, "dim")], width)


def _section(section: Section, width: int) -> Iterator[Line]:
    if section.apart:
        yield []
    label = [Span(section.label, "strong")]
    beside = width >= NARROW and cells(section.label) < LABEL
    indent = LABEL if beside else 2
    body = [*_body(section, width - indent)]
    if not beside:
        yield from wrapped(label, width)
    for index, line in enumerate(body):
        before = padded(label, LABEL) if beside and index == 0 else [Span(" " * indent)]
        yield [*before, *line]


def _body(section: Section, width: int) -> Iterator[Line]:
    for paragraph in section.paragraphs:
        yield from wrapped(paragraph, width)
    yield from _bars(section.bars, width)
    yield from flowed(section.items, width)
    yield from _pairs(section.pairs, width)


def _bars(bars: Sequence[Bar], width: int) -> Iterator[Line]:
    labels = max((cells(entry.label) for entry in bars), default=0)
    values = max((cells(entry.value) for entry in bars), default=0)
    room = min(LONGEST_BAR, width - labels - values - 4)
    for entry in bars:
        line = [*padded([Span(entry.label)], labels + 2), *padded([Span(entry.value)], values, right=True)]
        if room >= 4:
            line += [Span("  "), Span(bar(entry.share, room), "bar")]
        yield line


def _pairs(pairs: Sequence[Pair], width: int) -> Iterator[Line]:
    short = [cells(pair.left) for pair in pairs if cells(pair.left) <= min(LONGEST_LEFT, width // 2)]
    column = max(short, default=0) + 3
    for pair in pairs:
        if cells(pair.left) < column:
            for index, line in enumerate(wrapped(pair.right, width - column)):
                yield [*padded([Span(pair.left if index == 0 else "")], column), *line]
        else:
            yield from wrapped([Span(pair.left)], width)
            for line in wrapped(pair.right, width - 4):
                yield [Span("    "), *line]

"""The terminal's format: a report as rich draws it, in the styles of a theme or as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import groupby
from typing import TypeAlias

from rich.bar import Bar as BlockBar
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table as Grid
from rich.text import Text
from rich.theme import Theme

from ..report import GLUE, Bar, Column, Heading, Meaning, Pair, Phrase, Report, Table, Topic, Verbatim, glued

Drawn: TypeAlias = Iterator[RenderableType]
STYLES = {
    "label": "bold",
    "figure": "bold",
    "dim": "dim",
    "feasible": "green",
    "tight": "yellow",
    "infeasible": "bold red",
    "bar": "cyan",
}
"""The style of each meaning, and of bars; titles of columns have rich's `table.header`."""
THEME = Theme({f"llmfeas.{meaning}": style for meaning, style in STYLES.items()})

NARROW = 60
"""Below this width labels stand above their text instead of beside it."""
WIDEST = 100
"""Prose is not set wider than this; tables are."""
LABEL = 11
LONGEST_LEFT = 34
LONGEST_BAR = 30
SHORTEST_BAR = 4
LONGEST_CELL_BAR = 10
GAP = 2
NARROWEST_PROSE = 14

KEPT = "\ue000"
"""Stands for GLUE while rich wraps, for which every space is a place to break; no text of ours holds it."""
BLANK = Text("")
ASCII = {"✓": "+", "✗": "x", "–": "-", "…": ".", "×": "x", "µ": "u", "·": "*", **dict.fromkeys("█▌▋▊▉", "#")}
ASCII |= dict.fromkeys("▏▎▍", " ")
"""What stands for our own signs where the output cannot show them."""


class Screen:
    """A report as a renderable of rich; `Console(theme=THEME).print(Screen(report))` shows it anywhere."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        drawn = Group(*_page(self.report, options.max_width))
        room_for_last_gap = options.update(width=options.max_width + GAP)
        for line in Segment.split_lines(console.render(drawn, room_for_last_gap)):
            yield from _finished(line, options.ascii_only)
            yield Segment.line()


def rendered(report: Report, width: int = 80, colour: bool = False, unicode: bool = True) -> str:
    """The report in lines of at most `width` columns; escape codes only with `colour`, else plain text."""
    sink = _Sink()
    sink.encoding = "utf-8" if unicode else "ascii"
    console = Console(
        file=sink,
        width=width,
        height=25,
        theme=THEME,
        color_system="standard" if colour else None,  # None leaves out bold too
        force_terminal=colour,
        no_color=False,
        legacy_windows=False,
    )
    console.print(Screen(report), crop=False)
    return sink.getvalue()


class _Sink(StringIO):
    encoding = "utf-8"


def _finished(line: Sequence[Segment], ascii_only: bool) -> Iterator[Segment]:
    """The segments of a line without spaces at its end, glue as spaces, in ASCII where nothing else can be shown."""
    texts = [text.replace(KEPT, " ") for text, _, _ in line]
    if ascii_only:
        texts = [_ascii(text) for text in texts]
    length = len("".join(texts).rstrip())
    for text, (_, style, _) in zip(texts, line, strict=True):
        yield Segment(text[:length], style)
        length = max(0, length - len(text))


def _ascii(text: str) -> str:
    """`text` in ASCII and as wide as before."""
    dashes = re.sub(r" ·(?= |$)", " -", text)
    return re.sub(r"[^\x00-\x7f]", lambda match: ASCII.get(match[0], "?" * cell_len(match[0])), dashes)


def _style(meaning: Meaning) -> str:
    return "" if meaning == "plain" else f"llmfeas.{meaning}"


def _text(phrases: Sequence[Phrase], width: int) -> Text:
    """Phrases as one text; glue holds where what it holds together fits into `width`."""
    drawn = Text()
    for phrase in phrases:
        text = phrase.whole
        if GLUE in text:
            words = (word if cell_len(word) <= width else word.replace(GLUE, " ") for word in text.split(" "))
            text = " ".join(words).replace(GLUE, KEPT)
        drawn.append(text, _style(phrase.meaning))
    return drawn


def _label(text: str, width: int) -> Text:
    return _text([Phrase(text, "label")], width)


class _Bar(BlockBar):
    """A bar in the theme's style, `longest` columns for the whole."""

    def __init__(self, bar: Bar, longest: int) -> None:
        half_a_step = 1 / 16 / longest  # rich rounds down to an eighth of a column
        super().__init__(size=1, begin=0, end=bar.share + half_a_step, width=longest)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.style = console.get_style("llmfeas.bar", default="none")
        return super().__rich_console__(console, options)


def _page(report: Report, width: int) -> Drawn:
    prose = min(width, WIDEST)
    yield Constrain(Group(*_heading(report, prose)), prose)
    for block in report.blocks:
        if isinstance(block, Table):
            yield BLANK
            yield from _table(block, width)
        elif isinstance(block, Heading):
            yield Constrain(Group(BLANK, *_heading(block, prose)), prose)
        elif isinstance(block, Verbatim):
            yield from (BLANK, _label(block.label, width), Segments([Segment(block.text.removesuffix("\n") + "\n")]))
        else:
            yield Constrain(Group(*_topic(block, prose)), prose)


def _heading(report: Report | Heading, width: int) -> Drawn:
    """The title, the verdict at the right end of its line if it has room there, and the context."""
    title, verdict = _label(report.title, width), _text([report.verdict] if report.verdict else [], width)
    if title.cell_len + 3 + verdict.cell_len <= width:
        line = Grid.grid(expand=True)
        line.add_column()
        line.add_column(justify="right")
        line.add_row(title, verdict)
        yield line
    else:
        yield from (title, verdict) if verdict else (title,)
    if report.context:
        yield _text([Phrase(f"{GLUE}· ".join(glued(part) for part in report.context), "dim")], width)


def _topic(topic: Topic, width: int) -> Drawn:
    """A label with its body beside it, or below it where there is no room."""
    if topic.apart:
        yield BLANK
    label = _label(topic.label, width)
    if width >= NARROW and label.cell_len < LABEL:
        yield _beside(LABEL, label, Group(*_body(topic, width - LABEL)), width)
    else:
        yield label
        yield Padding(Group(*_body(topic, width - GAP)), (0, 0, 0, GAP))


def _beside(column: int, left: RenderableType, right: RenderableType, width: int) -> Grid:
    grid = Grid.grid()
    for size in (column, width - column):
        grid.add_column(width=size, overflow="fold")
    grid.add_row(left, right)
    return grid


def _body(topic: Topic, width: int) -> Drawn:
    yield from (_text(paragraph, width) for paragraph in topic.paragraphs)
    if topic.bars:
        yield _chart(topic.bars, width)
    if topic.items:
        yield Text(" " * 3).join(_text(item, width) for item in topic.items)
    yield from _pairs(topic.pairs, width)


def _chart(bars: Sequence[Bar], width: int) -> Grid:
    """A line for each bar; the bars themselves where there is room to tell them apart."""
    labels, values = (
        max(map(cell_len, texts)) for texts in zip(*((bar.label, bar.value) for bar in bars), strict=True)
    )
    longest = min(LONGEST_BAR, width - labels - values - 2 * GAP)
    chart = Grid.grid(padding=(0, GAP, 0, 0))
    chart.add_column(no_wrap=True)
    chart.add_column(no_wrap=True, justify="right")
    for bar in bars:
        chart.add_row(Text(bar.label), Text(bar.value), *([_Bar(bar, longest)] if longest >= SHORTEST_BAR else []))
    return chart


def _pairs(pairs: Sequence[Pair], width: int) -> Drawn:
    """What is done beside what then holds, or above it where it is too long for that."""
    longest = min(LONGEST_LEFT, width // 2)
    column = max((size for pair in pairs if (size := cell_len(pair.left)) <= longest), default=0) + 3
    for pair in pairs:
        left = _text([Phrase(pair.left)], width)
        if left.cell_len <= longest:
            yield _beside(column, left, _text(pair.right, width - column), width)
        else:
            yield from (left, Padding(_text(pair.right, width - 4), (0, 0, 0, 4)))


def _table(table: Table, width: int) -> Drawn:
    """All columns, or all but spare ones, or where these have no room either one row below the other."""
    least = [_least_width(column, cells) for column, *cells in zip(table.columns, *table.rows, strict=True)]
    shown = list(range(len(least)))
    while sum(least[index] + GAP for index in shown) - GAP > width:
        spare = [index for index in shown if table.columns[index].spare]
        if not spare:
            yield Constrain(Group(*_records(table, width)), width)
            return
        shown.remove(spare[-1])
    columns = [table.columns[index] for index in shown]
    rows = [[row[index] for index in shown] for row in table.rows]
    widths = _set_widths(columns, rows, [least[index] for index in shown], width)
    if widths is None:
        yield _grid(
            columns,
            rows,
            [None if column.prose else least[index] for index, column in zip(shown, columns, strict=True)],
        )
        return
    yield _grid(columns, [], widths)
    for fits, some in groupby(rows, lambda row: all(map(_fits, row, widths))):
        run = list(some)
        yield _lines(columns, run, widths) if fits else _grid(columns, run, widths, titles=False)


def _grid(
    columns: Sequence[Column], rows: Iterable[Sequence[Phrase | Bar]], widths: Sequence[int | None], titles: bool = True
) -> Grid:
    """Rows as rich sets them, in columns of these widths; None: as wide as there is room."""
    drawn = Grid(box=None, padding=(0, GAP, 0, 0), show_header=titles)
    for column, size in zip(columns, widths, strict=True):
        drawn.add_column(
            Text(column.title),
            justify="right" if column.figures else "left",
            no_wrap=not column.prose,
            width=size,
            overflow="fold",
        )
    for row in rows:
        drawn.add_row(*(_cell(cell, column.prose) for cell, column in zip(row, columns, strict=True)))
    return drawn


def _set_widths(
    columns: Sequence[Column], rows: Sequence[Sequence[Phrase | Bar]], least: Sequence[int], width: int
) -> list[int] | None:
    """The widths of columns of which one at most is prose, if all cells are plain; else rich finds them."""
    prose = [place for place, column in enumerate(columns) if column.prose]
    if len(prose) > 1 or not all(isinstance(cell, Phrase) and cell.meaning == "plain" for row in rows for cell in row):
        return None
    widths = list(least)
    for place in prose:
        natural = max((cell_len(columns[place].title), *(cell_len(_plain(row[place])) for row in rows)))
        widths[place] = min(natural, width - sum(least) + least[place] - GAP * (len(columns) - 1))
    return widths


def _plain(cell: Phrase | Bar) -> str:
    return cell.whole.replace(GLUE, KEPT) if isinstance(cell, Phrase) else ""


def _fits(cell: Phrase | Bar, width: int) -> bool:
    return cell_len(_plain(cell)) <= width


def _lines(columns: Sequence[Column], rows: Iterable[Sequence[Phrase | Bar]], widths: Sequence[int]) -> Segments:
    """The same rows as text, where each cell is one line: a table of a thousand takes rich half a second."""
    lines = []
    for row in rows:
        cells = []
        for cell, column, size in zip(row, columns, widths, strict=True):
            text = _plain(cell).rstrip()
            blank = " " * (size - cell_len(text))
            cells.append(blank + text if column.figures else text + blank)
        lines.append((" " * GAP).join(cells) + "\n")
    return Segments([Segment("".join(lines))])


def _least_width(column: Column, cells: Sequence[Phrase | Bar]) -> int:
    """How narrow a column may become: prose is wrapped, figures are never broken."""
    natural = max((LONGEST_CELL_BAR if isinstance(cell, Bar) else cell_len(cell.whole) for cell in cells), default=0)
    return max(cell_len(column.title), min(natural, NARROWEST_PROSE) if column.prose else natural)


def _cell(cell: Phrase | Bar, prose: bool, width: int = NARROWEST_PROSE) -> RenderableType:
    """A cell; what is carried over hangs below the text, not below the sign before it."""
    if isinstance(cell, Bar):
        return _Bar(cell, LONGEST_CELL_BAR)
    if not (prose and cell.sign):
        return _text([cell], width)
    signed = Grid.grid(padding=(0, 1, 0, 0))
    signed.add_column()
    signed.add_column(overflow="fold")
    signed.add_row(_text([Phrase(cell.sign, cell.meaning)], 1), _text([Phrase(cell.text, cell.meaning)], width))
    return signed


def _records(table: Table, width: int) -> Drawn:
    """Each row as fields below its first cell."""
    column = GAP + max(cell_len(column.title) for column in table.columns[1:]) + GAP
    for number, (first, *others) in enumerate(table.rows):
        if number:
            yield BLANK
        if isinstance(first, Phrase) and first.whole:
            yield _label(first.whole, width)
        for title, cell in zip(table.columns[1:], others, strict=True):
            if isinstance(cell, Bar) or cell.whole:
                name = Text(" " * GAP + title.title, _style("dim"))
                yield _beside(column, name, _cell(cell, True, width - column), width)

"""What rich draws keeps its width, loses nothing, and can be restyled."""

from __future__ import annotations

import io
import itertools
import re
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

import llmfeas.render.formats.table as formats_table
from llmfeas.render.formats.table import THEME, Screen, rendered
from llmfeas.render.report import GLUE, Bar, Column, Pair, Phrase, Report, Table, Topic, Verbatim

WORDS = st.text("ab漢e\u0301 [/]:" + GLUE, min_size=1, max_size=40).filter(lambda text: text.strip(f" {GLUE}\u0301"))
PHRASES = st.lists(WORDS.map(Phrase), max_size=5).map(tuple)
TOPICS = st.builds(
    Topic,
    label=WORDS,
    paragraphs=st.lists(PHRASES, max_size=2).map(tuple),
    items=st.lists(PHRASES, max_size=4).map(tuple),
    pairs=st.lists(st.builds(Pair, WORDS, PHRASES), max_size=3).map(tuple),
)
CELLS = st.tuples(WORDS.map(Phrase), WORDS.map(lambda text: Phrase(text, "tight", signed=True)))
COLUMNS = (Column(title="id"), Column(title="name", prose=True), Column(title="GiB", figures=True))
ROWS = (
    (Phrase("rtx-4070ti"), Phrase("GeForce RTX 4070 Ti"), Phrase("12")),
    (Phrase("t4"), Phrase("Tesla T4"), Phrase("15.8")),
)


def lines_of(*blocks: Topic | Table | Verbatim, width: int = 80, unicode: bool = True) -> list[str]:
    """What stands below the title."""
    return rendered(Report(title="T", blocks=blocks), width, unicode=unicode).splitlines()[2:]


def characters(text: str) -> Counter[str]:
    return Counter(re.sub(r"\s", "", text))


@given(TOPICS, st.integers(32, 100))
def test_a_topic_keeps_the_width_and_every_character(topic: Topic, width: int) -> None:
    lines = lines_of(topic, width=width)
    said = [topic.label, *(pair.left for pair in topic.pairs)]
    groups = (*topic.paragraphs, *topic.items, *(pair.right for pair in topic.pairs))
    said += [phrase.text for group in groups for phrase in group]
    assert all(cell_len(line) <= width for line in lines)
    assert characters("".join(lines)) == characters("".join(said))


@given(st.lists(CELLS, min_size=1, max_size=4), st.booleans(), st.booleans(), st.integers(32, 100))
@example([(Phrase(":" * 33), Phrase(":", "tight", signed=True))], False, False, 32)
@example([(Phrase(":"), Phrase(":" * 28, "tight", signed=True))], False, False, 32)
def test_a_table_keeps_the_width_and_every_character(
    rows: list[tuple[Phrase, Phrase]], one: bool, other: bool, width: int
) -> None:
    table = Table(columns=(Column(title="A", prose=one), Column(title="B", prose=other)), rows=tuple(rows))
    lines = lines_of(table, width=width)
    assert all(cell_len(line) <= width for line in lines)
    drawn = characters("".join(lines))
    assert not characters("".join(cell.whole for row in rows for cell in row)) - drawn


PLAIN = st.tuples(*[WORDS.map(Phrase)] * len(COLUMNS))


@given(st.lists(PLAIN, min_size=1, max_size=5).map(tuple), st.integers(30, 100))
@example(ROWS, 100)
def test_rows_that_are_written_as_lines_are_those_that_rich_sets(
    rows: tuple[tuple[Phrase, ...], ...], width: int
) -> None:
    table = Table(columns=COLUMNS, rows=rows)
    with pytest.MonkeyPatch.context() as patch:
        ours = lines_of(table, width=width)
        patch.setattr(formats_table, "_set_widths", lambda *said: None)
        assert ours == lines_of(table, width=width)


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (60, ["A          needs 29.1 GiB (28.3 – 30.9)"]),
        (32, ["A", "  needs 29.1 GiB (28.3 – 30.9)"]),
        (27, ["A", "  needs", "  29.1 GiB (28.3 – 30.9)"]),
        (20, ["A", "  needs 29.1 GiB", "  (28.3 – 30.9)"]),
    ],
)
def test_a_figure_stays_together_where_it_fits(width: int, lines: list[str]) -> None:
    """One that is wider than the screen is broken between its numbers."""
    figure = "29.1 GiB (28.3 – 30.9)".replace(" ", GLUE)
    topic = Topic(label="A", paragraphs=((Phrase("needs "), Phrase(figure)),))
    assert lines_of(topic, width=width) == lines


def test_items_stand_side_by_side_and_are_not_broken() -> None:
    items = tuple((Phrase(f"item{GLUE}{number}"),) for number in range(7))
    assert lines_of(Topic(label="A", items=items), width=40) == [
        "A",
        "  item 0   item 1   item 2   item 3",
        "  item 4   item 5   item 6",
    ]


def test_what_is_done_stands_beside_what_then_holds_or_above_it() -> None:
    pairs = (Pair("--task lora", (Phrase("fits"),)), Pair("--gradient-checkpointing full", (Phrase("fits too"),)))
    assert lines_of(Topic(label="A", pairs=pairs), width=40) == [
        "A",
        "  --task lora   fits",
        "  --gradient-checkpointing full",
        "      fits too",
    ]


@given(st.floats(0, 1))
def test_a_bar_is_as_long_as_its_share(share: float) -> None:
    bars = tuple(Bar(each, "a", "1") for each in (share, 1.0))
    for unicode, sign, exact in ((True, "[▏▎▍▌▋▊▉█]", 1.0), (False, "#", 0.5)):
        drawn, whole = (len(re.findall(sign, line)) for line in lines_of(Topic(label="", bars=bars), unicode=unicode))
        assert whole == 30
        assert abs(drawn - 30 * share) <= exact + 1 / 16 + 1e-9


def drawn_table(width: int, unicode: bool = True) -> list[str]:
    return lines_of(Table(columns=COLUMNS, rows=ROWS), width=width, unicode=unicode)


def test_a_table_with_room() -> None:
    assert drawn_table(60) == [
        "id          name                  GiB",
        "rtx-4070ti  GeForce RTX 4070 Ti    12",
        "t4          Tesla T4             15.8",
    ]


def test_a_table_with_little_room_wraps_its_prose() -> None:
    assert drawn_table(34) == [
        "id          name               GiB",
        "rtx-4070ti  GeForce RTX 4070    12",
        "            Ti",
        "t4          Tesla T4          15.8",
    ]


def test_a_table_without_room_becomes_records() -> None:
    assert drawn_table(24) == [
        "rtx-4070ti",
        "  name  GeForce RTX 4070",
        "        Ti",
        "  GiB   12",
        "",
        "t4",
        "  name  Tesla T4",
        "  GiB   15.8",
    ]


def test_spare_columns_go_first_the_last_one_first() -> None:
    columns = (Column(title="id"), *(Column(title=title, spare=True) for title in ("first", "last")), Column(title="x"))
    table = Table(columns=columns, rows=((Phrase("a" * 20), *(Phrase("b" * 8) for _ in range(3))),))
    assert [lines_of(table, width=width)[0].split() for width in (60, 44, 33)] == [
        ["id", "first", "last", "x"],
        ["id", "first", "x"],
        ["id", "x"],
    ]


def test_what_is_carried_over_hangs_below_the_text() -> None:
    columns = (Column(title="Expected", prose=True), Column(title="X"))
    table = Table(columns=columns, rows=((Phrase("one two three four", "feasible", signed=True), Phrase("1")),))
    assert lines_of(table, width=17) == ["Expected        X", "✓ one two       1", "  three four"]


def test_records_of_one_group_stand_below_its_name_once() -> None:
    columns = (Column(title="Name"), Column(title="Works"))
    rows = (("first", "w" * 20), ("", "n" * 20), ("second", "w" * 20))
    table = Table(columns=columns, rows=tuple(tuple(Phrase(text) for text in row) for row in rows))
    lines = lines_of(table, width=24)
    assert [line for line in lines if line[:1].strip()] == ["first", "second"]
    assert all(before or after for before, after in itertools.pairwise(lines))


def test_wide_characters_and_those_without_width_keep_columns_in_line() -> None:
    rows = tuple((Phrase(text), Phrase("1"), Phrase("2")) for text in ("漢字", "e\u0301e\u0301", "abcd"))
    for unicode in (True, False):
        lines = lines_of(Table(columns=COLUMNS, rows=rows), unicode=unicode)
        assert {cell_len(line) for line in lines} == {len("abcd  name  GiB")}


def test_a_file_is_shown_as_it_is() -> None:
    text = "\tkey: [/x] " + "long " * 40 + "end\n\n  [gguf] :smile:\n"
    assert lines_of(Verbatim(label="file", text=text), width=40) == ["file", *text.splitlines()]


def test_a_report_is_drawn_in_anyones_console_and_theme() -> None:
    report = Report(title="T", verdict=Phrase("fits", "feasible", signed=True))
    restyled = {f"llmfeas.{name}": "red" for name in ("feasible", "label")}
    for theme, codes in ((None, set()), (THEME, {"1", "32"}), (type(THEME)(restyled), {"31"})):
        sink = io.StringIO()
        console = Console(file=sink, width=40, theme=theme, force_terminal=True, color_system="standard")
        console.print(Screen(report))
        assert set(re.findall(r"\x1b\[(\d+)m", sink.getvalue())) - {"0"} == codes
        assert re.sub(r"\x1b\[\d+m", "", sink.getvalue()) == rendered(report, 40)

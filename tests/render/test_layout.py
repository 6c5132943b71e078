"""Lines keep their width and lose nothing."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.render.columns import table_lines
from llmfeas.render.layout import bar, cells, flowed, line_cells, wrapped
from llmfeas.render.report import GLUE, Column, Span, Table

WORDS = st.text("ab漢e\u0301 [" + GLUE, max_size=40)


def text_of(lines: list[list[Span]]) -> str:
    return " ".join("".join(span.text for span in line) for line in lines)


def squeezed(text: str) -> str:
    return text.replace(" ", "")


@given(st.lists(WORDS, max_size=5), st.integers(2, 50))
def test_wrapping_keeps_the_width_and_every_character(texts: list[str], width: int) -> None:
    lines = wrapped([Span(text) for text in texts], width)
    assert all(line_cells(line) <= width for line in lines)
    assert squeezed(text_of(lines)) == squeezed("".join(texts))


def test_glue_holds_a_figure_together() -> None:
    lines = wrapped([Span(f"needs 29.1{GLUE}GiB (28.3{GLUE}–{GLUE}30.9)")], 12)
    assert [text_of([line]) for line in lines] == ["needs", f"29.1{GLUE}GiB", f"(28.3{GLUE}–{GLUE}30.9", ")"]


@given(st.lists(WORDS.filter(lambda text: text.strip(" ")), max_size=8), st.integers(2, 60))
def test_items_that_flow_keep_the_width(items: list[str], width: int) -> None:
    lines = flowed([[Span(item)] for item in items], width)
    assert all(line_cells(line) <= width for line in lines)
    assert squeezed(text_of(lines)) == squeezed("".join(items))


@given(st.floats(0, 1), st.integers(1, 60))
def test_a_bar_is_as_long_as_its_share(share: float, width: int) -> None:
    drawn = bar(share, width)
    assert abs(len(drawn) - share * width) < 1.001
    assert bool(drawn) == (share > 0)


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("漢字", 4), ("e\u0301", 1), ("", 0)])
def test_columns_of_a_terminal(text: str, width: int) -> None:
    assert cells(text) == width


COLUMNS = (Column(title="id"), Column(title="name", flexible=True), Column(title="GiB", figures=True))
ROWS = ((Span("rtx-4070ti"), Span("GeForce RTX 4070 Ti"), Span("12")), (Span("t4"), Span("Tesla T4"), Span("15.8")))


def drawn(width: int) -> list[str]:
    return [text_of([line]).rstrip() for line in table_lines(Table(columns=COLUMNS, rows=ROWS), width)]


def test_a_table_with_room() -> None:
    assert drawn(60) == [
        "id          name                  GiB",
        "rtx-4070ti  GeForce RTX 4070 Ti    12",
        "t4          Tesla T4             15.8",
    ]


def test_a_table_with_little_room_wraps_its_flexible_column() -> None:
    assert drawn(34) == [
        "id          name               GiB",
        "rtx-4070ti  GeForce RTX 4070    12",
        "            Ti",
        "t4          Tesla T4          15.8",
    ]


def test_a_table_without_room_becomes_records() -> None:
    assert drawn(24) == [
        "rtx-4070ti",
        "  name GeForce RTX 4070",
        "       Ti",
        "  GiB 12",
        "",
        "t4",
        "  name Tesla T4",
        "  GiB 15.8",
    ]


def test_what_is_carried_over_hangs_below_the_text() -> None:
    column = Column(title="Expected", flexible=True, hanging=2)
    table = Table(columns=(column, Column(title="X")), rows=((Span("✓ one two three four"), Span("1")),))
    lines = ["".join(span.text for span in line).rstrip() for line in table_lines(table, 17)]
    assert lines == ["Expected        X", "✓ one two       1", "  three four"]
    whole = Table(columns=table.columns, rows=((Span("✓ one two three"), Span("1")),))
    assert len([*table_lines(whole, 80)]) == 2


def test_records_of_one_group_stand_below_its_name_once() -> None:
    columns = (Column(title="Name"), Column(title="Works"))
    rows = ((Span("first"), Span("w" * 20)), (Span(""), Span("n" * 20)), (Span("second"), Span("w" * 20)))
    lines = ["".join(span.text for span in line) for line in table_lines(Table(columns=columns, rows=rows), 24)]
    assert all(before or after for before, after in itertools.pairwise(lines))

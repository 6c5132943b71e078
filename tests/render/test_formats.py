"""The formats for machines, and markdown."""

from __future__ import annotations

import csv as csv_module
import io
import json
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, strategies
from render_cases import CASES, case_names, read_case

from llmfeas.render.formats import csv, markdown, ndjson
from llmfeas.render.formats import json as json_format
from llmfeas.render.formats.table import rendered
from llmfeas.render.pages.catalogs import listing
from llmfeas.render.pages.entry import entry
from llmfeas.render.pages.estimate import report
from llmfeas.render.report import Column, Report

FINITE = strategies.floats(allow_nan=False, allow_infinity=False)

LISTING: dict[str, Any] = {
    "schema": "llmfeas.devices.list/1",
    "result": {"rows": [{"id": "a"}, {"id": "b", "x": None}]},
}


def csv_rows(text: str) -> list[dict[str, str]]:
    return list(csv_module.DictReader(io.StringIO(text)))


def test_json_is_the_envelope(envelope: dict[str, Any]) -> None:
    text = json_format.rendered(envelope)
    assert json.loads(text) == envelope
    assert text.isascii()
    assert text.endswith("}\n")


JSON = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.text() | FINITE,
    lambda inner: strategies.lists(inner) | strategies.dictionaries(strategies.text(), inner),
)


@given(strategies.dictionaries(strategies.text(), JSON))
def test_json_is_indented_as_the_standard_library_does_it(value: dict[str, Any]) -> None:
    assert json_format.rendered(value) == json.dumps(value, indent=2) + "\n"


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        json_format.rendered({"x": number})


def test_ndjson_is_one_line(envelope: dict[str, Any]) -> None:
    text = ndjson.rendered(envelope)
    assert text.count("\n") == 1
    assert json.loads(text) == envelope


def test_ndjson_of_a_listing_has_a_line_for_each_row() -> None:
    assert [json.loads(line) for line in ndjson.rendered(LISTING).splitlines()] == LISTING["result"]["rows"]


def test_csv_of_every_estimate_has_the_same_columns() -> None:
    headers = {csv.rendered(read_case(name)).splitlines()[0] for name in CASES}
    assert len(headers) == 1


def test_csv_has_dotted_paths_and_three_columns_for_a_range(envelope: dict[str, Any]) -> None:
    (row,) = csv_rows(csv.rendered(envelope))
    peak = envelope["result"]["memory"]["peak_bytes"]
    assert row["inputs.model.value"] == envelope["inputs"]["model"]["value"]
    for end in ("low", "expected", "high"):
        assert float(row[f"result.memory.peak_bytes.{end}"]) == peak[end]
    assert json.loads(row["result.verdict.reasons"] or "[]") == envelope["result"]["verdict"]["reasons"]


def test_csv_of_a_range_that_is_unknown_has_three_empty_cells() -> None:
    (row,) = csv_rows(csv.rendered(read_case("llama-3-8b-inference-m2-ultra")))
    assert [row[f"result.cost.usd.{end}"] for end in ("low", "expected", "high")] == ["", "", ""]
    assert "result.cost.usd" not in row


def test_csv_of_a_listing_has_all_columns_that_occur() -> None:
    assert csv.rendered(LISTING) == "id,x\na,\nb,\n"


@pytest.mark.parametrize("name", CASES)
def test_markdown(name: str, golden: Callable[[str, str], None]) -> None:
    envelope = read_case(name)
    golden(f"{name}.md", markdown.rendered(report(envelope, *case_names(envelope))))


def test_markdown_keeps_names_from_being_markup() -> None:
    text = markdown.rendered(Report(title="a|b *c* <script> `d` [e](f) _g_"))
    assert text == "## a\\|b \\*c\\* \\<script\\> \\`d\\` \\[e\\](f) \\_g\\_\n"


def test_a_listing_is_a_table() -> None:
    columns = ((Column(title="id"), itemgetter("id")), (Column(title="GiB", figures=True), lambda row: str(row["gib"])))
    shown = listing("2 devices", columns, [{"id": "a", "gib": 1}, {"id": "b\x1b", "gib": 12}])
    assert rendered(shown) == "2 devices\n\nid     GiB\na        1\nb\\x1b   12\n"
    assert markdown.rendered(shown).endswith("| id | GiB |\n| --- | ---: |\n| a | 1 |\n| b\\\\x1b | 12 |\n")


def test_an_empty_listing_is_its_title() -> None:
    assert rendered(listing("0 devices", ((Column(title="id"), itemgetter("id")),), [])) == "0 devices\n"


def test_an_entry_shows_every_field_that_says_something() -> None:
    fields = {
        "id": "x",
        "none": None,
        "empty": (),
        "flag": True,
        "nested": {"width": 1600, "list": [1, 2]},
        "links": ({"kind": "pcie", "gb_per_s": 31.5},),
        "count": 1557611200,
        "notes": "a note",
        "sources": ("one", "two"),
    }
    text = rendered(entry("X (x)", fields, ["took 'x' for 'y'"]))
    assert text.splitlines() == [
        "X (x)",
        "took 'x' for 'y'",
        "",
        "Field         Value",
        "id            x",
        "flag          yes",
        "nested.width  1600",
        "nested.list   1, 2",
        "links         kind pcie; gb_per_s 31.5",
        "count         1,557,611,200",
        "",
        "Notes      a note",
        "",
        "Sources    one",
        "           two",
    ]


def test_cells_of_csv_hold_nothing_that_a_terminal_obeys() -> None:
    envelope = {"schema": "x/1", "result": {"name": "a\x1b[31mb\r\u202e", "notes": "one\ntwo"}}
    (row,) = csv_rows(csv.rendered(envelope))
    assert row["result.name"] == r"a\x1b[31mb\x0d\u202e"
    assert row["result.notes"] == "one\ntwo"


def test_csv_of_a_comparison_has_the_same_columns_whatever_is_known_of_a_device() -> None:
    known = {"usd": {"low": 1.0, "expected": 2.0, "high": 3.0}, "price": {"provider": "p"}}
    rows = [{"rank": 1, "cost": known}, {"rank": 1, "cost": {"usd": None, "price": None}}]
    headers = {csv.rendered({"schema": "llmfeas.compare/1", "result": {"rows": [row]}}).splitlines()[0] for row in rows}
    assert len(headers) == 1
    assert "cost.usd.low,cost.usd.expected,cost.usd.high" in headers.pop()


def test_csv_keeps_the_parts_of_one_thing_together() -> None:
    rows = [{"changes": {"task": "lora"}, "status": "tight"}, {"changes": {"tp": 2}, "status": "tight"}]
    assert csv.rendered({"result": {"plans": rows}}).splitlines()[0] == "changes.task,changes.tp,status"

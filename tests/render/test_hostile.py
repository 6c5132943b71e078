"""Whatever outside text holds, no format and no message gives it to a terminal that acts on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from llmfeas.cli import terminal
from llmfeas.errors import LlmfeasError
from llmfeas.render.formats import csv, github, junit, markdown, ndjson, table
from llmfeas.render.formats import json as plain_json
from llmfeas.render.report import Bar, Column, Heading, Pair, Phrase, Report, Table, Topic, Verbatim

HOSTILE = "a\x1b[31m\x9b2J\u202e[bold]x[/]\r\n\x00\u2066\ud800|`<b>z"
ROW: dict[str, Any] = dict.fromkeys(("file", "id", "expectation", "found", "at", "unit", "expected"), HOSTILE)
ROW |= {"line": 1, "column": 1, "margin": None, "ok": False}
ENVELOPE = {
    "result": {"expectations": [ROW], "passed": 0, "failed": 1, HOSTILE: HOSTILE},
    "inputs": {HOSTILE: [HOSTILE]},
}
REPORT = Report(
    title=HOSTILE,
    verdict=Phrase(HOSTILE, "infeasible", signed=True),
    context=("plain", HOSTILE),
    blocks=(
        Heading(title=HOSTILE, verdict=Phrase(HOSTILE), context=(HOSTILE,)),
        Topic(
            label=HOSTILE,
            paragraphs=((Phrase(HOSTILE, "dim"),),),
            bars=(Bar(0.5, HOSTILE, HOSTILE),),
            pairs=(Pair(HOSTILE, [Phrase(HOSTILE)]),),
            items=((Phrase(HOSTILE),),),
        ),
        Table(columns=(Column(title=HOSTILE), Column(title=HOSTILE, prose=True)), rows=((Phrase(HOSTILE), Bar(0.1)),)),
        Verbatim(label=HOSTILE, text=HOSTILE + "\nsecond line"),
    ),
)


def formats() -> Iterator[tuple[str, str]]:
    yield "table", table.rendered(REPORT)
    yield "narrow table", table.rendered(REPORT, width=32, unicode=False)
    yield "markdown", markdown.rendered(REPORT)
    yield "json", plain_json.rendered(ENVELOPE)
    yield "ndjson", ndjson.rendered(ENVELOPE)
    yield "csv", csv.rendered(ENVELOPE)
    yield "csv of odd keys", csv.table([HOSTILE], [{HOSTILE: "1"}])
    yield "junit", junit.rendered(ENVELOPE)
    yield "github", github.rendered(ENVELOPE)


@pytest.mark.parametrize(("name", "text"), list(formats()), ids=lambda value: value[:12].strip() if value else "")
def test_no_format_shows_what_a_terminal_acts_on(name: str, text: str) -> None:
    assert text
    assert {c for c in text if not c.isprintable()} <= {"\n", "\u00a0"}


def test_no_message_does(capsys: pytest.CaptureFixture[str]) -> None:
    error = LlmfeasError("x", HOSTILE * 1000, HOSTILE, [HOSTILE])
    said = [error.message, error.hint, str(error), *error.candidates, *error.to_dict()["candidates"]]
    assert all(text.isprintable() and len(text) < 50_000 for text in said)
    terminal.say(f"{HOSTILE}\n{HOSTILE}")
    written = capsys.readouterr().err
    assert {c for c in written if not c.isprintable()} == {"\n"}


def test_what_is_safe_stays_as_it_is() -> None:
    error = LlmfeasError("x", "µ-model – 漢字", "see “here”", ["a b"])
    assert error.to_dict() == {"code": "x", "message": "µ-model – 漢字", "hint": "see “here”", "candidates": ["a b"]}
    assert json.loads(json.dumps(error.to_dict())) == error.to_dict()

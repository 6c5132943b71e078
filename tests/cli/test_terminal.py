"""Colours for a terminal that wants them; no escape codes for anything else."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome

from llmfeas.cli import terminal

Run = Callable[..., Outcome]
ASK = ("estimate", "-m", "x", "-d", "rtx-4070ti")


class Terminal(io.StringIO):
    """A stdout behind which a person sits."""

    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "is_terminal", "no_colour", "coloured"),
    [
        ({}, False, False, False),
        ({}, True, False, True),
        ({}, True, True, False),
        ({"NO_COLOR": "1"}, True, False, False),
        ({"NO_COLOR": ""}, True, False, True),
        ({"TERM": "dumb"}, True, False, False),
        ({"FORCE_COLOR": "1"}, False, False, True),
        ({"FORCE_COLOR": "1"}, False, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, False, False),
    ],
)
def test_when_there_is_colour(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], is_terminal: bool, no_colour: bool, coloured: bool
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal() if is_terminal else io.StringIO())
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert terminal.has_colour(no_colour) == coloured


@pytest.mark.usefixtures("stored_answers")
def test_force_color_is_for_the_table_on_stdout_only(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run(*ASK).out
    for format in ("json", "ndjson", "csv", "markdown"):
        assert "\x1b" not in run(*ASK, "-f", format).out
    run(*ASK, "-o", str(tmp_path / "x"))
    assert "\x1b" not in (tmp_path / "x").read_text(encoding="utf-8")
    assert "\x1b" not in run(*ASK, "--no-color").out


@pytest.mark.usefixtures("stored_answers")
def test_a_pipe_gets_the_table_without_escape_codes(run: Run) -> None:
    assert "\x1b" not in run(*ASK).out


@pytest.mark.usefixtures("stored_answers")
@pytest.mark.parametrize("columns", [1, 40, 60, 80, 200])
def test_the_width_of_the_terminal_is_kept(run: Run, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert max(map(len, run(*ASK).out.splitlines())) <= max(columns, terminal.SMALLEST_WIDTH)


@pytest.mark.usefixtures("stored_answers")
def test_an_output_that_knows_ascii_only(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr(terminal, "has_unicode", lambda: False)
    assert run(*ASK).out.isascii()


@pytest.mark.parametrize(("encoding", "known"), [("UTF-8", True), ("utf8", True), ("ascii", False), ("cp1252", False)])
def test_what_an_encoding_can_show(monkeypatch: pytest.MonkeyPatch, encoding: str, known: bool) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert terminal.has_unicode() == known


@pytest.mark.parametrize("stream", [None, io.TextIOWrapper(io.BytesIO(), encoding="ascii")])
def test_saying_something_never_fails(monkeypatch: pytest.MonkeyPatch, stream: io.TextIOWrapper | None) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    terminal.say("né\ud800")
    if stream is not None:
        stream.seek(0)
        assert stream.read() == "n\\xe9\\ud800\n"


def test_long_work_says_that_it_goes_on_until_something_else_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", 0.001)
    with terminal.patience():
        while "\rStill at work" not in screen.getvalue():
            continue
        terminal.say("a note")
        shown = screen.getvalue()
        assert shown.endswith("\ra note\n")
        assert shown.removesuffix("\ra note\n").endswith("\r" + " " * len("Still at work, 0 s; Ctrl-C ends it."))
    assert screen.getvalue() == shown


@pytest.mark.parametrize(("stream", "wanted"), [(Terminal(), False), (io.StringIO(), True)])
def test_nobody_is_asked_for_patience_who_is_not_there(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, wanted: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(terminal, "PATIENCE_SECONDS", 0.0)
    with terminal.patience(wanted):
        terminal.settled()
    assert stream.getvalue() == ""

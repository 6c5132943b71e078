"""How far off answers were when a source was first asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmfeas.cli import main
from llmfeas.errors import DataError
from llmfeas.evidence.backtest import blind_scores
from llmfeas.evidence.measurements import measurement_files

SAID = """\
blind:
  asked: '2026-11-28'
  of: two cards
  scores:
  - {kind: training, rows: 12, median_error: 0.2, p90_error: 0.5, inside: 0.75}
  - {kind: output, of: one of them, rows: 3, median_error: %s}
groups: []
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


def test_what_was_written_down_when_a_source_was_first_asked_is_read(tmp_path: Path) -> None:
    whole, part = blind_scores([written(tmp_path, SAID % 0.1)])
    assert (whole.file, whole.of, whole.asked, whole.rows, whole.inside) == (
        "mine",
        "two cards",
        "2026-11-28",
        12,
        0.75,
    )
    assert (part.kind, part.of, part.median_error, part.p90_error, part.inside) == (
        "output",
        "one of them",
        0.1,
        None,
        None,
    )


def test_built_in_scores_are_the_newest_first() -> None:
    days = [score.asked for score in blind_scores(measurement_files())]
    assert len(days) > 30
    assert days == sorted(days, reverse=True)


@pytest.mark.parametrize(("value", "says"), [("-1", "greater than or equal to 0"), ("much", "number")])
def test_a_bad_score_is_named_with_file_and_line(tmp_path: Path, value: str, says: str) -> None:
    with pytest.raises(DataError) as caught:
        blind_scores([written(tmp_path, SAID % value)])
    assert caught.value.message.startswith("mine.yaml:6: ")
    assert says in caught.value.message


def test_the_command_shows_scores_in_place_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, SAID % 0.1)
    assert main(["backtest", str(path), "--blind", "--json", "--kind", "output"]) == 0
    (score,) = json.loads(capsys.readouterr().out)["result"]["blind"]
    assert score["rows"] == 3
    assert main(["backtest", str(path), "--blind", "-f", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["backtest", str(path), "--blind"]) == 0
    assert "15 measured figures as they were first asked" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--naive",), "--naive says nothing of --blind"),
        (("-d", "t4"), "--device says nothing of --blind"),
        (("--kind", "speed"), "unknown kind 'speed'"),
        (("--kind", "cache"), "no blind score"),
    ],
)
def test_what_says_nothing_of_blind_scores_is_refused(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backtest", "--blind", *words]) == 2
    assert says in capsys.readouterr().err

from __future__ import annotations

from pathlib import Path

import pytest

from llmfeas.errors import DataError
from llmfeas.evidence.measurements import measurement_files, read_measurements, settings_of

GOOD = """\
groups:
- group: mine
  source: my own notebook
  backend: cuda
  scenario: {model: llama-3-8b, device: rtx-4090, task: inference, quant: q4_k_m, engine: llama.cpp}
  rows:
  - {id: one, scenario: {context: 512}, measured: {decode_tokens_per_second: 120}}
  - {id: two, measured: {decode_tokens_per_second: %s}}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


def test_the_built_in_measurements_are_clean() -> None:
    rows, errors = read_measurements(measurement_files())
    assert errors == []
    assert len(rows) > 900
    assert len({row.id for row in rows}) == len(rows)
    assert all(row.source for row in rows)
    assert all(row.url for row in rows if not row.group.startswith(("tracked", "launched")))


def test_a_row_inherits_its_groups_scenario(tmp_path: Path) -> None:
    rows, errors = read_measurements([written(tmp_path, GOOD % 99)])
    assert errors == []
    assert rows[0].scenario["context"] == 512
    assert rows[1].scenario == {
        "model": "llama-3-8b",
        "device": "rtx-4090",
        "task": "inference",
        "quant": "q4_k_m",
        "engine": "llama.cpp",
    }


@pytest.mark.parametrize(("value", "says"), [("-1", "greater than 0"), ("fast", "must be a number"), ("0", "greater")])
def test_a_bad_row_is_named_with_file_and_line_and_the_rest_is_read(tmp_path: Path, value: str, says: str) -> None:
    rows, errors = read_measurements([written(tmp_path, GOOD % value)])
    assert [row.id for row in rows] == ["one"]
    assert len(errors) == 1
    assert errors[0].message.startswith("mine.yaml:8: ")
    assert says in errors[0].message


def test_a_row_that_measures_nothing_is_an_error(tmp_path: Path) -> None:
    text = GOOD.replace("measured: {decode_tokens_per_second: %s}", "measured: {}")
    _, errors = read_measurements([written(tmp_path, text)])
    assert "nothing is measured" in errors[0].message


def test_unknown_keys_are_errors(tmp_path: Path) -> None:
    text = (GOOD % 9).replace("id: two,", "id: two, speed: 3,")
    rows, errors = read_measurements([written(tmp_path, text)])
    assert len(rows) == 1
    assert "unknown key" in errors[0].message


@pytest.mark.parametrize("text", ["[]", "rows: []", "groups: 3"])
def test_a_file_without_groups_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match="no list of groups"):
        read_measurements([written(tmp_path, text)])


def test_a_relative_model_is_found_beside_the_file(tmp_path: Path) -> None:
    text = (GOOD % 9).replace("model: llama-3-8b", "model: configs/mine.json")
    rows, _ = read_measurements([written(tmp_path, text)])
    assert settings_of(rows[0])["model"] == str(tmp_path / "configs/mine.json")


def test_the_backend_of_a_row_picks_the_build_of_llama_cpp(tmp_path: Path) -> None:
    rows, _ = read_measurements([written(tmp_path, (GOOD % 9).replace("backend: cuda", "backend: vulkan"))])
    assert settings_of(rows[0])["engine"] == "llama.cpp-vulkan"

"""The file of own measurements that the program writes: a bad one spoils no answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome

from llmfeas.catalog.overlay_file import usable
from llmfeas.catalog.places import MEASURED_FILE, user_folder

Run = Callable[..., Outcome]
BAD = (
    "measurements: [\n",
    "efficiency: {calibration: {rtx-4090: {decode: {x: {factor: 1.0e+6, width: 1, rows: 1}}}}}\n",
    "efficiency: {calibration: {rtx-4090: {decode: {x: {factor: 1, width: 0.5, rows: 1}}}}}\n",
    "efficiency: {calibration: {rtx-4090: {decode: {x: {factor: high, width: 1.5, rows: 1}}}}}\n",
    "efficiency: {calibration: {rtx-4090: {decode: 5}}}\n",
    "efficiency: [1]\n",
    "\x00",
)


@pytest.mark.parametrize("text", BAD)
def test_a_store_that_cannot_be_used_is_named_and_left_out(
    text: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    path = user_folder() / MEASURED_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    try:
        kept, errors = usable([path, tmp_path / "mine.yaml"])
        assert kept == [tmp_path / "mine.yaml"]
        assert len(errors) == 1 and "left out" in errors[0].hint
        answer = run("estimate", "-m", "gpt2", "-d", "rtx-4090", "-t", "inference", "--json")
        assert answer.code == 0 and json.loads(answer.out)["result"]
        assert MEASURED_FILE in answer.err
    finally:
        path.unlink()

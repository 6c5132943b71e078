"""The page about Python: its code runs as shown; what a type checker knows of settings is the table of settings."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from typed_settings import FILE, written

PAGE = Path(__file__).parent.parent / "docs" / "python.md"
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for block in CODE.findall(PAGE.read_text(encoding="utf-8")):
        exec(compile(block, str(PAGE), "exec"), names)
    shown = capsys.readouterr().out
    assert "<Estimate llama-3-8b, qlora on 1 x rtx-4090: feasible" in shown
    assert "\nunknown-device\n" in shown
    assert "32 questions answered" in shown


def test_settings_are_typed_as_the_table_has_them() -> None:
    """UPDATE_GOLDEN=1 writes the file."""
    if os.environ.get("UPDATE_GOLDEN"):
        FILE.write_text(written(), encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == written()

"""The program leaves at once, but never before somebody who waits for its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = "import sys; sys.argv = ['llmfeas', '--version']; from llmfeas.cli import program; "


def ended(code: str, *flags: str, **streams: int) -> subprocess.CompletedProcess[str]:
    """A process that runs the program and would then say `more`."""
    command = [sys.executable, *flags, "-c", BEGIN + code + "\nprogram(); print('more')"]
    where = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(command, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL, **where)  # type: ignore[call-overload,no-any-return]


def test_it_leaves_with_all_of_its_output() -> None:
    result = ended("print('before', end=' ')")
    assert result.returncode == 0
    assert result.stdout.startswith("before llmfeas ")
    assert "more" not in result.stdout


@pytest.mark.parametrize(
    "waiting",
    [
        "import atexit; atexit.register(print, 'end')",
        "import threading; threading.Thread(target=threading.Event().wait, args=(0.5,)).start()",
        "sys.settrace(lambda *event: None)",
        "sys.setprofile(lambda *event: None)",
        "import tempfile, weakref; held = tempfile.TemporaryDirectory()",
    ],
)
def test_whoever_waits_for_the_end_sees_it(waiting: str) -> None:
    assert "more" in ended(waiting).stdout


def test_what_waits_is_asked_of_the_interpreter() -> None:
    """The count of functions that wait is none of Python's promises: where it is gone, this says so."""
    assert ended("from llmfeas.cli.leaving import is_watched; print(is_watched())").stdout.startswith("False")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_what_cannot_be_written_is_told() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        result = ended("", stdout=full)
    finally:
        os.close(full)
    assert result.returncode != 0
    assert "No space left" in result.stderr


def test_the_exit_code_is_that_of_the_answer() -> None:
    code = "sys.argv = ['llmfeas', 'estimate', '--model', 'no-such-model', '--device', 'h100']"
    result = ended(code)
    assert result.returncode == 2
    assert "no-such-model" in result.stderr

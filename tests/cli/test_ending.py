"""A signal ends the program in good order at whatever moment it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")

MOMENTS = {
    "an import": "import importlib.abc\n"
    "class Finder(importlib.abc.MetaPathFinder):\n"
    "    def find_spec(self, *rest): signalled()\n"
    "sys.meta_path.insert(0, Finder())\n"
    "import llmfeas.planning.answer",
    "a last reference that goes": "class Held:\n    def __del__(self): signalled()\nheld = Held()\ndel held",
    "a handler of exceptions": "try: raise ZeroDivisionError\nexcept ZeroDivisionError: signalled()",
    "a finally": "try: raise SystemExit(9)\nfinally: signalled()",
    "what passes over all exceptions": "try: signalled()\nexcept BaseException: pass",
    "a class that is made": "class Field:\n    def __set_name__(self, *rest): signalled()\nclass A: field = Field()",
    "a callback of the library for JSON": "import json\njson.loads('{}', object_hook=lambda found: signalled())",
    "the interpreter's end": "import atexit\natexit.register(signalled)",
}


def ended(program: str, number: signal.Signals, *arguments: str) -> subprocess.CompletedProcess[str]:
    begin = (
        "import os, signal, sys\n"
        "from llmfeas.cli import heed_signals\n"
        f"def signalled(): os.kill(os.getpid(), {int(number)})\n"
        f"heed_signals({list(arguments)})\n"
    )
    command = [sys.executable, "-c", begin + program]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=60)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_signal_at_any_moment(moment: str) -> None:
    result = ended(MOMENTS[moment], signal.SIGTERM)
    assert (result.returncode, result.stdout, result.stderr) == (143, "", "Ended by SIGTERM.\n")


def test_an_interrupt_for_a_script() -> None:
    result = ended("signalled()", signal.SIGINT, "estimate", "--json")
    assert result.returncode == 130
    assert result.stderr == (
        '{"error": {"code": "interrupted", "message": "Interrupted.", "hint": "", "candidates": []}}\n'
    )


@pytest.mark.parametrize("step", ["os.open", "os.close", "Path.replace"])
def test_a_signal_while_a_file_is_written_leaves_no_part_of_it(tmp_path: Path, step: str) -> None:
    """Just after a step has been taken."""
    owner, name = step.split(".")
    program = (
        "from pathlib import Path\n"
        "from llmfeas.cli import output\n"
        f"real = {owner}.{name}\n"
        "def stepped(*rest):\n"
        "    try: return real(*rest)\n"
        "    finally: signalled()\n"
        f"{owner}.{name} = stepped\n"
        f"output.write('whole', {str(tmp_path / 'out')!r})\n"
    )
    assert ended(program, signal.SIGTERM).returncode == 143
    assert [path.name for path in tmp_path.iterdir()] == (["out"] if "replace" in step else [])


def test_a_folder_is_written_whole_before_the_end(tmp_path: Path) -> None:
    program = (
        "from llmfeas.cli import files\n"
        "real = os.fsync\n"
        "def stepped(*rest):\n"
        "    os.fsync = real\n"
        "    signalled()\n"
        "os.fsync = stepped\n"
        f"files.write_folder({{'a': '1', 'b': '2'}}, {str(tmp_path / 'out')!r})\n"
    )
    assert ended(program, signal.SIGTERM).returncode == 143
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "out"]

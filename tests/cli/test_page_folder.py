"""The folder of the page: whole, checked, never over somebody else's files, and enough to answer without a library."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmfeas.errors import UsageError
from llmfeas.page.folder import STATIC, write_page
from tests.pages import answers, commands, page

BOUND_BYTES = 100_000
"""What the page's own code may weigh."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page") / "public"
    write_page(place)
    return place


def test_it_holds_what_its_manifest_names(folder: Path) -> None:
    manifest = json.loads((folder / "page.json").read_text())
    own = {name for name in manifest["files"] if name != "./" and not name.startswith("https://")}
    assert own | {"offline.js"} == {path.name for path in folder.iterdir()}
    assert manifest["pyodide"].startswith("https://")
    assert f"@{json.loads((STATIC / 'runtime.json').read_text())['version']}/" in manifest["pyodide"]


def test_it_is_small(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.iterdir() if path.suffix != ".zip") < BOUND_BYTES


def test_the_same_package_makes_the_same_page(folder: Path, tmp_path: Path) -> None:
    write_page(tmp_path / "again")
    assert all((tmp_path / "again" / path.name).read_bytes() == path.read_bytes() for path in folder.iterdir())


def test_the_archive_answers_without_any_library(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(folder / "llmfeas.zip") as archive:
        archive.extractall(tmp_path)
    script = (
        f"import json, sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "sys.modules.update(dict.fromkeys(('yaml', 'pydantic', 'click', 'rich')))\n"
        "from llmfeas.page.answers import called\n"
        "settings = {'model': 'gpt2-xl', 'device': 'rtx-4070ti'}\n"
        "for call in (['start'], ['answered', settings], ['ways', settings], ['curves', settings, 'length'], "
        "['beside', settings, 't4'], ['found', 'devices', '4090']):\n"
        "    answer = json.loads(called(call[0], json.dumps(call[1:])))\n"
        "    assert 'result' in answer, answer\n"
    )
    subprocess.run([sys.executable, "-I", "-c", script], check=True, capture_output=True)


def test_an_older_page_is_replaced_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write_page(ours)
    (ours / "page.js").write_text("old")
    write_page(ours)
    assert (ours / "page.js").read_bytes() == (folder / "page.js").read_bytes()
    theirs.mkdir()
    (theirs / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="holds something else"):
        write_page(theirs)
    assert [path.name for path in theirs.iterdir()] == ["letter.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ours", "theirs"]


def test_another_runtime_is_refused(tmp_path: Path) -> None:
    runtime = tmp_path / "package"
    runtime.mkdir()
    with pytest.raises(UsageError, match=r"has no pyodide\.mjs"):
        write_page(tmp_path / "page", runtime)
    (runtime / "pyodide.mjs").write_text("export const loadPyodide = evil;")
    with pytest.raises(UsageError, match="is not that of Pyodide"):
        write_page(tmp_path / "page", runtime)
    assert not (tmp_path / "page").exists()


def test_the_command_writes_it_and_says_so(run: Callable[..., Any], tmp_path: Path) -> None:
    assert "holds the page of llmfeas" in run("page", str(tmp_path / "public")).out
    assert r"\ue000\x1b holds" in run("page", str(tmp_path / "\ue000\x1b")).out
    nothing = run("page")
    assert nothing.code == 2
    assert "no folder is named" in nothing.err


def test_the_commands_of_the_page_about_it_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page("page")
    assert f"pyodide@{json.loads((STATIC / 'runtime.json').read_text())['version']}" in text
    monkeypatch.chdir(tmp_path)
    assert all(map(answers, commands(text)))
    assert (tmp_path / "public" / "index.html").exists()

"""docs/how-it-is-computed.md shows what its commands draw, and the site holds every page."""

from __future__ import annotations

import os
import shlex
from typing import Any

import pytest
import yaml

from llmfeas.cli import main
from pages import DOCS, commands, page

DRAWN = {command.split("--picture ")[1]: command for command in commands(page("how-it-is-computed"))}


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_what_its_command_draws(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """UPDATE_GOLDEN=1 draws it."""
    assert main(shlex.split(DRAWN[name])[1:]) == 0
    drawn, kept = capsys.readouterr().out, DOCS / "pictures" / f"{name}.svg"
    if os.environ.get("UPDATE_GOLDEN"):
        kept.write_text(drawn, encoding="utf-8")
    assert kept.read_text(encoding="utf-8") == drawn, "run the tests with UPDATE_GOLDEN=1"
    assert f"](pictures/{name}.svg)" in page("how-it-is-computed")


def test_every_page_stands_in_the_site() -> None:
    settings = yaml.load((DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"), yaml.BaseLoader)
    listed = {name for entry in settings["nav"] for name in _pages(entry)}
    written = {"index.md", "calculator.md", "accuracy.md", "architecture.md", "contributing.md", "changelog.md"}
    assert listed == written | {path.name for path in DOCS.glob("*.md")}


def _pages(entry: Any) -> list[str]:
    if isinstance(entry, dict):
        return [name for part in entry.values() for name in _pages(part)]
    return [name for part in entry for name in _pages(part)] if isinstance(entry, list) else [entry]

"""Pages that are written from the code stand as the code would write them now."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.cli import main
from llmfeas.evidence.backtest import backtest
from llmfeas.render.formats import markdown
from llmfeas.render.pages.backtest import summary
from llmfeas.render.pages.settings import page

DOCS = Path(__file__).parent.parent / "docs"
SETTINGS = DOCS / "settings.md"


def test_the_page_of_settings_is_the_table_of_settings() -> None:
    """UPDATE_GOLDEN=1 writes the page."""
    text = markdown.rendered(page())
    if os.environ.get("UPDATE_GOLDEN"):
        SETTINGS.write_text(text, encoding="utf-8")
    assert SETTINGS.read_text(encoding="utf-8") == text


def test_the_page_of_claims_is_what_is_computed(capfd: pytest.CaptureFixture[str]) -> None:
    """UPDATE_GOLDEN=1 writes the page; whoever changes the data or the model reads what it does to the claims."""
    page = DOCS / "claims.md"
    if os.environ.get("UPDATE_GOLDEN"):
        assert main(["claims", "--format", "markdown", "-o", str(page)]) == 0
    assert main(["claims", "--format", "markdown"]) == 0
    assert page.read_text(encoding="utf-8") == capfd.readouterr().out, (
        "run 'llmfeas claims -f markdown -o docs/claims.md'"
    )


def test_the_table_of_accuracy_is_what_the_backtest_finds() -> None:
    """UPDATE_GOLDEN=1 writes the table into the README."""
    readme = DOCS.parent / "README.md"
    lines = [line.to_dict() for line in backtest(naive=True).kinds]
    text = markdown.rendered(summary(lines, catalog().raw("efficiency")["left_out"]))
    table = text[text.index("|") :].strip()
    start, end = "<!-- accuracy: written by tests/test_docs.py -->\n", "<!-- /accuracy -->"
    before, rest = readme.read_text(encoding="utf-8").split(start)
    after = rest.split(end)[1]
    whole = f"{before}{start}\n{table}\n\n{end}{after}"
    if os.environ.get("UPDATE_GOLDEN"):
        readme.write_text(whole, encoding="utf-8")
    assert readme.read_text(encoding="utf-8") == whole, "run the tests with UPDATE_GOLDEN=1"

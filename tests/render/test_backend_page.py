"""A backend's page names every technique once, with its cases in order."""

from __future__ import annotations

from dataclasses import asdict

from llmfeas.catalog.store import catalog
from llmfeas.render.formats.table import rendered
from llmfeas.render.pages.backend import page
from llmfeas.render.report import Table


def test_every_technique_and_case_is_shown() -> None:
    for backend in catalog().backends.values():
        shown = page(backend.name, asdict(backend), [])
        table = next(block for block in shown.blocks if isinstance(block, Table))
        assert len(table.rows) == sum(len(cases) for cases in backend.techniques.values())
        assert sum(bool(row[0].text) for row in table.rows) == len(backend.techniques)
        assert {row[1].text for row in table.rows} <= {"supported", "limited", "unsupported"}


def test_no_line_is_wider_than_the_screen() -> None:
    backend = catalog().backends["rocm"]
    for width in (60, 80, 100, 160):
        lines = rendered(page(backend.name, asdict(backend), []), width=width).splitlines()
        assert max(map(len, lines)) <= width

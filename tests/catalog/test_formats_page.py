"""The page about formats lists every format that is accepted, and the engines that run it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from llmfeas.catalog.quantization import Format
from llmfeas.catalog.store import built_in
from llmfeas.options import BY_NAME
from llmfeas.request import value_of

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
HEADING = "## Which engine runs which format\n\n"
CATALOG = built_in()
FORMATS = CATALOG.tables.quantization


def table() -> Iterator[str]:
    """Write a line for the formats that the same engines run, in the order of the data."""
    yield "| --quant | other names | engines |"
    yield "| --- | --- | --- |"
    groups: dict[tuple[str, ...], list[Format]] = {}
    for key, form in FORMATS.formats.items():
        if key == form.id != "none":
            groups.setdefault((form.kind, *runners(form)), []).append(form)
    for (_, *engines), forms in groups.items():
        others = ", ".join(alias for form in forms for alias in form.aliases)
        yield f"| {', '.join(form.id for form in forms)} | {others} | {', '.join(engines)} |"


def runners(form: Format) -> Iterator[str]:
    for engine in CATALOG.engines.values():
        found = FORMATS.format(form.id, engine.speaks)
        if "serving" in engine.does and engine.reads(found):
            yield engine.id + (f" (as {found.id})" if found.id != form.id else "")


def test_the_page_lists_what_is_accepted() -> None:
    """UPDATE_GOLDEN=1 writes the table."""
    text, _, shown = PAGE.read_text(encoding="utf-8").partition(HEADING)
    written = "".join(f"{line}\n" for line in table())
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(text + HEADING + written, encoding="utf-8")
        return
    assert shown == written
    for line in shown.splitlines()[2:]:
        for name in ", ".join(line.split("|")[1:3]).split(","):
            assert not name.strip() or value_of(BY_NAME["quant"], name, FORMATS)


def test_every_format_has_an_engine() -> None:
    for form in FORMATS.formats.values():
        assert form.id == "none" or list(runners(form)), form.id

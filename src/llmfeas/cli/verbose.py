"""What `--verbose` adds on stderr: what answered, from which files, and what was taken for what nobody said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..catalog.store import catalog
from ..render.words import setting
from ..text import printable


def remarks(envelope: Mapping[str, Any]) -> Iterator[str]:
    """Lines on an answer: versions, catalog files, each assumed setting with where its value is from."""
    yield f"llmfeas {envelope['llmfeas']}, catalog {printable(envelope['catalog'], 400)}"
    known = catalog()
    yield f"catalog files: {', '.join(printable(path, 200) for path in (known.directory, *known.overlay_paths))}"
    for name, entry in envelope["inputs"].items():
        if entry["origin"] != "given" and entry["value"] is not None:
            yield f"assumed --{name.replace('_', '-')} {setting(name, entry['value'])} ({entry['origin']})"

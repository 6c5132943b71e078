"""The page on security says what the code does: its bounds are those of the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from fuzz import holds
from llmfeas import errors
from llmfeas.catalog import document
from llmfeas.check import diff, read
from llmfeas.cli import scenarios
from llmfeas.importers import config_file
from llmfeas.importers.stores import hub, local
from llmfeas.importers.weights import gguf, safetensors
from llmfeas.importers.weights.header import MIB
from llmfeas.machine import probe

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
BOUNDS = [
    ("in YAML", f"{document.MAX_BYTES:,} bytes, {document.MAX_VALUES:,} values, {document.MAX_DEPTH} levels"),
    ("config.json", f"{config_file.MAX_BYTES:,} bytes"),
    (
        "GGUF",
        f"{gguf.MAX_TENSORS:,} tensors, {gguf.MAX_KEYS:,} keys, names of {gguf.MAX_NAME_BYTES:,} bytes, "
        f"{gguf.MAX_PARTS:,} parts",
    ),
    (
        "safetensors",
        f"{safetensors.MAX_TENSORS:,} tensors a file, {safetensors.MAX_TOTAL_TENSORS:,} in all, "
        f"{safetensors.MAX_PARTS:,} parts, names of {safetensors.MAX_NAME:,} characters",
    ),
    ("NDJSON", f"{scenarios.MAX_LINE_BYTES:,} bytes a line"),
    ("crossed", f"{scenarios.MAX_CROSSED:,} scenarios"),
    ("Stored answers", f"{diff.MAX_BYTES:,} bytes, {diff.MAX_DEPTH} levels"),
    ("Expectations of", f"{read.MAX_JUDGED:,} judgements"),
    (
        "hub",
        f"{hub.CONFIG_LIMIT // MIB} MiB a configuration, {safetensors.INDEX_LIMIT // MIB} MiB an index, "
        f"{safetensors.HEADER_LIMIT // MIB} MiB a header (GGUF: {gguf.HEADER_LIMIT // MIB} MiB); "
        f"pauses of {hub.PAUSE_SECONDS:g} s, {hub.SECONDS:g} s together",
    ),
    (
        "Stores of",
        f"{local.MANIFEST_LIMIT // MIB} MiB a manifest, {local.MOST_FILES:,} files; "
        "a manifest leads to its own store only",
    ),
    ("Tools", f"{probe.MAX_CHARACTERS:,} characters, {probe.LIMIT_SECONDS:g} seconds a tool"),
]


@pytest.mark.parametrize(("what", "bound"), BOUNDS)
def test_a_bound_of_the_page_is_that_of_the_code(what: str, bound: str) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| ") and what in line.split("|")[1])
    assert row.split("|")[3].strip() == bound


def test_other_numbers_of_the_page() -> None:
    text = " ".join(PAGE.split())
    assert f"an error has at most {errors.LONGEST_MESSAGE:,} characters" in text
    assert f"{holds.CPU_SECONDS:g} seconds of CPU and {holds.MEMORY_BYTES / 1e6:.0f} MB of memory" in text


def test_no_room_opens_a_connection_or_a_pickle_one_listens_and_one_starts_programs() -> None:
    """Of what modules import, whatever they do with it."""
    forbidden = {"socket", "http", "urllib", "requests", "ftplib", "ssl", "pickle", "marshal", "shelve"}
    starting, listening = set(), set()
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            roots = {name.split(".")[0] for name in names}
            assert "http.client" not in names
            if "http.server" in names:
                listening.add(path.name)
                roots.discard("http")
            assert not roots & forbidden, path.name
            if "subprocess" in roots:
                starting.add(path.name)
    assert starting == {"probe.py", "measure.py", "parsers.py"}
    assert "`detect --measure` starts this Python" in PAGE and "`launch --verify` the parser" in PAGE
    assert listening == {"page.py"}


def test_pages_link_here_and_ci_attacks() -> None:
    assert "docs/security.md" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"python -m fuzz --minutes", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))

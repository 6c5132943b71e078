"""Hooks of `mkdocs build`: pages that stand outside of docs/, how right the figures are, and the calculator itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
OUTSIDE = {"README": "index", "ARCHITECTURE": "architecture", "CONTRIBUTING": "contributing", "CHANGELOG": "changelog"}
KINDS = ("training", "decode", "prefill", "training-memory", "inference-memory")
CALCULATOR = """# The calculator

<a href="calculator/index.html">All of llmfeas runs in one page</a>: what is typed or dropped there leaves no machine.
"""
DATA = re.compile(r"\[([^\]]*)\]\((?:\.\./)?data/[^)]*\)")
"""Links to files of the project, which are no pages."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and pictures that are written now."""
    pages = {to: (ROOT / f"{name}.md").read_text(encoding="utf-8") for name, to in OUTSIDE.items()}
    for name, text in {**pages, "calculator": CALCULATOR, "accuracy": _accuracy()}.items():
        files.append(File.generated(config, f"{name}.md", content=text))
    for kind in KINDS:
        drawn = _llmfeas("backtest", "--kind", kind, "--worst", "9999", "--format", "svg")
        files.append(File.generated(config, f"pictures/measured-{kind}.svg", content=drawn))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn links between the pages of the project into those of the site."""
    for name, to in OUTSIDE.items():
        markdown = markdown.replace(f"]({name}.md", f"]({to}.md").replace(f"](../{name}.md", f"]({to}.md")
    return DATA.sub(r"\1", markdown.replace("](docs/", "]("))


def on_post_build(config: MkDocsConfig) -> None:
    """Lay the calculator beside the pages."""
    _llmfeas("page", str(Path(config.site_dir) / "calculator"))


def _accuracy() -> str:
    drawn = (f"![Measured and computed: {kind}](pictures/measured-{kind}.svg)" for kind in KINDS)
    table = _llmfeas("backtest", "--naive", "--format", "markdown")
    blind = _llmfeas("backtest", "--blind", "--format", "markdown")
    return "\n\n".join(["# How right it is", table, *drawn, blind]).replace("\n## ", "\n")


def _llmfeas(*words: str) -> str:
    return subprocess.run([sys.executable, "-m", "llmfeas", *words], check=True, capture_output=True, text=True).stdout

"""Pages of docs/ whose commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from llmfeas.cli import main

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"```console\n(.*?)```", flags=re.DOTALL)


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def commands(text: str) -> list[str]:
    return [line for block in BLOCK.findall(text) for line in block.splitlines()]


def answers(command: str) -> bool:
    """Whether a command of a page ends well."""
    name, *arguments = shlex.split(command)
    return name == "llmfeas" and main(arguments) == 0

"""CONTRIBUTING.md and ARCHITECTURE.md say what is so: paths, the files that additions touch, rooms in their order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from test_structure import LAYERS

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAP = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PATH = re.compile(r"`((?:src|data|tests|benchmarks|calibration|autograd|model|walk|cli|render)/[\w./-]*)`")

ADDED = {
    "a device": r"rtx-5080",
    "a model": r"qwen3-14b",
    "an architecture": r"olmo2|linear_attention|LinearAttention|linear_attn|DeltaRule|delta_rule|ssm_\w+",
    "an engine": r"axolotl",
    "a quantization": r"iq4_xs",
    "an optimizer": r"lion",
    "a command": r"detect|detected",
    "an output format": r"junit",
}
"""What stands for each kind: words that nothing but such an addition brings."""

BESIDE = {
    "a command": ("src/llmfeas/machine/",),
    "an architecture": ("src/llmfeas/importers/", "src/llmfeas/catalog/"),
}
"""Rooms where more than one addition uses the same words."""


def section(title: str) -> str:
    return GUIDE.split(f"### {title}\n")[1].split("\n### ")[0]


def touching(words: str) -> set[str]:
    """The files of the package and its data in which one of the words stands alone."""
    found = re.compile(rf"(?<![\w-])(?:{words})(?![\w-])")
    files = {*(ROOT / "src").rglob("*.py"), *(ROOT / "data").glob("*.yaml")} - {
        ROOT / "src" / "llmfeas" / "settings.py"
    }
    return {path.relative_to(ROOT).as_posix() for path in files if found.search(path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("page", [GUIDE, MAP], ids=["guide", "map"])
def test_every_named_path_is_there(page: str) -> None:
    paths = PATH.findall(page)
    assert len(paths) >= 4
    for path in paths:
        assert (ROOT / path).exists() or (ROOT / "src" / "llmfeas" / path).exists(), path


@pytest.mark.parametrize("kind", ADDED)
def test_an_addition_touches_the_files_that_are_named(kind: str) -> None:
    named = set(PATH.findall(section(kind)))
    found = touching(ADDED[kind])
    assert found
    assert {path for path in found if not path.startswith(BESIDE.get(kind, ()))} <= named


def test_all_kinds_are_held() -> None:
    assert set(re.findall(r"^### (.*)$", GUIDE, re.MULTILINE)) == set(ADDED)


def test_an_operator_that_mixes_tokens_touches_at_most_ten_files() -> None:
    named = set(PATH.findall(section("an architecture").split("mixes tokens")[1]))
    found = touching(r"linear_attention|LinearAttention|linear_attn|DeltaRule|delta_rule|ssm_\w+")
    assert {path for path in found if not path.startswith(BESIDE["an architecture"])} <= named
    assert len(named) <= 10


def test_the_map_shows_the_rooms_in_their_order() -> None:
    rows = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in MAP.splitlines() if row.startswith("| `")]
    assert [set(row) for row in rows] == list(LAYERS)


@pytest.mark.parametrize("page", [GUIDE, MAP], ids=["guide", "map"])
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", page):
        assert (ROOT / target).exists(), target

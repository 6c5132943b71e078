"""An answer rests on the catalog that it was asked with, whatever else the process was asked before or at once."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path

import pytest

from llmfeas.catalog.overlay import with_overlays
from llmfeas.catalog.store import Catalog, built_in, install
from llmfeas.planning.answer import answer

ASKS: tuple[Mapping[str, object], ...] = (
    {"model": "llama-3-8b", "device": "8xh100-sxm", "task": "pretrain"},
    {"model": "llama-3-8b", "device": "rtx-4090", "task": "qlora", "micro_batch": 2},
    {"model": "llama-3-8b", "device": "rtx-4090", "task": "inference", "quant": "q4_k_m"},
    {"model": "mixtral-8x7b", "device": "2xa100-sxm-80gb", "task": "inference", "engine": "vllm"},
)
NUMBERS = """
efficiency:
  parameters: {training.matrix: {value: 0.3}, decode.read: {value: 0.45}, decode.compute: {value: 0.1}}
"""


def overlaid(folder: Path, text: str) -> Catalog:
    path = folder / "own.yaml"
    path.write_text(text)
    return with_overlays(built_in(), [path])


def results(catalog: Catalog) -> list[object]:
    return [answer(ask, catalog).to_dict() for ask in ASKS]


def test_a_catalog_of_one_s_own_counts_by_argument_as_when_it_is_installed(tmp_path: Path) -> None:
    plain, own = built_in(), overlaid(tmp_path, NUMBERS)
    by_argument = results(own)
    try:
        install(own)
        assert [answer(ask).to_dict() for ask in ASKS] == by_argument
    finally:
        install(plain)
    for found, before in zip(by_argument, results(plain), strict=True):
        assert found["result"]["time"] != before["result"]["time"]  # type: ignore[index]
        assert found["result"]["parameters"] == before["result"]["parameters"]  # type: ignore[index]


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_each_catalog_gives_its_own_answers_in_any_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    (tmp_path / "half").mkdir()
    catalogs = (built_in(), overlaid(tmp_path, NUMBERS), overlaid(tmp_path / "half", NUMBERS.replace("0.3", "0.5")))
    alone = [results(catalog) for catalog in catalogs]
    assert alone[0] != alone[1] != alone[2] != alone[0]
    for index in order:
        assert results(catalogs[index]) == alone[index]


def test_each_catalog_gives_its_own_answers_to_many_threads(tmp_path: Path) -> None:
    catalogs = [built_in(), overlaid(tmp_path, NUMBERS)]
    alone = [results(catalog) for catalog in catalogs]
    fresh = [Catalog(), overlaid(tmp_path, NUMBERS)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(results, fresh * 4))
    assert found == alone * 4

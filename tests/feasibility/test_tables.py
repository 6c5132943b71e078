"""An answer rests on the catalog that it was asked with, whatever else the process was asked before or at once."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any

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
SPEED = (
    "efficiency: {parameters: "
    "{training.matrix: {value: 0.3}, decode.read: {value: 0.45}, decode.compute: {value: 0.1}}}"
)
CHANGES = {
    "efficiency": (SPEED, "time"),
    "engines": (
        "engines:\n"
        "- {extends: pytorch, training: {memory: {fixed_bytes: 5.0e+9}, scheme: {weight: 4, gradient: 4}}}\n"
        "- {extends: llama.cpp, serving: {memory: {fixed_bytes: 5.0e+9}}}\n"
        "- {extends: vllm, serving: {split: layers}}\n",
        "memory",
    ),
    "quantization": (
        "quantization: {encodings: {q4_k: {bytes: 200}, nf4-double: {bytes: 12000}}, formats: {none: {base: f32}}}\n",
        "memory",
    ),
    "implementations": (
        "implementations:\n"
        "  kernels: {fused: {norm: kernel-fp32, loss: written}}\n"
        "  implementations: {hf-llama: {norm: wide-scale-cast}}\n",
        "memory",
    ),
    "runtime": ("runtime: {contexts: {cuda: 3.0e+9}, unseen: {cuda: 3.0e+9}}\n", "memory"),
    "power": ("power: {power_share: {compute: {expected: 0.75}, bandwidth: {expected: 0.6}}}\n", "cost"),
}
"""Overlays by the file that they change, and what of an answer follows from it."""


def overlaid(folder: Path, text: str) -> Catalog:
    path = folder / "own.yaml"
    path.write_text(text)
    return with_overlays(built_in(), [path])


def results(catalog: Catalog) -> list[Any]:
    return [answer(ask, catalog).to_dict() for ask in ASKS]


@pytest.mark.parametrize("name", CHANGES)
def test_a_catalog_of_one_s_own_counts_by_argument_as_when_it_is_installed(tmp_path: Path, name: str) -> None:
    text, part = CHANGES[name]
    before = results(built_in())
    own = overlaid(tmp_path, text)
    by_argument = results(own)
    try:
        install(own)
        assert [answer(ask).to_dict() for ask in ASKS] == by_argument
    finally:
        install(built_in())
    moved = [found["result"][part] != old["result"][part] for found, old in zip(by_argument, before, strict=True)]
    assert moved == [True, True, *(2 * [name != "implementations"])]
    assert results(built_in()) == before
    for found in by_argument:
        assert found["catalog"].startswith(f"{built_in().digest} + ")


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_each_catalog_gives_its_own_answers_in_any_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    (tmp_path / "half").mkdir()
    everything = "\n".join(text for text, _ in CHANGES.values())
    catalogs = (built_in(), overlaid(tmp_path, everything), overlaid(tmp_path / "half", SPEED))
    found = {index: results(catalogs[index]) for index in order}
    assert all(results(catalogs[index]) == found[index] for index in order)
    for ask in range(len(ASKS)):
        times = [found[index][ask]["result"]["time"] for index in range(3)]
        assert times[0] != times[1] and times[0] != times[2]


def test_each_catalog_gives_its_own_answers_to_many_threads(tmp_path: Path) -> None:
    everything = "\n".join(text for text, _ in CHANGES.values())
    alone = [results(catalog) for catalog in (built_in(), overlaid(tmp_path, everything))]
    fresh = [Catalog(), overlaid(tmp_path, everything)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(results, fresh * 4))
    assert found == alone * 4

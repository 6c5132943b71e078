"""Files whose types differ from model to model under one name."""

from __future__ import annotations

from llmfeas.catalog.store import catalog
from llmfeas.memory.peak import memory
from llmfeas.ranges import Range
from llmfeas.settle import resolution


def peak(quant: str) -> Range:
    asked = {"model": "qwen3.5-27b", "device": "h100-sxm", "task": "inference", "engine": "llama.cpp", "quant": quant}
    return memory(resolution(asked, catalog()).scenario).memory.peak_bytes


def test_a_dynamic_mixture_is_as_large_as_the_plain_type_and_less_sure() -> None:
    plain, mixture = peak("q4_k_m"), peak("ud-q4_k_xl")
    assert mixture.expected == plain.expected
    assert 1.0 < (mixture.high / mixture.low) / (plain.high / plain.low) < 1.2

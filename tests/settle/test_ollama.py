"""What Ollama takes where nobody says."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution

ASKED: dict[str, object] = {"model": "qwen3-8b", "task": "inference", "engine": "ollama", "quant": "q4_k_m"}


def settled(**more: object) -> Scenario:
    return resolution({**ASKED, **more}, catalog()).scenario


@pytest.mark.parametrize(
    ("device", "context"),
    [
        ("rtx-4070ti", 4096),
        ("rtx-4090", 32768),
        ("2xrtx-3090", 40960),  # all that the model was trained for
        ("ryzen-9-7950x", 4096),  # no card
    ],
)
def test_the_context_follows_the_memory_of_all_cards(device: str, context: int) -> None:
    found = settled(device=device)
    assert found.context == context
    assert (found.concurrency, found.attention) == (1, "flash")
    assert settled(device=device, context=8192).context == 8192


def test_macs_count_what_metal_lets_a_process_have() -> None:
    sizes = {gib: settled(device="m2-ultra", memory=f"{gib}GiB").context for gib in (16, 32, 64)}
    assert sizes == {16: 4096, 32: 32768, 64: 40960}


def test_releases_before_2026_gave_every_card_the_same() -> None:
    assert settled(device="rtx-4090", engine_version="0.15.4").context == 4096
    assert settled(device="rtx-4090", engine_version="0.15.5").context == 32768

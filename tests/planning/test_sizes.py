"""The memory of a machine that is sold in several sizes: which is assumed, and from which on it works."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.feasibility.result import Estimate, MemorySize
from llmfeas.planning.answer import answer, bare_answer
from llmfeas.planning.changes.hardware import device_changes
from llmfeas.render.formats.table import rendered
from llmfeas.render.pages.estimate import report
from llmfeas.units import GIB

ASKS: list[dict[str, object]] = [
    {"model": "llama-3-8b", "device": "m1-max", "task": "lora"},
    {"model": "llama-3-70b", "device": "m4-max-40c", "task": "inference", "quant": "q4_k_m"},
    {"model": "gpt2", "device": "strix-halo", "task": "finetune"},
]


def sizes_of(found: Estimate) -> tuple[MemorySize, ...]:
    assert isinstance(found.memory_sizes, tuple)
    return found.memory_sizes


@pytest.mark.parametrize("ask", ASKS, ids=str)
def test_each_size_is_the_estimate_with_that_memory(ask: dict[str, object]) -> None:
    found = sizes_of(answer(ask))
    device = catalog().devices[bare_answer(ask).scenario.device.id]
    assert [size.memory_bytes / GIB for size in found] == sorted(device.memory_options_gib)
    for size in found:
        assert bare_answer({**ask, "memory": f"{size.memory_bytes:.0f}B"}).verdict.status == size.status
    assert [size.memory_bytes for size in found if size.assumed] == [bare_answer(ask).scenario.memory_bytes]


@pytest.mark.parametrize("more", [{"memory": "64GiB"}, {"device": "rtx-3090"}], ids=str)
def test_who_says_a_size_or_has_no_choice_is_told_of_none(more: dict[str, object]) -> None:
    assert "memory_sizes" not in answer({**ASKS[0], **more}).result()


def test_the_screen_names_the_sizes_and_the_first_that_works() -> None:
    found = answer(ASKS[1])
    screen = " ".join(rendered(report(found.to_dict()), 200).split())
    first = next(size for size in sizes_of(found) if size.status in ("feasible", "tight"))
    assert f"It works from {first.memory_bytes / GIB:g} GiB on; --memory says which it is." in screen
    assert "GiB of memory assumed; it is sold with" in screen


def test_a_size_that_nobody_said_may_be_larger_together_with_a_smaller_format() -> None:
    asked = {"model": "minimax-m2", "device": "strix-halo", "task": "inference"}
    ways = [remedy.changes for remedy in answer(asked, catalog()).remedies]
    assert {"memory": "128GiB", "quant": "q3_k_m"} in ways
    said = [remedy.changes for remedy in answer({**asked, "memory": "32GiB"}, catalog()).remedies]
    assert said and all({"device", "num_devices", "memory"} & way.keys() for way in said)


def test_nobody_changes_to_the_chip_of_a_laptop() -> None:
    asked = bare_answer({"model": "llama-3.1-8b", "device": "arc-b580", "task": "lora"})
    offered = [str(change.settings["device"]) for change in device_changes(asked, catalog())]
    assert "arc-a770-16gb" in offered and "arc-a770m" not in offered
    assert not [name for name in offered if "laptop" in catalog().devices[name].name.lower()]

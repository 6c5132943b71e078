"""How much of a device a process can take."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.memory.usable import usable_bytes
from llmfeas.settle import resolution
from llmfeas.units import GIB, MIB
from serving_rows import serving

ASKED = {"model": "gpt2"}


def test_the_drivers_figure_counts_where_it_is_known() -> None:
    assert usable_bytes(serving(ASKED, device="rtx-4090")) == 24564 * MIB


def test_a_given_size_replaces_the_capacity() -> None:
    assert usable_bytes(serving(ASKED, device="rtx-4090", memory_bytes=48 * GIB)) == 0.97 * 48 * GIB


@pytest.mark.parametrize(
    ("gib", "megabytes"),
    [(16, 12713.12), (24, 19069.67), (32, 26800.60), (48, 40200.90), (64, 55662.79), (128, 115448.73)],
)
def test_a_gpu_of_a_mac_has_what_macos_says(gib: int, megabytes: float) -> None:
    """ggml prints Metal's recommended working set in MB of 10^6 bytes."""
    found = resolution({"model": "gpt2", "device": "m2-ultra", "memory": f"{gib}GiB"}, catalog()).scenario
    assert usable_bytes(found) == pytest.approx(megabytes * 1e6, rel=1e-5)


def test_a_raised_limit_of_a_mac_is_what_its_gpu_has() -> None:
    asked = {"model": "llama-3.3-70b", "device": "m4-max-40c", "memory": "64GiB", "task": "inference"}
    found = estimate(resolution({**asked, "wired_limit": "56GiB"}, catalog()))
    assert found.memory.usable_bytes == 56 * GIB
    assert found.verdict.status == "feasible"
    held = resolution({**asked, "wired_limit": "56GiB", "reserve": "10GiB"}, catalog()).scenario
    assert usable_bytes(held) == 54 * GIB


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"device": "rtx-4090", "wired_limit": "20GiB"}, "is no Mac's"),
        ({"device": "m4", "memory": "16GiB", "wired_limit": "17GiB"}, "more than the 16 GiB"),
    ],
)
def test_a_limit_of_macos_is_refused_where_it_cannot_be(asked: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        resolution({"model": "gpt2", **asked}, catalog())


def test_a_cpu_leaves_a_tenth_to_the_system() -> None:
    assert usable_bytes(serving(ASKED, device="ryzen-9-7950x", memory_bytes=32 * GIB)) == 0.9 * 32 * GIB


@pytest.mark.parametrize(("device", "gib"), [("gb10", 128), ("jetson-orin-nano-8gb", 8), ("strix-halo", 32)])
def test_unified_memory_is_shared_with_the_system(device: str, gib: int) -> None:
    scenario = resolution({"model": "gpt2", "device": device, "task": "inference"}, catalog()).scenario
    assert usable_bytes(scenario) == pytest.approx(0.9 * gib * GIB)
    assert scenario.host_memory_bytes == gib * GIB


@pytest.mark.parametrize(("share", "starts"), [(0.85, True), (0.87, False), (0.92, False)])
def test_a_server_finds_less_free_of_a_memory_shared_with_the_system(share: float, starts: bool) -> None:
    """As people found on two DGX Sparks: 0.85 starts, 0.87 and the default do not."""
    asked = {"model": "qwen3-32b", "device": "gb10", "task": "inference", "engine": "vllm", "quant": "fp8"}
    found = estimate(resolution({**asked, "gpu_memory_utilization": share}, catalog()))
    told = [note.message for note in (*found.verdict.reasons, *found.warnings) if "may refuse to start" in note.message]
    assert bool(told) is not starts


@pytest.mark.parametrize(
    ("asked", "mib"),
    [
        ({"device": "rtx-4090"}, 600),
        ({"device": "2xrtx-3090"}, 600),
        ({"device": "4xrtx-3090"}, 0),
        ({"device": "h100-sxm"}, 0),
        ({"device": "m2-ultra"}, 0),
        ({"device": "colab"}, 0),
        ({"device": "rtx-4090", "reserve": 0}, 0),
        ({"device": "h100-sxm", "reserve": "2GiB"}, 2048),
    ],
    ids=str,
)
def test_a_screen_holds_some_of_a_desktop_card(asked: dict[str, object], mib: int) -> None:
    scenario = resolution({"model": "gpt2", **asked}, catalog()).scenario
    assert scenario.reserve_bytes == mib * MIB
    bare = resolution({"model": "gpt2", **asked, "reserve": 0}, catalog()).scenario
    assert usable_bytes(bare) - usable_bytes(scenario) == mib * MIB


def test_a_share_that_stands_for_an_unknown_figure_has_room_for_a_screen_already() -> None:
    scenario = resolution({"model": "gpt2", "device": "rx-7900xt"}, catalog()).scenario
    assert scenario.device.reported_bytes is None
    assert usable_bytes(scenario) == 0.97 * 20 * GIB


def test_who_holds_all_leaves_nothing() -> None:
    scenario = resolution({"model": "gpt2", "device": "rtx-4090", "reserve": "80GiB"}, catalog()).scenario
    assert usable_bytes(scenario) == 0.0


def test_a_server_finds_less_free_beside_a_screen() -> None:
    asked = {"model": "qwen2.5-7b", "device": "rtx-4090", "task": "inference", "engine": "vllm", "quant": "awq-int4"}
    asked |= {"gpu_memory_utilization": "0.92"}
    rooms = [estimate(resolution({**asked, "reserve": held}, catalog())).serving for held in ("0", "4GiB")]
    assert [room is not None and room.starts for room in rooms] == [True, False]

"""Processors by one rule of cores, clock, vector units and memory channels."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmfeas.catalog.overlay import with_overlays
from llmfeas.catalog.processor import bandwidth_gb_per_s, disagreements, rates, with_rule
from llmfeas.catalog.store import catalog
from llmfeas.feasibility.core import estimate
from llmfeas.settle import resolution

CATALOG = catalog()
UNITS = CATALOG.raw("processors")["vector_units"]
EIGHT = {"backend": "cpu", "cores": 8, "clock_ghz": 4.0, "simd": "avx2"}


def test_a_core_does_two_fused_products_of_eight_numbers_a_cycle() -> None:
    found = rates(EIGHT, UNITS)
    assert found is not None
    assert found["fp32"] == pytest.approx(8 * 4.0e9 * 2 * 8 * 2 / 1e12, rel=1e-3)


def test_groups_of_cores_add_up_in_formats_that_all_have() -> None:
    both = rates({"core_groups": [EIGHT, {"cores": 8, "clock_ghz": 3.0, "simd": "avx2"}]}, UNITS)
    fast, slow = rates(EIGHT, UNITS), rates({**EIGHT, "clock_ghz": 3.0}, UNITS)
    assert both and fast and slow
    assert both["fp32"] == pytest.approx(fast["fp32"] + slow["fp32"], rel=1e-3)


@pytest.mark.parametrize("missing", ["cores", "clock_ghz", "simd"])
def test_nothing_is_made_up_where_a_figure_is_missing(missing: str) -> None:
    assert rates({name: value for name, value in EIGHT.items() if name != missing}, UNITS) is None


def test_bandwidth_is_channels_times_transfers() -> None:
    assert bandwidth_gb_per_s({"memory_type": "DDR5-5600", "memory_channels": 2}) == 89.6
    assert bandwidth_gb_per_s({"memory_type": "DDR5", "memory_channels": 2}) is None


def test_what_is_stated_stays() -> None:
    stated = {**EIGHT, "tflop_per_s": {"fp32": 1.0}, "bandwidth_gb_per_s": 50}
    assert with_rule(stated, {"vector_units": UNITS}) is stated
    half = with_rule({**EIGHT, "bandwidth_gb_per_s": 50}, {"vector_units": UNITS})
    assert half["bandwidth_gb_per_s"] == 50 and half["by_rule"] == ["tflop_per_s"]


def test_other_devices_are_left_alone() -> None:
    card = {**EIGHT, "backend": "cuda"}
    assert with_rule(card, {"vector_units": UNITS}) is card


def test_what_differs_from_the_rule_is_named() -> None:
    entry = {**EIGHT, "memory_type": "DDR5-5600", "memory_channels": 2, "bandwidth_gb_per_s": 179.2}
    assert list(disagreements(entry, {"vector_units": UNITS})) == [("bandwidth_gb_per_s", 179.2, 89.6)]


def test_stated_processors_are_what_the_rule_gives_but_for_few() -> None:
    """The rule holds where somebody else did the sum: the whole catalog's check."""
    stated = [key for key, device in CATALOG.devices.items() if device.backend == "cpu" and not device.by_rule]
    differ = [key for key in stated if list(disagreements(CATALOG.devices.raw(key), CATALOG.raw("processors")))]
    assert len(stated) >= 40
    assert len(differ) <= 0.15 * len(stated)


def test_a_generic_processor_needs_cores_clock_units_and_memory(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "devices:\n- {id: mine, name: My CPU, generation: generic-cpu, kind: cpu, memory_gib: 64,"
        " memory_type: DDR4-3200, memory_channels: 2, cores: 6, clock_ghz: 3.5, simd: avx2}\n",
        encoding="utf-8",
    )
    overlaid = with_overlays(CATALOG, [path])
    device = overlaid.devices["mine"]
    assert device.bandwidth_gb_per_s == 51.2
    assert device.tflop_per_s.fp32 == pytest.approx(0.672, rel=1e-3)
    assert set(device.by_rule) == {"tflop_per_s", "bandwidth_gb_per_s"}
    answer = estimate(resolution({"model": "gpt2", "device": "mine", "task": "inference"}, overlaid))
    assert answer.time.to_dict()["decode_tokens_per_second"]


def test_what_rests_on_the_rule_has_wider_ranges(tmp_path: Path) -> None:
    """Against the same processor with its figures stated."""
    known = CATALOG.devices["ryzen-7-9700x"]
    assert known.by_rule
    rates_of = {name: value for name in ("fp32", "int8") if (value := getattr(known.tflop_per_s, name)) is not None}
    path = tmp_path / "mine.yaml"
    path.write_text(
        f"devices:\n- {{id: stated, name: Stated, extends: {known.id}, tflop_per_s: {rates_of},"
        f" bandwidth_gb_per_s: {known.bandwidth_gb_per_s}}}\n",
        encoding="utf-8",
    )
    overlaid = with_overlays(CATALOG, [path])
    assert overlaid.devices["stated"].by_rule == ()

    def width(device: str) -> float:
        asked = {"model": "llama-3-8b", "device": device, "task": "inference", "quant": "q4_k_m"}
        speed = estimate(resolution(asked, overlaid)).time.to_dict()["decode_tokens_per_second"]
        return float(speed["high"] / speed["low"])

    assert width(known.id) > 1.05 * width("stated")


NO_SOURCE = {
    "xeon-w-2295": "the peak rates and bandwidth of Xeon W-2295: computed from its cores, clock and memory channels",
    "radeon-780m": "the bandwidth of Radeon 780M: computed from its type of memory",
    "rubin-r200": "the peak rates of NVIDIA Rubin (per GPU): computed from other figures of it",
    "h100-sxm": None,
}


@pytest.mark.parametrize("device", NO_SOURCE)
def test_an_answer_says_which_figures_of_its_device_no_source_gives(device: str) -> None:
    answer = estimate(resolution({"model": "llama-3.2-1b", "device": device, "task": "inference"}, CATALOG))
    told = [note.message for note in answer.warnings if note.code == "figures-by-rule"]
    words = NO_SOURCE[device]
    assert told == ([f"no source gives {words}, with a wider range"] if words else [])

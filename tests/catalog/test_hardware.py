"""Figures of the device catalog against vendors' data sheets."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from llmfeas.catalog.device import BackendId
from llmfeas.catalog.hardware import find_hardware
from llmfeas.catalog.joined import Joined
from llmfeas.catalog.search import name_key
from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError

CATALOG = catalog()
DEVICES = CATALOG.devices
SOURCES = {name for file in ("hardware", "processors", "offers") for name in CATALOG.raw(file)["sources"]}


@pytest.mark.parametrize(
    ("text", "device", "count"),
    [
        ("rtx-4090 + 2xrtx-4090", "rtx-4090", 3),
        ("t4+t4", "t4", 2),
        *((f"{count} h100", "h100-sxm", count) for count in (2, 10, 12, 16, 24, 32)),
        ("16 macbook pro m3 max", "m3-max-40c", None),
        ("2023 macbook pro m3 pro", "m3-pro", None),
    ],
)
def test_devices_are_counted_as_written(text: str, device: str, count: int | None) -> None:
    found = find_hardware(text, CATALOG)
    assert (found.device.id, found.count) == (device, count)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("9xrtx-4090+9xrtx-3090", "unequal-devices", "18 unequal devices in one machine"),
        ("rtx-4090+strix-halo", "unequal-devices", "devices of different software"),
        ("m4-max+m3-ultra", "unequal-devices", "only cards with memory of their own"),
        ("g5.xlarge+rtx-4090", "unequal-devices", "a rented machine is not joined"),
        ("rtx-4090+rx-7900xtx", "unequal-devices", "devices of different software are not joined"),
        ("rtx-4090+nothing-like-it", "unknown-device", "unknown device"),
        ("+".join(["rtx-4090"] * 17), "unknown-device", "unknown device"),
    ],
)
def test_parts_that_no_machine_joins_are_refused(text: str, code: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        find_hardware(text, CATALOG)
    assert raised.value.code == code


def test_unequal_parts_are_one_machine_by_their_sums() -> None:
    machine = find_hardware("2x3090 + rtx-4060ti-16gb", CATALOG)
    parts = [DEVICES[name] for name in ("rtx-3090", "rtx-3090", "rtx-4060ti-16gb")]
    assert isinstance(machine.device, Joined) and machine.count == 3
    assert machine.device.id == "2xrtx-3090+rtx-4060ti-16gb"
    assert machine.device.parts == tuple(parts)
    assert machine.device.memory_gib * 3 == pytest.approx(24 + 24 + 16)
    assert (machine.device.power_w or 0) * 3 == pytest.approx(sum(part.power_w or 0 for part in parts))
    assert find_hardware(machine.device.id, CATALOG) == machine


def test_the_whole_catalog_is_there() -> None:
    assert len(DEVICES) >= 800
    assert len(CATALOG.offers) >= 300
    assert {device.backend for device in DEVICES.values()} == set(get_args(BackendId))


@pytest.mark.parametrize(
    ("key", "memory_gib", "bandwidth_gb_per_s", "bf16"),
    [
        ("rtx-4070ti", 12, 504.2, 80.18),
        ("rtx-4090", 24, 1008, 165.2),
        ("a100-sxm-80gb", 80, 2039, 311.9),
        ("h100-sxm", 80, 3350, 989.4),
        ("mi250x", 64, 1638.5, 191.5),
        ("mi300x", 192, 5300, 1307.4),
        ("tpu-v3", 16, 450, 61.5),
        ("tpu-v5e", 16, 819, 197),
    ],
)
def test_figures_of_data_sheets(key: str, memory_gib: float, bandwidth_gb_per_s: float, bf16: float) -> None:
    device = DEVICES[key]
    assert (device.memory_gib, device.bandwidth_gb_per_s) == (memory_gib, bandwidth_gb_per_s)
    assert device.tflop_per_s.bf16 == pytest.approx(bf16, rel=2e-3)


def test_links_are_per_direction() -> None:
    assert DEVICES["h100-sxm"].links[0].gb_per_s == 450
    assert DEVICES["a100-sxm-80gb"].links[0].gb_per_s == 300
    assert DEVICES["gb200"].devices_per_node == 72


def test_generations_mean_one_backend_and_every_device_has_one_of_them() -> None:
    generations = {**CATALOG.raw("hardware")["generations"], **CATALOG.raw("processors")["generations"]}
    for device in DEVICES.values():
        assert generations[device.generation]["backend"] == device.backend


def test_every_device_has_a_source_or_says_that_it_has_none() -> None:
    for device in DEVICES.values():
        assert device.sources or device.unverified, device.id
        for price in device.prices:
            assert price.source in SOURCES, device.id


def test_compute_capabilities_and_rocm_targets_are_well_formed() -> None:
    for device in DEVICES.values():
        if device.backend == "cuda":
            assert re.fullmatch(r"\d+\.\d", device.target), device.id
        if device.backend == "rocm":
            assert re.fullmatch(r"gfx[0-9a-f]+", device.target), device.id


def test_dates_are_iso() -> None:
    for device in DEVICES.values():
        assert re.fullmatch(r"\d{4}(-\d\d)?", device.released), device.id
        for price in device.prices:
            assert price.as_of is None or re.fullmatch(r"\d{4}-\d\d-\d\d", price.as_of), device.id


def test_offers_name_a_device_of_the_catalog() -> None:
    for offer in CATALOG.offers.values():
        assert offer.device in DEVICES


FIGURES = ("memory_gib", "bandwidth_gb_per_s", "tflop_per_s", "power_w", "cores", "clock_ghz", "memory_channels")


def test_every_figure_has_a_source_or_is_marked() -> None:
    for key, device in DEVICES.items():
        entry = DEVICES.raw(key)
        marked = {name.split(".")[0] for name in (*device.unverified, *device.by_rule)}
        without = [name for name in FIGURES if name in entry and name not in marked]
        assert device.sources or not without, (key, without)


def test_offers_have_a_dated_and_sourced_price_or_none_that_counts() -> None:
    for offer in CATALOG.offers.values():
        assert offer.tier == "free" or offer.sources or offer.usd_per_hour is None, offer.id
        assert offer.as_of is None or offer.sources[0] in SOURCES, offer.id
        assert offer.as_of is None or re.fullmatch(r"20\d\d-\d\d-\d\d", offer.as_of), offer.id
        assert offer.as_of is None or offer.usd_per_hour is not None, offer.id


@pytest.mark.parametrize("kind", ["devices", "offers"])
def test_every_name_means_its_own_entry(kind: str) -> None:
    for key, record in getattr(CATALOG, kind).items():
        for name in (key, *record.aliases, *record.default_for):
            found = find_hardware(name, CATALOG)
            if kind == "devices":
                assert (found.device.id, found.offer) == (key, None), name
            else:
                assert found.offer is not None and found.offer.id == key, name


def test_processors_of_a_class_stand_with_the_other_devices() -> None:
    """What is in the second file is only read by questions about processors."""
    first = set(DEVICES.first())
    for key, device in DEVICES.items():
        assert key in first or (device.backend == "cpu" and not device.representative), key
        assert key not in first or device.backend != "cpu" or not device.by_rule, key


def test_no_name_belongs_to_two() -> None:
    owners: dict[str, str] = {}
    for records in (DEVICES, CATALOG.offers):
        for key, record in records.items():  # type: ignore[attr-defined]
            for name in {name_key(name) for name in (key, *record.aliases, *record.default_for)}:
                assert owners.setdefault(name, key) == key, name


def test_a_machine_names_devices_that_it_is_sold_with() -> None:
    """Each is found by the machine's name and its own."""
    for key, device in DEVICES.items():
        for machine in device.machines:
            found = find_hardware(f"{machine} {key}", CATALOG)
            assert found.device.id == key, (machine, key)

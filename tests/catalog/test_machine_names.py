"""Machines as people type them, against a table that was written before any of them was tried."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.catalog.hardware import Hardware, find_hardware
from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.settle import resolution

CATALOG = catalog()
TABLE = Path(__file__).parents[1] / "data" / "machine_names.txt"


@dataclasses.dataclass(frozen=True)
class Row:
    """One name as typed, and what it means; None for the device: it is refused."""

    typed: str
    device: str | None
    count: int | None = None
    memory_gib: float | None = None
    offer: str | None = None


def rows() -> Iterator[Row]:
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            typed, device, *rest = line.split(" | ")
            count, memory, offer = (*(None if word == "-" else word for word in rest), None, None, None)[:3]
            yield Row(
                typed,
                None if device == "REFUSED" else device,
                None if count is None else int(count),
                None if memory is None else float(memory),
                offer,
            )


ROWS = tuple(rows())


def test_the_table_is_whole() -> None:
    assert len(ROWS) == 736
    assert len({row.typed for row in ROWS}) > 480


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.typed)
def test_a_typed_name_means_what_the_table_says(row: Row) -> None:
    if row.device is None:
        with pytest.raises(UsageError):
            find_hardware(row.typed, CATALOG)
        return
    found = find_hardware(row.typed, CATALOG)
    offer = None if found.offer is None else found.offer.id
    memory = found.memory_gib if row.memory_gib else row.memory_gib
    assert Row(row.typed, found.device.id, found.count, memory, offer) == row


@pytest.mark.parametrize("row", [row for row in ROWS if row.device], ids=lambda row: row.typed)
def test_what_was_taken_for_what_is_said_where_it_could_be_another(row: Row) -> None:
    found = find_hardware(row.typed, CATALOG)
    known = found.offer or found.device
    if found.others or found.memory_gib:
        assert found.note is not None
    if found.note is not None:
        assert known.id in found.note and all(other in found.note for other in found.others[:5])


@pytest.mark.parametrize(
    ("typed", "series"),
    [
        ("mac mini m7", ("m1", "m2", "m3", "m4", "m5", "m6")),
        ("macbook pro m7 max", ("m1", "m2", "m3", "m4", "m5", "m6")),
        ("rtx 4085", ("rtx-40",)),
        ("rtx 6090", ()),
        ("h300", ()),
        ("rx 7950 xtx", ("rx-79",)),
        ("ryzen 9 9999x", ()),
        ("i7-99999k", ()),
        ("arc b990", ()),
        ("mi450x", ("mi455x",)),
        ("p7.48xlarge", ()),
        ("p5.24xlarge", ("p5.",)),
        ("g5.3xlarge", ("g5.",)),
        ("xeon 9999", ()),
        ("raspberry pi 7", ("raspberry-pi",)),
        ("tpu v9", ("tpu-",)),
        ("gtx 580", ("gtx-",)),
        ("geforce 610m", ("gtx-",)),
        ("geforce gtx 780m", ("gtx-",)),
        ("geforce 210", ()),
        ("tesla m4", ("m40-",)),
        ("gpt2", ()),
        ("llama", ()),
        ("24gb", ()),
        ("16gb gpu", ()),
        ("quadro k2200", ("quadro-",)),
        ("cerebras", ()),
    ],
)
def test_what_is_unknown_is_met_with_nothing_of_another_series(typed: str, series: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        find_hardware(typed, CATALOG)
    assert all(candidate.startswith(series or "?") for candidate in caught.value.candidates)


@pytest.mark.parametrize(
    ("typed", "device", "memory_gib"),
    [("mac mini m4 16gb", "m4", 16), ("m3 max 64gb", "m3-max-40c", 64), ("raspberry pi 5 4gb", "raspberry-pi-5", 4)],
)
def test_a_size_in_the_name_sets_the_memory(typed: str, device: str, memory_gib: float) -> None:
    scenario = resolution({"model": "gpt2", "device": typed, "task": "inference"}, CATALOG).scenario
    assert (scenario.device.id, scenario.memory_bytes) == (device, memory_gib * 2**30)


def test_a_size_that_is_not_sold_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="no 'm4 20gb' is known with 20 GiB") as caught:
        find_hardware("m4 20gb", CATALOG)
    assert "16, 24, 32 GiB" in caught.value.hint and "--memory 20GiB" in caught.value.hint


def test_a_provider_in_the_name_is_whose_price_counts() -> None:
    scenario = resolution({"model": "gpt2", "device": "runpod 4090"}, CATALOG).scenario
    assert (scenario.device.id, scenario.price_provider) == ("rtx-4090", "runpod")
    unknown = resolution({"model": "gpt2", "device": "runpod 1080ti"}, CATALOG)
    assert unknown.scenario.price_usd_per_hour is None
    assert "no-price" in {warning.code for warning in unknown.warnings}


def test_the_typical_processor_is_said_to_be_assumed() -> None:
    taken = resolution({"model": "gpt2", "device": "cpu", "task": "inference"}, CATALOG)
    assert taken.scenario.device.backend == "cpu"
    assert "device-assumed" in {warning.code for warning in taken.warnings}


def test_a_part_of_a_device_has_a_part_of_its_figures() -> None:
    found, whole = find_hardware("g6f.xlarge", CATALOG), CATALOG.devices["l4"]
    assert found.offer is not None and found.offer.share == 0.125
    assert found.device.memory_gib == whole.memory_gib / 8
    assert found.device.bandwidth_gb_per_s == whole.bandwidth_gb_per_s / 8
    assert found.device.tflop_per_s.bf16 == pytest.approx((whole.tflop_per_s.bf16 or 0) / 8)


@pytest.mark.parametrize(
    ("typed", "device", "count"),
    [("v4-8", "tpu-v4", 4), ("v5e-8", "tpu-v5e", 8), ("v5litepod-16", "tpu-v5e", 16), ("v5p-16", "tpu-v5p", 8)],
)
def test_a_slice_of_a_pod_is_so_many_chips(typed: str, device: str, count: int) -> None:
    found = find_hardware(typed, CATALOG)
    assert (found.device.id, found.count) == (device, count)


def test_whole_machines_may_be_multiplied_by_number() -> None:
    assert find_hardware("2x p5.48xlarge", CATALOG).count == 16
    scenario = resolution({"model": "gpt2", "device": "p5.48xlarge", "num_devices": 24}, CATALOG).scenario
    assert (scenario.num_devices, scenario.devices_per_node) == (24, 8)
    with pytest.raises(UsageError, match="says 8 devices and --num-devices says 12"):
        resolution({"model": "gpt2", "device": "p5.48xlarge", "num_devices": 12}, CATALOG)


WORDS = sorted({word for row in ROWS for word in row.typed.split()})


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join))
def test_any_mix_of_words_is_found_or_refused(text: str) -> None:
    try:
        found = find_hardware(text, CATALOG)
    except UsageError as error:
        assert error.code in ("unknown-device", "ambiguous-device", "bad-quantity")
        assert all(name in CATALOG.devices or name in CATALOG.offers for name in error.candidates)
    else:
        assert isinstance(found, Hardware) and found.device.id in CATALOG.devices


@pytest.mark.parametrize(
    ("typed", "device", "host_gib"),
    [
        ("rtx 3090 64gb ram", "rtx-3090", 64),
        ("rtx 3090 24gb 64gb ram", "rtx-3090", 64),
        ("pc with rtx 4070 super and 32gb ddr5 ram", "rtx-4070-super", 32),
        ("2x rtx 3090 + 128gb ram", "rtx-3090", 128),
    ],
)
def test_main_memory_beside_a_card_is_the_machines(typed: str, device: str, host_gib: int) -> None:
    scenario = resolution({"model": "gpt2", "device": typed, "task": "inference"}, CATALOG).scenario
    assert (scenario.device.id, scenario.host_memory_bytes) == (device, host_gib * 2**30)


def test_a_number_alone_is_met_with_those_of_cards() -> None:
    with pytest.raises(UsageError) as caught:
        find_hardware("4095", CATALOG)
    assert next(iter(caught.value.candidates)) == "rtx-4090"


def test_a_number_behind_the_series_of_a_computer_brings_no_card_to_mind() -> None:
    with pytest.raises(UsageError) as caught:
        find_hardware("dell optiplex 3060", CATALOG)
    assert not caught.value.candidates


def test_what_stands_beside_a_card_is_said() -> None:
    assert "its processor, core-i9-13900k, changes nothing" in str(find_hardware("i9-13900k rtx 4090", CATALOG).note)


@pytest.mark.parametrize(
    "asked",
    [
        {"device": "dual epyc 9654 768gb"},
        {"device": "2x epyc 9654", "host_memory": "768GiB"},
        {"device": "2x epyc 9654", "memory": "384GiB"},
    ],
)
def test_the_memory_of_a_machine_is_that_of_all_its_processors(asked: dict[str, object]) -> None:
    settled = resolution({"model": "gpt2", "task": "inference", **asked}, catalog()).scenario
    assert (settled.device.id, settled.num_devices, settled.memory_bytes) == ("epyc-9654", 2, 384 * 2**30)


def test_memory_of_the_host_is_that_of_a_mac() -> None:
    asked = {"model": "gpt2", "task": "inference", "device": "m4-max", "host_memory": "128GiB"}
    assert resolution(asked, catalog()).scenario.memory_bytes == 128 * 2**30


@pytest.mark.parametrize(
    ("typed", "device", "compute", "memory"),
    [
        ("h100 mig 3g.40gb", "h100-sxm", 3 / 7, 4 / 8),
        ("a100 1g.5gb", "a100-sxm-40gb", 1 / 7, 1 / 8),
        ("NVIDIA A100 80GB MIG 2g.20gb", "a100-sxm-80gb", 2 / 7, 2 / 8),
        ("h200 1g.18gb", "h200", 1 / 7, 1 / 8),
        ("a30 2g.12gb", "a30", 2 / 4, 2 / 4),
        ("h100-sxm:1g.20gb", "h100-sxm", 1 / 7, 2 / 8),
    ],
)
def test_a_slice_has_its_parts_of_a_device(typed: str, device: str, compute: float, memory: float) -> None:
    found, whole = find_hardware(typed, CATALOG).device, CATALOG.devices[device]
    assert found.id.startswith(f"{device}:") and find_hardware(found.id, CATALOG).device == found
    assert found.memory_gib == pytest.approx(whole.memory_gib * memory)
    assert found.bandwidth_gb_per_s == pytest.approx(whole.bandwidth_gb_per_s * memory)
    assert found.peak16_flop_per_s == pytest.approx(whole.peak16_flop_per_s * compute)


@pytest.mark.parametrize(
    "typed",
    ["rtx 4090 1g.5gb", "h100 9g.40gb", "h100 7g.40gb", "a30 4g.12gb", "h100 1g.70gb", "mig 1g.10gb", "h100 3g.0gb"],
)
def test_what_is_divided_otherwise_has_no_such_slice(typed: str) -> None:
    with pytest.raises(UsageError):
        find_hardware(typed, CATALOG)


def test_others_of_a_name_in_one_word_have_that_word() -> None:
    assert set(find_hardware("p100", CATALOG).others) == {"p100-pcie-12gb", "p100-sxm2-16gb"}


@pytest.mark.parametrize(
    ("typed", "maker"), [("MetaX C500", "MetaX"), ("Groq LPU", "Groq"), ("Cerebras CS-3", "Cerebras")]
)
def test_an_accelerator_of_which_nothing_is_modelled_is_called_what_it_is(typed: str, maker: str) -> None:
    with pytest.raises(UsageError, match=f"an accelerator of {maker}") as caught:
        find_hardware(typed, catalog())
    assert caught.value.code == "unknown-device"

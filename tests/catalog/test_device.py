from __future__ import annotations

import pytest

from llmfeas.catalog.device import Device, Link, Rates
from llmfeas.catalog.store import catalog

DEVICES = catalog().devices


def device(**changes: object) -> Device:
    fields: dict[str, object] = {
        "id": "card",
        "name": "Card",
        "backend": "cuda",
        "vendor": "nvidia",
        "kind": "consumer",
        "generation": "ada",
        "memory_gib": 8,
        "memory_type": "GDDR6",
        "bandwidth_gb_per_s": 100,
        "tflop_per_s": Rates(fp32=10),
        **changes,
    }
    return Device(**fields)  # type: ignore[arg-type]


def test_units_are_gib_for_memory_and_gb_for_bandwidth() -> None:
    card = DEVICES["rtx-4070ti"]
    assert card.memory_bytes == 12 * 2**30
    assert card.bandwidth_bytes_per_s == pytest.approx(504.2e9)
    assert card.fp32_flop_per_s == pytest.approx(40.09e12)


@pytest.mark.parametrize(
    ("key", "precision", "tflop_per_s"),
    [
        ("rtx-4090", "bf16-mixed", 165.2),
        ("rtx-4090", "fp16-mixed", 165.2),
        ("rtx-4090", "fp8-mixed", 660.6),
        ("h100-sxm", "tf32", 494.7),
        ("t4", "fp16-mixed", 65.13),
        ("t4", "bf16-mixed", 65.13),
        ("t4", "tf32", 8.14),
        ("rx-6800", "fp16-mixed", 32.34),
        ("m1-max", "fp16-mixed", 10.6),
        ("gtx-1080", "fp16-mixed", 8.87),
        ("mi100", "bf16-mixed", 92.3),
        ("mi100", "fp16-mixed", 184.6),
        ("mi250x", "bf16-mixed", 191.5),
        ("tpu-v3", "bf16-mixed", 61.5),
        ("tpu-v5p", "fp32", 459 / 6),
    ],
)
def test_training_runs_at_the_rate_with_fp32_accumulation(key: str, precision: str, tflop_per_s: float) -> None:
    assert DEVICES[key].train_flop_per_s(precision) == pytest.approx(tflop_per_s * 1e12)


def test_geforce_is_known_by_its_rates() -> None:
    assert DEVICES["rtx-3090"].is_geforce_like
    assert not DEVICES["rtx-a6000"].is_geforce_like
    assert not DEVICES["gtx-1080"].is_geforce_like
    assert not DEVICES["h100-sxm"].is_geforce_like


def test_matrix_units_hbm_and_bf16_are_known_by_their_figures() -> None:
    assert DEVICES["t4"].has_matrix_units and not DEVICES["t4"].has_bf16
    assert not DEVICES["p100-pcie-16gb"].has_matrix_units and DEVICES["p100-pcie-16gb"].has_hbm
    assert not DEVICES["m4"].has_matrix_units and DEVICES["m4"].has_bf16
    assert DEVICES["tpu-v4"].has_matrix_units
    assert DEVICES["xeon-platinum-8480-plus"].has_matrix_units


def test_a_bridge_joins_two_and_no_more() -> None:
    card = device(links=(Link(kind="nvlink", gb_per_s=300, group=2), Link(kind="pcie", gb_per_s=31.5)))
    assert card.link_between(2) == card.links[0]
    assert card.link_between(4) == card.links[1]


def test_a_link_to_the_host_joins_no_devices() -> None:
    card = device(links=(Link(kind="nvlink-c2c", gb_per_s=450), Link(kind="ici", gb_per_s=None)))
    assert card.link_between(2) is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"tflop_per_s": Rates()}, "neither fp32 nor bf16"),
        ({"memory_reported_mib": 9000}, "above memory_gib"),
        ({"tflop_per_s": Rates(fp32=10, fp16_matrix=40, bf16=20, fp8=160)}, "sparsity"),
        ({"tflop_per_s": Rates(fp32=10, int8=50)}, "sparsity"),
        ({"tflop_per_s": Rates(fp32=10, bf16=20, tf32=20)}, "sparsity"),
    ],
)
def test_impossible_devices_are_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        device(**changes)


def test_devices_are_hashable_and_equal_by_value() -> None:
    assert device() == device()
    assert len({device(), device(), device(memory_gib=9)}) == 2


def test_8_bit_integers_have_matrix_units_where_they_are_faster_than_16_bits_there() -> None:
    with_units = {"t4", "rtx-3090", "rtx-5090", "h100-sxm", "a100-sxm-80gb"}
    without = {"p40", "gtx-1080ti", "gtx-1660ti", "v100-pcie-32gb", "titan-v"}
    assert {key for key in with_units | without if DEVICES[key].has_integer_matrix_units} == with_units

"""What a limit of its power leaves a device."""

from __future__ import annotations

import math
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas import UsageError, estimate
from llmfeas.catalog.device import Device
from llmfeas.catalog.limited import Limited, limited, speed_share
from llmfeas.catalog.store import catalog

TABLES = catalog().tables
PUBLISHED = {
    "RTX 3090, decoding, jankyai.droidgram.com": (
        "bandwidth",
        {0.5: 0.62, 0.534: 0.74, 0.571: 0.81, 0.643: 0.88, 0.714: 0.94, 0.757: 0.95, 0.8: 0.96, 0.857: 0.98},
    ),
    "6 x RTX 3090, decoding, llmgarage.ai": ("bandwidth", {0.571: 0.94, 0.714: 0.974, 0.857: 0.993}),
    "RTX 5060 Ti, decoding, inventivehq.com": ("bandwidth", {0.833: 0.99, 0.9: 1.0}),
    "6 x RTX 3090, prompts, llmgarage.ai": ("compute", {0.571: 0.60, 0.714: 0.853, 0.857: 0.943}),
    "RTX 3090, prompts, club-3090 issue 104": ("compute", {0.514: 0.80, 0.829: 1.0}),
    "RTX 3090, vit_base in tf32, blog.qwertyforce.dev": ("compute", {0.59: 0.815, 0.718: 0.92, 0.82: 0.97}),
    "RTX 3090, vit_base in fp32, blog.qwertyforce.dev": ("compute", {0.718: 0.82, 0.846: 0.92, 0.974: 0.97}),
    "4 x RTX 3090, training, pugetsystems.com": ("compute", {0.8: 0.95}),
}
"""Share of the board's power that was allowed: speed over that without a limit. From half of the power on."""

POWERED = [device for device in catalog().devices.values() if device.power_w]


def under(device: Device, share: float) -> Device:
    return limited(device, share * (device.power_w or 0.0), TABLES.power_limit, TABLES.power_shares)


def range_at(kind: str, share: float) -> tuple[float, float, float]:
    drawn = TABLES.power_shares[kind]
    low, expected, high = (
        speed_share(share, one, TABLES.power_limit) for one in (drawn.high, drawn.expected, drawn.low)
    )
    return low, expected, high


def test_published_speeds_of_limited_cards_are_met() -> None:
    found = [(range_at(kind, share), speed) for kind, rows in PUBLISHED.values() for share, speed in rows.items()]
    assert median(abs(expected / speed - 1) for (_, expected, _), speed in found) < 0.06
    assert sum(low <= speed <= high for (low, _, high), speed in found) >= 0.8 * len(found)


@given(st.sampled_from(POWERED), st.floats(0.26, 1.0), st.floats(0.26, 1.0))
def test_less_power_is_never_faster(device, one, other) -> None:
    less, more = (
        limited(device, share * device.power_w, TABLES.power_limit, TABLES.power_shares)
        for share in sorted((one, other))
    )
    assert less.peak16_flop_per_s <= more.peak16_flop_per_s * (1 + 1e-9)
    assert less.bandwidth_gb_per_s <= more.bandwidth_gb_per_s * (1 + 1e-9)
    if isinstance(less, Limited):
        assert less.unlimited is device
        assert all(0 < share.low <= share.expected <= share.high <= 1 for share in (less.compute, less.bandwidth))


def asked(**more):
    return estimate(model="llama-3-8b", device="rtx-3090", **more)


@pytest.mark.parametrize("task", ("inference", "qlora"))
def test_a_limit_slows_down_and_saves_power(task: str) -> None:
    plain, lower = asked(task=task), asked(task=task, power_limit=200)
    speeds = [
        (one.time.decode_tokens_per_second if task == "inference" else one.time.tokens_per_second)
        for one in (plain, lower)
    ]
    assert 0.5 < speeds[1].expected / speeds[0].expected < 0.95
    assert speeds[1].high / speeds[1].low > speeds[0].high / speeds[0].low
    if task == "qlora":
        assert lower.cost.energy_kwh.expected < 1.02 * plain.cost.energy_kwh.expected
    assert "power-limited" in {note.code for note in lower.warnings}
    assert lower.memory == plain.memory


def test_a_limit_that_the_board_does_not_reach_changes_nothing() -> None:
    plain, same = asked(task="inference"), asked(task="inference", power_limit=350)
    assert same.time == plain.time
    assert same.cost == plain.cost


def test_a_share_of_the_peak_is_one_of_the_whole_board() -> None:
    lower = asked(task="qlora", power_limit=200, micro_batch=1)
    rate = asked(task="qlora", micro_batch=1)
    assert math.isclose(
        lower.time.mfu.expected / rate.time.mfu.expected,
        lower.time.tokens_per_second.expected / rate.time.tokens_per_second.expected,
        rel_tol=1e-9,
    )


def test_too_little_power_is_refused() -> None:
    with pytest.raises(UsageError, match="does not run on so little"):
        asked(task="inference", power_limit=80)


def test_unequal_devices_have_no_one_limit() -> None:
    with pytest.raises(UsageError, match="of several kinds"):
        estimate(model="llama-3-8b", device="rtx-3090+rtx-4090", task="inference", power_limit=200)

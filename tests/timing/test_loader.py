"""Data that come in more slowly than devices train on them."""

from __future__ import annotations

from typing import Any

import pytest

from llmfeas.feasibility.explain import explanation
from llmfeas.planning.answer import bare_answer

ASK: dict[str, Any] = {"model": "gpt2", "device": "rtx-3090", "task": "pretrain", "tokens": "1B"}


def asked(**more: Any) -> Any:
    return bare_answer({**ASK, **more})


def test_a_loader_that_keeps_up_changes_nothing() -> None:
    assert asked(loader=1e12).to_dict()["result"] == asked().to_dict()["result"]


def test_a_slow_loader_is_the_speed_exactly_and_it_is_said() -> None:
    free, slow = asked(), asked(loader=5000)
    assert slow.time.tokens_per_second.expected == pytest.approx(5000)
    assert slow.time.tokens_per_second.high == pytest.approx(5000)
    assert slow.total_seconds.expected == pytest.approx(1e9 / 5000)
    assert (free.time.bound_by, slow.time.bound_by) == ("compute", "data")
    note = next(note for note in slow.warnings if note.code == "waits-for-data")
    assert "5 k tokens/s" in note.message


def test_a_loader_within_the_range_bounds_its_fast_end_alone() -> None:
    free = asked().time.tokens_per_second
    found = asked(loader=(free.expected + free.high) / 2).time
    assert found.tokens_per_second.expected == pytest.approx(free.expected)
    assert found.tokens_per_second.high == pytest.approx((free.expected + free.high) / 2)
    assert found.bound_by == "compute"


def test_tokens_are_read_from_the_storage_two_or_four_bytes_each() -> None:
    small = asked(device="64xh100-sxm", storage=0.001).time.tokens_per_second
    assert small.expected == pytest.approx(1e6 / 2)
    large = asked(model="qwen3-0.6b", device="64xh100-sxm", storage=0.001).time.tokens_per_second
    assert large.expected == pytest.approx(1e6 / 4)


def test_devices_that_wait_draw_less() -> None:
    free, slow = asked(), asked(loader=5000)
    longer = slow.total_seconds.expected / free.total_seconds.expected
    assert slow.cost.energy_kwh.expected < 0.7 * longer * free.cost.energy_kwh.expected


def test_a_share_of_the_peak_that_is_given_waits_too() -> None:
    found = asked(mfu=0.5, loader=5000)
    assert found.time.tokens_per_second.expected == pytest.approx(5000)
    assert found.time.bound_by == "data"


def test_the_derivation_gives_the_time_that_is_waited() -> None:
    terms = {term.quantity: term for term in explanation(asked(loader=5000))}
    assert terms["time.step_seconds"].formula == "loading"

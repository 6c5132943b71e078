"""Checkpoints and failures of trainings that go on for long."""

from __future__ import annotations

import math
from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.long_run import LongRun
from llmfeas.ranges import Range
from llmfeas.settle import resolution


def asked(**settings: Any) -> Any:
    return estimate(resolution(settings, catalog())).to_dict()["result"].get("long_run")


def run(writing: float, failure: float, restart: float = 900.0) -> LongRun:
    return LongRun(
        checkpoint_bytes=1e12,
        checkpoint_seconds=writing,
        failure_seconds=failure,
        restart_seconds=restart,
        work_seconds=Range(0.9e6, 1e6, 1.1e6),
    )


def test_the_interval_is_that_of_young_where_checkpoints_are_quick() -> None:
    assert run(2.0, 40_000.0).interval_seconds == pytest.approx((2 * 2.0 * 40_000) ** 0.5, rel=0.01)


def test_no_other_interval_leaves_more_useful_time() -> None:
    found = run(60.0, 20_000.0)

    def share(interval: float) -> float:
        wait = (interval + found.checkpoint_seconds) / found.failure_seconds
        lost = math.exp(found.restart_seconds / found.failure_seconds) * math.expm1(wait)
        return interval / (found.failure_seconds * lost)

    assert found.useful_share == pytest.approx(share(found.interval_seconds))
    assert all(share(found.interval_seconds * factor) < found.useful_share for factor in (0.5, 0.8, 1.25, 2.0))


def test_a_job_that_fails_faster_than_it_starts_never_ends() -> None:
    stuck = run(60.0, 1.0)
    assert stuck.total_seconds is None
    assert stuck.failures is None


def test_llama_3_on_16384_devices_was_useful_nine_tenths_of_the_time() -> None:
    found = asked(model="llama-3.1-405b", device="16384xh100-sxm", engine="megatron", tokens="15.6T", task="pretrain")
    assert found["failure_seconds"] == pytest.approx(54 * 86400 / 419, rel=0.01)
    assert found["useful_share"] == pytest.approx(0.9, abs=0.03)


def test_a_checkpoint_holds_masters_and_moments_but_no_frozen_weight() -> None:
    whole = asked(model="llama-3-8b", device="16xh100-sxm", engine="pytorch", precision="bf16-mixed", task="pretrain")
    assert whole["checkpoint_bytes"] == pytest.approx(12 * 8.03e9, rel=0.01)
    adapters = asked(model="llama-3-8b", device="h100-sxm", task="lora", lora_rank=16, mtbf="30d")
    assert adapters["checkpoint_bytes"] == pytest.approx(12 * 42e6, rel=0.05)


def test_one_machine_counts_failures_only_where_it_is_asked() -> None:
    ask: dict[str, Any] = {"model": "llama-3-8b", "device": "8xh100-sxm", "task": "finetune"}
    assert asked(**ask) is None
    slow, fast = asked(**ask, mtbf="100d", storage=0.5), asked(**ask, mtbf="100d", storage=5)
    assert slow["checkpoint_seconds"] == pytest.approx(10 * fast["checkpoint_seconds"])
    assert slow["useful_share"] < fast["useful_share"] < 1


def test_a_training_knows_what_it_takes_with_failures_and_without() -> None:
    found = estimate(resolution({"model": "llama-3-8b", "device": "64xh100-sxm", "task": "pretrain"}, catalog()))
    result = found.to_dict()["result"]
    assert result["long_run"]["work_seconds"] == result["time"]["total_seconds"]
    assert result["long_run"]["total_seconds"]["expected"] > result["time"]["total_seconds"]["expected"]


@pytest.mark.parametrize("bad", [{"mtbf": "0h"}, {"mtbf": "1s"}, {"storage": 0}, {"mtbf": 0}])
def test_devices_that_always_fail_and_storage_that_takes_nothing_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        resolution({"model": "gpt2", "device": "rtx-4090", **bad}, catalog())


def test_the_screen_says_how_much_of_the_time_is_useful() -> None:
    from llmfeas.render.pages.long_run import failure_topics

    found = asked(model="llama-3-8b", device="64xh100-sxm", task="pretrain")
    (topic,) = failure_topics(found)
    text = " ".join(phrase.text for line in topic.paragraphs for phrase in line)
    assert "useful" in text.replace("\u00a0", " ")
    assert not failure_topics(None)


@pytest.mark.parametrize(("device", "hosts"), [("72xgb200", 9), ("v5p-1024", 64), ("64xh100-sxm", 8)])
def test_hosts_of_a_rack_or_pod_fail_and_write_each_by_itself(device: str, hosts: int) -> None:
    """One domain of links is not one machine to a failure, nor to storage."""
    settled = resolution({"model": "llama-3-70b", "device": device, "task": "pretrain", "tokens": "1T"}, catalog())
    assert estimate(settled).long_run is not None and settled.scenario.storage_gb_per_s == hosts

"""The verdict joins memory, time, budget and software; the worst wins."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.result import Estimate
from llmfeas.settle import resolution


def found(model: str, device: str, **request: object) -> Estimate:
    return estimate(resolution({"model": model, "device": device, **request}, catalog()))


def reasons(answer: Estimate) -> set[str]:
    return {reason.code for reason in answer.verdict.reasons}


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        ({"model": "gpt2-xl", "device": "rtx-4070ti"}, "infeasible", "memory-exceeds"),
        ({"model": "gpt2-xl", "device": "rtx-4070ti", "task": "qlora"}, "feasible", "memory-fits"),
        ({"model": "gpt2", "device": "rtx-4070ti", "deadline": "1h"}, "infeasible", "over-deadline"),
        ({"model": "gpt2", "device": "rtx-4070ti", "price": 1, "budget": 1}, "infeasible", "over-budget"),
        ({"model": "llama-3-8b", "device": "h200", "zero": 0}, "infeasible", "impractical"),
        (
            {"model": "llama-2-7b", "device": "tpu-v5p", "task": "qlora", "engine": "pytorch"},
            "unsupported",
            "software-unsupported",
        ),
        ({"model": "gpt2", "device": "kaggle-2xt4", "tokens": 3e10, "micro_batch": 2}, "feasible", "weekly-hours"),
        (
            {"model": "gpt2-xl", "device": "rtx-4090", "offload": "all", "host_memory": "4GiB"},
            "infeasible",
            "host-memory-exceeds",
        ),
    ],
)
def test_each_judgement_has_its_reason(request_: dict[str, object], status: str, code: str) -> None:
    answer = found(**request_)  # type: ignore[arg-type]
    assert code in reasons(answer)
    assert answer.verdict.status == status


def test_without_a_price_the_budget_is_not_judged() -> None:
    answer = found("gpt2", "rx-6900xt", budget=1)
    assert answer.verdict.budget == "not_asked"
    assert "no-price" in reasons(answer)


def test_tight_means_the_expected_peak_fits_and_the_high_end_does_not() -> None:
    answer = found("gpt2", "rtx-4070ti", micro_batch=4)
    peak = answer.memory.peak_bytes
    for memory_bytes, verdict in ((peak.low, "exceeds"), (peak.expected * 1.05, "tight"), (peak.high * 1.05, "fits")):
        assert found("gpt2", "rtx-4070ti", micro_batch=4, memory=memory_bytes / 0.97).memory.verdict == verdict


def test_every_component_is_in_the_peak() -> None:
    for task in ("pretrain", "finetune", "lora", "qlora", "inference"):
        memory = found("llama-3-8b", "rtx-4090", task=task).memory
        assert sum(memory.components.values()) == pytest.approx(memory.peak_bytes.expected, rel=1e-9)


def test_copies_of_a_server_say_what_each_has_room_for() -> None:
    asked = {"task": "inference", "engine": "vllm", "tp": 1, "pp": 1, "context": 4096}
    one = found("llama-3-8b", "h100-sxm", **asked, concurrency=200).verdict.reasons[0].message
    eight = found("llama-3-8b", "8xh100-sxm", **asked, concurrency=1600).verdict.reasons[0].message
    assert one.startswith("the cache has room for 109 of 200 requests")
    assert eight.startswith("the cache of each of the 8 copies of the model has room for 109 of 200 requests")

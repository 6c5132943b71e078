"""Ranges where nobody named the release of an engine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.catalog.store import catalog
from llmfeas.ranges import Range
from llmfeas.settle import resolution
from llmfeas.timing.inference import InferenceTime, inference_time
from llmfeas.workload.serving import graphed_tokens

ASKED: dict[str, object] = {"model": "llama-3-8b", "task": "inference", "quant": "q4_k_m", "context": 1024}


def speeds(**more: object) -> InferenceTime:
    return inference_time(resolution({**ASKED, **more}, catalog()).scenario)


def test_who_names_no_build_gets_a_low_end_that_holds_older_ones() -> None:
    plain, today, before = (
        speeds(device="rtx-3090", **more)
        for more in ({"engine": "llama.cpp"}, {"engine": "llama.cpp-2025"}, {"engine": "llama.cpp-2023"})
    )
    for name in ("decode_tokens_per_second", "prefill_tokens_per_second"):
        unsaid, new, old = (getattr(each, name) for each in (plain, today, before))
        assert unsaid.expected == new.expected > old.expected
        assert old.low < unsaid.low < new.low
        assert unsaid.high < new.high
    assert speeds(device="rtx-3090", engine="llama.cpp", engine_version="b7000") == today


def test_where_builds_do_not_differ_nothing_widens() -> None:
    assert speeds(device="rtx-3090", engine="vllm", quant="none") == speeds(
        device="rtx-3090", engine="vllm", quant="none", engine_version="0.19.0"
    )
    assert speeds(device="rx-7900-xtx", engine="llama.cpp-vulkan").prefill_tokens_per_second.low > 0


@given(st.floats(1, 1e4), st.floats(1.01, 3), st.floats(0.3, 1), st.floats(1.01, 3), st.floats(0, 1))
def test_a_mixture_lies_between_its_parts(mean: float, width: float, slower: float, other: float, share: float) -> None:
    one, two = Range.around(mean, width), Range.around(mean * slower, other)
    mixed = one.mixed(two, share)
    assert min(one.low, two.low) * 0.999 <= mixed.low <= mixed.expected == mean <= mixed.high
    assert mixed.high <= max(one.high, two.high) * 1.001
    assert one.mixed(one, share) == one
    assert one.mixed(two, 0.0).low == pytest.approx(one.low, rel=1e-3)


@pytest.mark.parametrize(
    ("device", "more", "graphed"),
    [
        ("h100-sxm", {}, True),
        ("h100-sxm", {"engine_version": "0.5.9"}, False),
        ("h100-sxm", {"enforce_eager": True}, False),
        ("h100-sxm", {"num_devices": 2, "pp": 2}, False),
        ("mi300x", {}, False),
    ],
)
def test_sglang_starts_short_prompts_sooner_where_it_has_graphs_of_them(
    device: str, more: dict[str, object], graphed: bool
) -> None:
    """By default since 0.5.10 on CUDA, for plain models; else the host starts each kernel."""
    asked: dict[str, object] = {"model": "llama-3.1-8b", "engine": "sglang", "prompt": 300, "concurrency": 1}
    scenario = resolution({**asked, "device": device, **more}, catalog()).scenario
    assert bool(graphed_tokens(scenario)) is graphed

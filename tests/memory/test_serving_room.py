"""The room that servers find for their cache: what start-up logs print, what they refuse, which settings matter."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmfeas.catalog.engine import Engine
from llmfeas.catalog.serving_pool import NEWEST, release
from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.result import Estimate
from llmfeas.planning.solve.settings import max_batch, max_context
from llmfeas.settle import resolution
from llmfeas.timing.served import limits_of
from llmfeas.units import GIB

H100: dict[str, object] = {"device": "h100-sxm", "task": "inference", "engine": "vllm", "context": 8192}
LOGGED: dict[str, object] = {**H100, "gpu_memory_utilization": 0.95, "engine_version": "0.19.0"}


def asked(**request: object) -> Estimate:
    return estimate(resolution(request, catalog()))


def room(**request: object) -> Any:
    found = asked(**request).serving
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("more", "pool_gib", "requests"),
    [
        ({"model": "llama-3.1-8b"}, 58.11, 58.11),
        ({"model": "llama-3.1-8b", "kv_dtype": "fp8"}, 58.11, 116.21),
        ({"model": "llama-3.1-8b", "num_devices": 4, "tp": 4}, 67.44, 269.75),
        ({"model": "qwen2.5-72b", "num_devices": 2, "tp": 2}, 3.04, 2.43),
        ({"model": "qwen3-30b-a3b"}, 15.41, 20.54),
        ({"model": "deepseek-v2-lite"}, 43.61, 183.78),
        ({"model": "gemma-2-27b"}, 20.59, 7.16),
        ({"model": "gpt-oss-20b", "num_devices": 4, "tp": 4}, 66.57, 709.4),
        ({"model": "mixtral-8x7b", "num_devices": 2, "tp": 2}, 28.44, 56.88),
    ],
    ids=lambda value: str(value),
)
def test_vllm_prints_the_same_pool(more: dict[str, object], pool_gib: float, requests: float) -> None:
    """Start-up logs of vLLM 0.19.0 on H100 (llm-d-planner)."""
    found = room(**{**LOGGED, **more})
    assert found.starts
    assert found.kv_pool_bytes.expected / GIB == pytest.approx(pool_gib, rel=0.02)
    assert found.kv_pool_bytes.low < pool_gib * GIB < found.kv_pool_bytes.high
    assert found.requests_at_once.expected == pytest.approx(requests, rel=0.02)
    assert found.kv_pool_tokens.expected == pytest.approx(8192 * requests, rel=0.02)


@pytest.mark.parametrize(
    ("more", "pool_gib"),
    [
        (
            {"model": "qwen3-14b", "device": "h100-sxm", "engine_version": "0.16.0", "gpu_memory_utilization": 0.95},
            41.94,
        ),
        (
            {"model": "qwen3-14b", "device": "h100-sxm", "engine_version": "0.17.0", "gpu_memory_utilization": 0.95},
            45.34,
        ),
        ({"model": "qwen3-30b-a3b", "device": "h100-sxm", "engine_version": "0.10.2"}, 8.68),
        ({"model": "llama-3-8b", "device": "h200", "engine_version": "0.11.2"}, 105.97),
        (
            {
                "model": "qwen3-30b-a3b",
                "device": "h100-sxm",
                "engine_version": "0.22.1",
                "quant": "fp8",
                "max_num_seqs": 64,
            },
            42.54,
        ),
    ],
    ids=lambda value: str(value),
)
def test_a_release_has_its_own_defaults_and_its_own_pass(more: dict[str, object], pool_gib: float) -> None:
    """Logs of five sources; none but the first two was looked at when the figures were set."""
    found = room(**{**H100, **more})
    assert found.kv_pool_bytes.expected / GIB == pytest.approx(pool_gib, rel=0.02)


def test_layers_are_padded_to_groups_as_logs_count_blocks() -> None:
    """Gemma 3 27B: 10 whole layers and 52 windowed ones in groups of 10; 4.46 requests on 20.97e9 bytes."""
    found = room(**LOGGED, model="gemma-3-27b")
    blocks = 512 + 6 * 513
    assert found.request_bytes == pytest.approx(10 * blocks * 16 * 2 * 16 * 128 * 2)


def test_kernels_pad_the_parts_of_an_expert_and_no_whole_one() -> None:
    """vLLM's kernels for mxfp4 want widths in steps of 256: of 3072 eight ranks have 384 each, which become 512."""
    ask = {"model": "kimi-k3", "device": "8xb300", "task": "inference", "engine": "vllm"}
    cut, whole = (asked(**ask, **more) for more in ({}, {"ep": 8}))
    assert cut.verdict.status == "infeasible" and whole.verdict.status == "feasible"
    routed = 92 * 896 * 3 * 3584 * 3072 * 4.25 / 8 / 8
    more = cut.memory.components["weights_bytes"] - whole.memory.components["weights_bytes"]
    assert more == pytest.approx(routed / 3, rel=0.01)


def test_a_windowed_layer_has_room_for_its_window_and_a_pass() -> None:
    """gpt-oss-120b at 131072 tokens in passes of 1024: 4.54 GiB, as vLLM 0.11 prints (issue 27508)."""
    found = room(
        **{**H100, "context": 131072}, model="gpt-oss-120b", max_num_batched_tokens=1024, engine_version="0.11.0"
    )
    assert found.request_bytes / GIB == pytest.approx(4.54, abs=0.005)


def test_where_no_request_fits_the_server_refuses_to_start() -> None:
    answer = asked(**H100, model="llama-3.3-70b", quant="fp8")
    assert answer.serving is not None
    assert not answer.serving.starts
    assert (answer.verdict.status, answer.verdict.memory) == ("infeasible", "exceeds")
    (why,) = (note for note in answer.verdict.reasons if note.code == "server-refuses")
    assert "vLLM refuses to start" in why.message
    assert "one request of 8192 tokens needs 2.5 GiB" in why.message


def test_more_than_is_free_is_refused() -> None:
    answer = asked(**H100, model="llama-3.1-8b", gpu_memory_utilization=1)
    assert "are free at most" in answer.verdict.reasons[0].message
    older = asked(**H100, model="llama-3.1-8b", gpu_memory_utilization=1, engine_version="0.7.2")
    assert older.verdict.memory != "exceeds"


def test_near_the_end_of_the_card_it_may_run_out_later() -> None:
    """gpt-oss-20b at 0.95: the pool is made, then the sampler's warm-up fails; at 0.90 it serves."""
    near = asked(**LOGGED, model="gpt-oss-20b")
    assert near.verdict.status == "tight"
    assert [note.code for note in near.verdict.reasons] == ["memory-fits", "server-cramped"]
    assert asked(**{**LOGGED, "gpu_memory_utilization": 0.9}, model="gpt-oss-20b").verdict.status == "feasible"


def test_over_pcie_what_communication_takes_is_not_sure_enough_to_refuse() -> None:
    """Two RTX 3090 at 0.95 served Kimi Linear under vLLM 0.11 (issue 28228), on H100s the like is refused."""
    pair = {"task": "inference", "engine": "vllm", "num_devices": 2, "gpu_memory_utilization": 0.95}
    unsure = asked(**pair, device="rtx-3090", model="llama-3.1-8b")
    assert [note.code for note in unsure.verdict.reasons] == ["memory-fits", "server-cramped"]
    assert "may refuse to start" in unsure.verdict.reasons[1].message
    refused = asked(**{**pair, "gpu_memory_utilization": 0.99}, device="h100-sxm", model="llama-3.1-8b")
    assert refused.verdict.memory == "exceeds"


def test_the_sure_share_is_one_that_nothing_speaks_against() -> None:
    asks = {"task": "inference", "engine": "vllm", "num_devices": 2, "device": "t4", "model": "qwen2.5-7b"}
    room = asked(**asks).serving
    assert room is not None and room.doubt is not None and room.sure_share is not None
    sure = asked(**asks, gpu_memory_utilization=room.sure_share)
    assert sure.verdict.status == "feasible"
    more = asked(**asks, gpu_memory_utilization=room.sure_share + 0.01)
    assert more.verdict.status == "tight"


def test_sglang_lets_in_no_more_requests_than_it_has_states_for() -> None:
    """Answers of 1024 tokens to 8192 at 2.08 thousand tokens/s and 27.8 ms a token: 57 were written at once on
    an H200 by Qwen3.6 35B-A3B, half of what its cache has room for (SGLang's cookbook, 2026-08).
    """
    hybrid = {"model": "qwen3.6-35b-a3b", "device": "h200", "task": "inference", "engine": "sglang"}
    hybrid |= {"gpu_memory_utilization": 0.8, "quant": "none"}
    short, long = (room(**hybrid, context=context) for context in (512, 9216))
    assert short.most_at_once == long.most_at_once == short.requests_at_once.expected
    assert 57 <= long.requests_at_once.expected <= 90
    assert room(**{**hybrid, "model": "qwen3-30b-a3b"}, context=512).requests_at_once.expected > 1000


def test_sglang_sets_a_share_aside_by_its_own_rule() -> None:
    served = {"model": "llama-3.1-8b", "task": "inference", "engine": "sglang"}
    share = resolution({**served, "device": "h100-sxm"}, catalog()).scenario.gpu_memory_utilization
    assert share == pytest.approx(0.83, abs=0.005)
    measured = {"model": "deepseek-r1", "device": "h200", "num_devices": 8, "tp": 8, "quant": "fp8", "kv_dtype": "bf16"}
    found = room(**{**served, **measured, "mem_fraction_static": 0.82, "chunked_prefill_size": 32768})
    assert found.kv_pool_tokens.expected == pytest.approx(509_000, rel=0.05)


def test_settings_of_servers_choose_one_and_are_refused_by_others() -> None:
    plain = {"model": "llama-3.1-8b", "device": "rtx-4090", "task": "inference"}
    assert resolution({**plain, "gpu_memory_utilization": 0.8}, catalog()).scenario.engine == "vllm"
    for name, value in {"gpu_memory_utilization": 0.8, "max_num_seqs": 8, "enforce_eager": True}.items():
        with pytest.raises(UsageError, match=r"is no setting of llama.cpp") as caught:
            resolution({**plain, "engine": "llama.cpp", name: value}, catalog())
        assert "vllm" in caught.value.candidates
    assert (
        resolution({**plain, "engine": "llama.cpp", "enforce_eager": False}, catalog()).scenario.enforce_eager is None
    )
    assert asked(**plain, engine="llama.cpp").serving is None


@pytest.mark.parametrize("value", [0, -0.1, 1.01, 92, "most"])
def test_a_share_lies_between_nothing_and_all(value: object) -> None:
    with pytest.raises(UsageError, match="--gpu-memory-utilization"):
        resolution({**H100, "model": "llama-3.1-8b", "gpu_memory_utilization": value}, catalog())


def test_a_pass_has_a_token_for_each_request() -> None:
    with pytest.raises(UsageError, match="has no token for each"):
        resolution(
            {**H100, "model": "gpt2", "context": 512, "max_num_batched_tokens": 64, "max_num_seqs": 65}, catalog()
        )


def test_requests_are_limited_by_what_the_server_was_told() -> None:
    asked_for = {**H100, "model": "llama-3.1-8b", "max_num_seqs": 8}
    assert room(**asked_for).requests_at_once.expected == 8
    waiting = asked(**asked_for, concurrency=9)
    assert "runs fewer requests at once" in waiting.verdict.reasons[0].message
    assert max_batch(asked_for, catalog()).answer == {"concurrency": 8}


def test_what_is_solved_is_what_the_room_holds() -> None:
    served = {**H100, "model": "llama-3.1-8b", "context": 32768}
    most = max_batch(served, catalog()).answer["concurrency"]
    assert most == int(room(**served).requests_at_once.expected)
    longest = max_context({name: value for name, value in served.items() if name != "context"}, catalog())
    tokens = longest.answer["context"]
    assert room(**{**H100, "model": "llama-3.1-8b", "context": tokens}).starts
    assert not room(**{**H100, "model": "llama-3.1-8b", "context": int(str(tokens)) + 16}).starts


@given(
    share=st.floats(0.3, 0.98),
    more=st.floats(0.0, 0.02),
    tokens=st.sampled_from([2048, 8192, 32768]),
    sequences=st.sampled_from([16, 256, 2048]),
    model=st.sampled_from(["llama-3.1-8b", "qwen3-30b-a3b", "gemma-3-12b", "qwen3-next-80b-a3b", "gpt-oss-20b"]),
    engine=st.sampled_from(["vllm", "sglang", "tensorrt-llm", "lmdeploy"]),
)
@settings(deadline=None, max_examples=60)
def test_a_larger_share_never_leaves_less_and_a_wider_pass_never_more(
    share: float, more: float, tokens: int, sequences: int, model: str, engine: str
) -> None:
    base = {**H100, "device": "h200", "model": model, "engine": engine, "max_num_seqs": sequences}
    at = room(**base, gpu_memory_utilization=share, max_num_batched_tokens=tokens)
    pools = (at.kv_pool_bytes, at.kv_pool_tokens, at.requests_at_once)
    assert all(0 <= each.low <= each.expected <= each.high for each in pools)
    assert at.starts == (at.refusal is None)
    larger = room(**base, gpu_memory_utilization=share + more, max_num_batched_tokens=tokens)
    assert larger.kv_pool_bytes.expected >= at.kv_pool_bytes.expected
    wider = room(**base, gpu_memory_utilization=share, max_num_batched_tokens=2 * tokens)
    assert wider.kv_pool_bytes.expected <= at.kv_pool_bytes.expected


def test_releases_are_compared_by_their_numbers() -> None:
    assert release("0.8.5.post1") == (0, 8, 5) < release("v0.19.0") < release("0.22") < release("1.0rc1")
    assert release("nightly") == release("") == NEWEST
    told = resolution({**H100, "model": "gpt2", "context": 512, "engine_version": "nightly"}, catalog()).warnings
    assert [note.code for note in told] == ["unknown-release"]


def test_every_share_has_an_end_and_a_rule() -> None:
    engines: list[Engine] = [engine for engine in catalog().engines.values() if engine.serving.memory.pool is not None]
    assert {"vllm", "sglang", "tensorrt-llm", "lmdeploy"} <= {engine.id for engine in engines}
    for engine in engines:
        pool = engine.serving.memory.pool
        assert pool is not None
        assert (pool.share is None) == (pool.reserve is not None)
        for steps in (pool.tokens, pool.sequences, pool.captured):
            assert steps[0].from_gib == 0
        assert [release(each.before) for each in pool.releases] == sorted(
            (release(each.before) for each in pool.releases), reverse=True
        )


def test_a_release_that_nobody_named_may_be_an_older_one() -> None:
    """The pass of 0.16 samples 1024 rows in 36 bytes a logit, and gpt-oss-120b had no room (vLLM issue 27508)."""
    large = {"model": "gpt-oss-120b", "gpu_memory_utilization": 0.95, "max_num_batched_tokens": 1024}
    found = asked(**{**H100, **large, "context": 131072})
    assert found.serving is not None and found.serving.starts
    assert found.verdict.memory == "tight"
    assert "would refuse to start" in found.verdict.reasons[-1].message
    assert asked(**H100, model="llama-3.1-8b").verdict.memory == "fits"
    unnamed, named = (room(**{**H100, **said}, model="llama-3.1-8b") for said in ({}, {"engine_version": "0.30"}))
    assert named.kv_pool_bytes.expected == unnamed.kv_pool_bytes.expected
    assert unnamed.kv_pool_bytes.low < named.kv_pool_bytes.low


@pytest.mark.parametrize(
    ("engine", "said", "meant"),
    [
        ("vllm", "2025-04", "0.8.5"),
        ("vllm", "2025-04-27", "0.8.0"),
        ("vllm", "2022-01", "0.1.0"),
        ("vllm", "2025", "0.11.0"),
        ("vllm", "0.19", "0.19"),
        ("llama.cpp", "2024-05", "b1"),
        ("llama.cpp", "2025-11", "b5780"),
        ("sglang", "2025-11", "0.4.10"),
        ("lmdeploy", "2025-11", "2025-11"),
    ],
)
def test_a_date_is_the_release_of_that_time(engine: str, said: str, meant: str) -> None:
    assert catalog().engines[engine].release_at(said) == meant
    assert all(list(each.released) == sorted(each.released) for each in catalog().engines.values())


def test_a_release_may_be_asked_by_its_month() -> None:
    dated, named = (room(**H100, model="gpt-oss-20b", engine_version=said) for said in ("2025-11", "0.11.0"))
    assert dated == named


SMALL: dict[str, object] = {"task": "inference", "engine": "vllm", "engine_version": "0.12.0", "quant": "awq-int4"}


@pytest.mark.parametrize(("device", "tokens", "pool_gib"), [("rtx-5090", 8192, 8.76), ("rtx-5060-ti-16gb", 8192, 2.15)])
def test_vllm_leaves_room_for_the_images_that_make_the_tokens_of_a_pass(
    device: str, tokens: int, pool_gib: float
) -> None:
    """Logs of arXiv 2601.09527 print these pools; Gemma 3 27B on the larger card, 12B on the smaller one."""
    model = "gemma-3-27b" if device == "rtx-5090" else "gemma-3-12b"
    asked = {**SMALL, "model": model, "device": device, "gpu_memory_utilization": 0.9, "context": 4096}
    found = room(**asked, max_num_batched_tokens=tokens, max_num_seqs=8).kv_pool_bytes
    assert found.low < pool_gib * GIB < found.high
    fewer = room(**asked, max_num_batched_tokens=tokens // 4, max_num_seqs=8).kv_pool_bytes
    assert fewer.expected > found.expected + GIB


def test_what_rocm_takes_beside_tensors_is_known_less_well() -> None:
    same = {"model": "llama-3.1-8b", "task": "inference", "engine": "vllm", "engine_version": "0.13", "quant": "none"}
    here, there = (room(**same, device=each).kv_pool_bytes for each in ("rtx-5000-ada", "r9700"))
    assert there.high - there.low > 2 * (here.high - here.low)


def test_a_load_holds_the_window_of_a_windowed_layer_and_no_more() -> None:
    """A server of vLLM 0.12 with 43.6 k tokens by its log ran 8 requests of 8.7 k tokens in 42 % of them."""
    asked = {**SMALL, "model": "gemma-3-12b", "quant": "nvfp4", "device": "rtx-5090", "max_num_seqs": 8}
    load = {"prompt": 8192, "output": 512, "concurrency": 8, "max_num_batched_tokens": 8192, "context": 9216}
    scenario = resolution({**asked, **load, "gpu_memory_utilization": 0.9}, catalog()).scenario
    printed = room(**asked, **load, gpu_memory_utilization=0.9).kv_pool_tokens.expected
    assert 8 * 8448 / limits_of(scenario).kv_pool_tokens == pytest.approx(0.42, abs=0.06)
    assert printed < 8 * 8448

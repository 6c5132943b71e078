"""Experts that stay in main memory: what device and host hold, how fast it writes, what cannot be asked."""

from __future__ import annotations

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.explain import explanation
from llmfeas.feasibility.result import Estimate
from llmfeas.planning.launch import launch, launcher
from llmfeas.settle import resolution
from llmfeas.timing.inference import InferenceTime

ASK = {"model": "gpt-oss-120b", "device": "rtx-3090", "task": "inference", "host_memory": "64GiB"}
GIB = 2**30


def served(**changes: object) -> Estimate:
    return estimate(resolution({**ASK, **changes}, catalog()))


def written(found: Estimate) -> float:
    assert isinstance(found.time, InferenceTime)
    return found.time.decode_tokens_per_second.expected


def codes(**changes: object) -> set[str]:
    return {note.code for note in resolution({**ASK, **changes}, catalog()).warnings}


def test_device_and_host_hold_the_weights_together() -> None:
    found = [served(n_cpu_moe=layers, engine="llama.cpp").memory for layers in (0, 12, 36)]
    weights = [each.components["weights_bytes"] + each.host_bytes for each in found]
    assert weights == pytest.approx([weights[0]] * 3)
    first, some, all_of_them = (each.host_bytes / GIB for each in found)
    # 36 layers of 128 experts of 3 x 2880 x 2880 weights of 4.25 bits
    assert all_of_them - first == pytest.approx(36 * 128 * 3 * 2880**2 * 4.25 / 8 / GIB, rel=0.01)
    assert some - first == pytest.approx((all_of_them - first) / 3)


def test_people_get_25_to_33_tokens_a_second_of_gpt_oss_120b_beside_24_gb() -> None:
    assert 25 < written(served(n_cpu_moe=26)) < 33


def test_experts_in_slower_memory_are_slower_and_fewer_of_them_are_faster() -> None:
    speeds = [written(served(n_cpu_moe=layers)) for layers in (36, 30, 24)]
    assert speeds == sorted(speeds)
    slow, fast = (written(served(n_cpu_moe=36, host_bandwidth=each)) for each in (51.2, 96))
    assert slow < fast < 96 / 51.2 * slow


def test_more_memory_than_two_channels_hold_is_that_of_a_server() -> None:
    desk, server = (written(served(n_cpu_moe=36, host_memory=size)) for size in ("256GiB", "512GiB"))
    assert server > 1.3 * desk


def test_an_engine_for_servers_and_experts_that_no_desk_holds_are_beside_the_memory_of_a_server() -> None:
    assert written(served(engine="ktransformers")) > 1.3 * written(served(n_cpu_moe=36))
    large = {"model": "deepseek-r1", "device": "rtx-5090", "quant": "q2_k", "n_cpu_moe": 58, "host_memory": None}
    assert 12 < written(served(**large)) < 24  # ik_llama.cpp discussion 258: 18 beside eight channels


def test_many_heads_on_one_latent_wait_for_their_products_behind_a_long_cache() -> None:
    asked = {"model": "deepseek-r1", "device": "rtx-5090", "quant": "q2_k", "n_cpu_moe": 58, "host_bandwidth": 358}
    short, long = (served(**asked, prompt=tokens, context=tokens + 128) for tokens in (128, 32256))
    more = 1 / written(long) - 1 / written(short)
    assert 0.008 < more < 0.04  # the same discussion: 26 ms, where the bytes of the cache take 2


def test_a_prompt_brings_the_experts_over() -> None:
    reading = [served(n_cpu_moe=layers, prompt=2048).time for layers in (0, 36)]
    assert all(isinstance(time, InferenceTime) for time in reading)
    fast, slow = (time.prefill_tokens_per_second.expected for time in reading)  # type: ignore[union-attr]
    assert slow < fast / 2


def prompts(**changes: object) -> float:
    """Prompt tokens a second."""
    found = served(**changes).time
    assert isinstance(found, InferenceTime)
    return found.prefill_tokens_per_second.expected


def test_the_host_computes_the_experts_of_prompts_too_short_for_their_way() -> None:
    parts = {n: served(n_cpu_moe=36, prompt=n).time.prefill_parts["offload"] * n for n in (31, 32)}  # type: ignore[union-attr]
    assert parts[31] < parts[32] / 2  # all experts cross from 32 tokens on
    large = {"model": "deepseek-v3", "device": "rtx-5090", "quant": "q2_k", "n_cpu_moe": 58, "engine": "ik_llama.cpp"}
    assert 80 < prompts(**large, prompt=512) < 160  # ik_llama.cpp discussion 258: 118 where eight channels are


def test_ranks_fetch_experts_together_as_fast_as_the_host_brings_them() -> None:
    large = {"model": "kimi-k2", "device": "rtx-4090", "memory": "48GB", "engine": "ktransformers", "prompt": 8192}
    one, two, eight = (prompts(**large, quant="gptq-int4", host_memory="1TB", num_devices=n) for n in (1, 2, 8))
    assert one < two < 2 * one
    assert two < eight < 3 * two


def test_main_memory_can_be_what_does_not_fit() -> None:
    found = served(cpu_moe=True, host_memory="32GiB")
    assert found.verdict.status == "infeasible"
    assert any(note.code == "host-memory-exceeds" for note in found.verdict.reasons)
    assert found.memory.peak_bytes.high < found.memory.usable_bytes


def test_the_derivation_names_it() -> None:
    terms = {term.quantity: term for term in explanation(served(n_cpu_moe=36))}
    assert {one.name for one in terms["time.decode.host_experts"].inputs} >= {"host_bandwidth", "layers", "handover"}


def test_launch_says_it() -> None:
    command = launch(launcher("llama.cpp"), served(n_cpu_moe=26).scenario).command
    assert "--n-cpu-moe 26" in command


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"n_cpu_moe": 99}, "experts-of-all-layers"),
        ({"model": "llama-3-8b", "n_cpu_moe": 4}, "option-unused"),
        ({"device": "m2-ultra", "engine": "llama.cpp", "n_cpu_moe": 4}, "option-unused"),
    ],
)
def test_what_means_nothing_is_said(asked: dict[str, object], code: str) -> None:
    assert code in codes(**asked)
    assert codes(cpu_moe=True) == codes()


def test_an_engine_that_keeps_no_experts_there_refuses() -> None:
    with pytest.raises(UsageError, match="--n-cpu-moe is not something vllm can do"):
        served(n_cpu_moe=4, engine="vllm")


def test_ktransformers_keeps_all_of_them_there() -> None:
    found = served(engine="ktransformers", model="deepseek-v3", quant="q4_k_m", host_memory="768GiB")
    assert found.scenario.n_cpu_moe == found.scenario.model.architecture.layers

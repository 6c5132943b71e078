"""What llama.cpp's passes over a prompt hold: tokens at once, the mask, a copy of a layer that the host keeps."""

from __future__ import annotations

from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.feasibility.core import estimate
from llmfeas.feasibility.result import Estimate
from llmfeas.memory.inference import inference_memory
from llmfeas.settle import resolution
from llmfeas.timing.inference import InferenceTime

DENSE = {"model": "llama-3.1-8b", "device": "rtx-4090", "task": "inference", "quant": "q4_k_m", "context": 32768}
EXPERTS = {"model": "gpt-oss-120b", "device": "rtx-3090", "task": "inference", "quant": "mxfp4", "context": 8192}


def served(asked: dict[str, Any], **more: Any) -> Estimate:
    return estimate(resolution({**asked, **more}, catalog()))


def buffers(asked: dict[str, Any], **more: Any) -> float:
    held = inference_memory(resolution({**asked, **more}, catalog()).scenario).components
    return held["activations_bytes"] + held["logits_bytes"]


def prompt_speed(found: Estimate) -> float:
    assert isinstance(found.time, InferenceTime)
    return found.time.prefill_tokens_per_second.expected


def test_nobody_says_and_it_is_llama_cpps_own() -> None:
    found = served(DENSE).scenario
    assert (found.ubatch, found.origins["ubatch"]) == (512, "backend")
    assert served(DENSE, engine="vllm", quant="none", context=4096).scenario.ubatch is None


def test_logits_grow_with_the_tokens_of_a_pass() -> None:
    """128256 logits of 4 bytes and a stream of 4096."""
    assert buffers(DENSE, ubatch=2048) - buffers(DENSE, ubatch=512) == 1536 * (128256 + 4096) * 4


def test_layers_hold_a_mask_over_the_whole_context() -> None:
    """6 bytes for each token of a pass and each of 131072 that it may see: more than the logits take."""
    longest = {**DENSE, "device": "h100-sxm", "engine": "llama.cpp", "context": 131072}
    more = buffers(longest, ubatch=2048) - buffers(longest, ubatch=512)
    assert 1536 * 131072 * 6 < more < 1.5 * 1536 * 131072 * 6


def test_a_pass_is_no_longer_than_the_context() -> None:
    assert buffers(DENSE, ubatch=4096, context=1024) == buffers(DENSE, ubatch=1024, context=1024)


def test_prompts_are_computed_on_a_copy_of_what_the_host_keeps() -> None:
    """A layer of gpt-oss-120b has 128 experts of 3 x 2880 x 2880 weights and their biases, in 4.25 bits."""
    copied = buffers(EXPERTS, n_cpu_moe=20, ubatch=64) - buffers(EXPERTS, n_cpu_moe=0, ubatch=64)
    assert copied == pytest.approx(128 * 3 * 2880 * 2880 * 4.25 / 8, rel=0.05)
    assert buffers(EXPERTS, n_cpu_moe=20, ubatch=16) < copied


def test_experts_of_the_host_cross_once_a_pass() -> None:
    """Published on an RTX 3090 (data/measurements/experts_in_ram.yaml): 240, 380, 1113, 1682 and 2091 tokens/s."""
    measured = {256: 240, 512: 380, 2048: 1113, 4096: 1682, 8192: 2091}
    for ubatch, speed in measured.items():
        found = prompt_speed(served(EXPERTS, n_cpu_moe=26, ubatch=ubatch, prompt=8191))
        assert 0.45 < found / speed < 1.3, ubatch


@pytest.mark.parametrize(("engine", "instead"), [("vllm", "--max-num-batched-tokens"), ("exllamav2", "leave it out")])
def test_other_engines_refuse_it(engine: str, instead: str) -> None:
    with pytest.raises(UsageError, match=f"not of {engine}") as raised:
        served({**DENSE, "quant": "none", "context": 4096}, engine=engine, ubatch=1024)
    assert instead in str(raised.value.hint)


def test_who_asks_for_it_gets_llama_cpp() -> None:
    assert served(DENSE, device="h100-sxm", quant="none", ubatch=2048).scenario.engine == "llama.cpp"

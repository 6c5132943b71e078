"""Images in a prompt: the tokens that they make by their model's rule."""

from __future__ import annotations

import pytest

import llmfeas
from llmfeas.errors import UsageError
from llmfeas.timing.inference import inference_time
from llmfeas.timing.prefill import image_seconds


def test_images_are_in_the_prompt_and_the_cache() -> None:
    asked = {"model": "qwen2.5-vl-7b", "device": "rtx-4090", "task": "inference", "prompt": 100, "output": 50}
    seen = llmfeas.estimate(**asked | {"prompt": 100 + 3 * 1369}, images=3)
    assert seen.scenario.context == 100 + 3 * 1369 + 50
    with pytest.raises(UsageError, match="no room for the 4107 tokens of --images 3"):
        llmfeas.estimate(**asked, images=3)
    assert any("1024 x 1024 pixels (28 x 28 a token) makes 1369 tokens" in note.message for note in seen.warnings)


def test_the_prompt_that_is_shown_holds_its_images() -> None:
    found = llmfeas.estimate(model="gemma-3-4b", device="rtx-4090", task="inference", images=2)
    said = llmfeas.estimate(model="gemma-3-4b", device="rtx-4090", task="inference", images=2, prompt=256 + 2 * 256)
    assert said.scenario.prompt == found.scenario.prompt == 256 + 2 * 256


def test_models_without_a_rule_are_refused() -> None:
    with pytest.raises(UsageError, match="is not known to read images"):
        llmfeas.estimate(model="llama-3.1-8b", device="rtx-4090", task="inference", images=1)
    with pytest.raises(UsageError, match="how many tokens Idefics3"):
        llmfeas.estimate(model="idefics3-8b", device="rtx-4090", task="inference", images=1)


def test_every_rule_has_a_size_and_a_tower(models: dict[str, llmfeas.Model]) -> None:
    ruled = [model for model in models.values() if model.image_tokens]
    assert len(ruled) > 40
    assert all(model.image_size and model.architecture.tower_parameters for model in ruled)


def test_images_are_read_before_the_prompt() -> None:
    asked = {"model": "qwen3-vl-8b", "device": "rtx-4090", "task": "inference", "output": 50}
    seen, plain = (llmfeas.estimate(**asked, prompt=100 + 3 * 1024, images=count) for count in (3, 0))
    longer = 3 * image_seconds(seen.scenario)
    with_images, text = (inference_time(found.scenario) for found in (seen, plain))
    first = [found.time_to_first_token_seconds.expected for found in (with_images, text)]
    assert 0.5 * longer < first[0] - first[1] < 2 * longer
    assert with_images.decode_tokens_per_second == text.decode_tokens_per_second


@pytest.mark.parametrize(("name", "flop"), [("gemma-3-4b", 5.460392e12), ("qwen3-vl-8b", 5.797963e12)])
def test_work_of_an_image_is_what_the_counter_says(models: dict[str, llmfeas.Model], name: str, flop: float) -> None:
    """Of the encoders of transformers 5.23, counted by PyTorch 2.13; in Qwen's, attention by hand."""
    encoder = models[name].image_encoder
    assert encoder is not None
    assert encoder.flop(models[name].architecture.tower_parameters) == pytest.approx(flop, rel=0.001)


def test_layers_that_attend_to_an_image_keep_its_keys() -> None:
    """Llama 3.2 11B Vision: 8 layers with 8 heads of 128 over the 6404 positions of an image, in 16 bits."""
    asked = {
        "model": "llama-3.2-11b-vision",
        "device": "h100-sxm",
        "task": "inference",
        "engine": "vllm",
        "context": 8192,
    }
    plain, seen = (llmfeas.estimate(**asked, images=count).memory.kv_cache_bytes for count in (0, 2))
    assert seen - plain == 2 * 8 * 6404 * 2 * 8 * 128 * 2


def test_a_load_of_prompts_with_images_waits_for_them() -> None:
    asked = {"model": "gemma-3-27b", "device": "h100-sxm", "task": "inference", "quant": "fp8", "rate": 0.2}
    plain, seen = (llmfeas.estimate(**asked, prompt=2000 + 8 * 256, images=count) for count in (0, 8))
    assert plain.load is not None and seen.load is not None
    waits = [found.load.ttft_seconds.p50.expected for found in (plain, seen)]
    assert waits[1] - waits[0] > 0.9 * 8 * image_seconds(seen.scenario)

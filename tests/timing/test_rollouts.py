"""Answers that a training writes before it learns from them."""

from __future__ import annotations

from typing import Any

import pytest

from llmfeas.catalog.store import catalog
from llmfeas.errors import UsageError
from llmfeas.memory.rollouts import answers_at_once
from llmfeas.scenario import Scenario
from llmfeas.settle import resolution
from llmfeas.timing.inference import inference_time
from llmfeas.timing.rollouts import Rollout, rollout_of
from llmfeas.timing.training import training_time

ASK: dict[str, Any] = {"model": "qwen2.5-7b", "device": "8xh100-sxm", "task": "grpo", "colocate": "false"}


def settled(**asked: Any) -> Scenario:
    return resolution({**ASK, **asked}, catalog()).scenario


def rollout(**asked: Any) -> Rollout:
    found = rollout_of(settled(**asked))
    assert found is not None
    return found


def waiting(found: Rollout) -> float:
    """Seconds in which the longest answers are written on, when the others have ended."""
    return (found.longest - found.length) / found.alone


def test_answers_are_written_together_and_not_one_after_the_other() -> None:
    few, many = rollout(global_batch=32), rollout(global_batch=256)
    assert many.seconds < 2 * few.seconds
    assert many.written > 4 * few.written


def test_a_small_model_on_a_server_trains_on_thousands_of_tokens_a_second_as_published_runs_do() -> None:
    speed = training_time(settled()).tokens_per_second
    assert 500 < speed.expected / 8 < 5000


def test_longer_answers_take_longer_for_each_token() -> None:
    short, long = (rollout(global_batch=256, seq_len=length, response_length=length - 256) for length in (1024, 8192))
    assert long.written < short.written


def test_no_more_answers_are_written_at_once_than_the_caches_have_room_for() -> None:
    asked = {"seq_len": 8192, "response_length": 7168, "global_batch": 4096}
    beside, among = settled(**asked), settled(**asked, colocate="true")
    assert answers_at_once(among) < answers_at_once(beside)
    for scenario in (beside, among):
        found = rollout_of(scenario)
        assert found is not None
        assert found.at_once == min(4096, answers_at_once(scenario))


def test_new_weights_reach_those_who_write() -> None:
    """Tensor by tensor, and every device gathers all of them, in 16 bits; adapters have nothing to wait for."""
    inside, across = rollout().renewing, rollout(device="h100-sxm", num_devices=16).renewing
    assert 0 < inside < across < 0.5
    larger = rollout(model="qwen2.5-72b", device="h100-sxm", num_devices=32).renewing
    assert larger > 3 * across
    assert rollout(adapters="lora").renewing == 0
    alone = rollout(model="qwen2.5-0.5b", device="h100-sxm", colocate="true").renewing
    assert 0 < alone < inside


def test_each_expert_is_handed_over_by_itself() -> None:
    dense, mixture = (
        rollout(model=model, device="h100-sxm", num_devices=16).renewing for model in ("qwen3-32b", "qwen3-30b-a3b")
    )
    assert mixture > 10 * dense


def test_a_prompt_is_read_once_for_its_group() -> None:
    assert rollout(global_batch=64, group_size=8).prompts == 8
    assert rollout(global_batch=64, group_size=16).prompts == 4


def test_a_model_that_writes_itself_takes_longer_the_more_so_with_adapters() -> None:
    """TRL without vLLM, eight answers of 128 tokens on an H200: Qwen3 0.6B 4.0 s a step, LoRA of Qwen2.5 1.5B 6.3."""
    asked = {"device": "h200", "engine": "trl", "colocate": "true", "micro_batch": 8, "global_batch": 8}
    asked |= {"seq_len": 384, "response_length": 128}
    small, adapted, served = (
        rollout(**asked, **more)
        for more in (
            {"model": "qwen3-0.6b", "rollout_engine": "transformers"},
            {"model": "qwen2.5-1.5b", "rollout_engine": "transformers", "adapters": "lora"},
            {"model": "qwen3-0.6b"},
        )
    )
    assert 2.5 < small.seconds < 5.5 and 5 < adapted.seconds < 9
    assert small.seconds > 3 * served.seconds
    assert (small.prompts, served.prompts) == (8, 1)
    own = {**asked, "model": "qwen2.5-7b", "rollout_engine": "transformers"}
    packed, whole = (rollout(**own, adapters=kind) for kind in ("qlora", "lora"))
    assert packed.seconds > 1.2 * whole.seconds


def test_a_server_writes_slower_in_a_training_than_where_it_is_benchmarked() -> None:
    pace = catalog().tables.efficiency.value("rollout.pace")
    asked = {"model": "qwen2.5-7b", "device": "h100-sxm", "task": "inference", "engine": "vllm", "tp": 1}
    found = rollout(device="h100-sxm", global_batch=64, seq_len=768, response_length=512)
    alone = resolution({**asked, "concurrency": found.at_once, "prompt": 256, "context": 768}, catalog()).scenario
    speed = inference_time(alone).decode_tokens_per_second.expected
    assert pace > 1 and found.written == pytest.approx(speed / pace, rel=0.02)


def test_writing_ends_with_the_longest_answer() -> None:
    """What it is longer than the average costs passes that hold little else, and nothing where all are alike."""
    asked = {"global_batch": 512, "seq_len": 1024, "response_length": 512}
    alike, spread = rollout(**asked), rollout(**asked, longest_response=4096)
    assert waiting(alike) == 0 and alike.seconds == rollout(**asked, longest_response=512).seconds
    assert waiting(spread) == pytest.approx(spread.seconds - alike.seconds)
    assert waiting(spread) > 2 * alike.seconds  # 7 times as many passes over the weights, each with fewer answers
    assert waiting(spread) < 7 * alike.seconds
    longer = rollout(**{**asked, "seq_len": 4608, "response_length": 4096})
    assert spread.seconds < longer.seconds


def test_a_model_that_writes_itself_carries_ended_answers_on() -> None:
    asked = {
        "device": "h200",
        "engine": "trl",
        "colocate": "true",
        "model": "qwen2.5-7b",
        "rollout_engine": "transformers",
    }
    asked |= {"micro_batch": 64, "global_batch": 64, "seq_len": 384, "response_length": 128, "longest_response": 256}
    found = rollout(**asked)
    assert waiting(found) == pytest.approx(found.answers * 128 / found.written, rel=0.05)


def test_a_longest_answer_is_no_shorter_than_their_average() -> None:
    with pytest.raises(UsageError, match="--longest-response 100 is shorter than --response-length 512"):
        settled(seq_len=1024, response_length=512, longest_response=100)


@pytest.mark.parametrize("task", ["finetune", "dpo"])
def test_other_tasks_write_nothing(task: str) -> None:
    found = resolution({"model": "gpt2", "device": "rtx-4090", "task": task}, catalog()).scenario
    assert rollout_of(found) is None


@pytest.mark.parametrize("model", ["qwen2.5-0.5b", "qwen2.5-7b", "qwen3-30b-a3b"])
@pytest.mark.parametrize("device", ["rtx-4090", "8xh100-sxm", "8xb200"])
def test_no_speed_of_answers_and_no_end_of_a_range_beats_the_peaks_of_the_devices(model: str, device: str) -> None:
    scenario = settled(model=model, device=device, adapters="lora", colocate="true", gpu_memory_utilization=0.7)
    found = rollout_of(scenario)
    assert found is not None
    assert found.read <= found.most_read
    assert found.written <= found.most_written
    time = training_time(scenario)
    assert time.step_seconds.low >= found.least_seconds


def test_a_server_that_sleeps_between_takes_a_moment_to_wake() -> None:
    asked = {"colocate": "true", "global_batch": 64}
    awake, asleep = rollout(**asked, sleep="false"), rollout(**asked, sleep="true")
    assert asleep.waking == pytest.approx(asleep.seconds - awake.seconds) and asleep.waking > 0
    assert rollout(global_batch=64).waking == 0

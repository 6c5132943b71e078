"""Options of other tools are answered with ours, by their meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import llmfeas
from llmfeas.elsewhere import ELSEWHERE, NO_MATTER, VALUES, ours, taken
from llmfeas.errors import UsageError
from llmfeas.objectives import OBJECTIVES
from llmfeas.options import BY_NAME, OPTIONS, flag_of
from llmfeas.planning.answer import bare_answer

FLAGS = {flag_of(name) for option in OPTIONS for name in option.names}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_offered_is_an_option_of_ours(name: str) -> None:
    assert ELSEWHERE[name].flags
    assert set(ELSEWHERE[name].flags) <= FLAGS
    assert any(flag in ELSEWHERE[name].text for flag in ELSEWHERE[name].flags)


def test_our_own_options_are_not_called_foreign() -> None:
    assert not {name.replace("_", "-") for name in BY_NAME} & ELSEWHERE.keys()


def test_what_matters_is_not_said_to_be_no_matter() -> None:
    assert not NO_MATTER & ELSEWHERE.keys()
    assert not NO_MATTER & {flag.removeprefix("--") for flag in FLAGS}


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("--batch-size", ("--micro-batch", "--concurrency")),
        ("--per_device_train_batch_size", ("--micro-batch",)),
        ("--gpus", ("--num-devices",)),
        ("--users", ("--concurrency",)),
        ("--tensor-parallel-size", ("--tp",)),
        ("--load-in-4bit", ("--quant",)),
        ("-ngl", ("--gpu-layers",)),
        ("n_ctx", ("--context",)),
    ],
)
def test_other_spellings_are_read(name: str, flags: tuple[str, ...]) -> None:
    found = ours(name)
    assert found is not None and found.flags == flags


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("--users", "--concurrency"),
        ("--tensor-parallel-size=4", "--tp=4"),
        ("--kv_cache_dtype", "--kv-dtype"),
        ("-ngl", "--gpu-layers"),
        ("-c", "--context"),
        ("--load-in-4bit", None),
        ("--enable-expert-parallel", None),
        ("--flash-attn", None),
        ("--cpu-offload-gb", None),
        ("users", None),
        ("-", None),
        ("--concurrency", None),
    ],
)
def test_an_option_that_takes_the_same_value_is_taken(typed: str, read: str | None) -> None:
    assert taken(typed) == read


def test_a_setting_of_another_tool_is_answered_in_python_and_in_a_sweep() -> None:
    with pytest.raises(UsageError) as caught:
        bare_answer({"model": "gpt2", "device": "t4", "batch_size": 4})
    assert caught.value.candidates == ("micro_batch", "concurrency")


@pytest.mark.parametrize(
    ("name", "value", "setting"), [("tensor_parallel_size", 2, "tp"), ("per_device_train_batch_size", 4, "micro_batch")]
)
def test_a_keyword_of_another_tool_that_takes_the_same_value_is_taken(name: str, value: int, setting: str) -> None:
    found = bare_answer({"model": "gpt2", "device": "2xt4", "task": "finetune", "engine": "megatron", name: value})
    assert getattr(found.scenario, setting) == value


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gradient_accumulation_steps", "Here it is --global-batch, the sequences of a whole step over all devices."),
        ("learning_rate", "It changes neither memory nor time: leave it out."),
        ("np", "Here it is --concurrency."),
        ("taks", "Did you mean 'task' or 'tokens'?"),
    ],
)
def test_a_keyword_that_is_none_of_ours_is_told_how_it_is_said(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match="unknown setting") as caught:
        bare_answer({"model": "gpt2", "device": "t4", name: 4})
    assert caught.value.hint == hint


def test_a_value_that_is_an_option_of_ours_is_told_so() -> None:
    with pytest.raises(UsageError, match="--offload") as caught:
        bare_answer({"model": "gpt2", "device": "t4", "offload": "nvme"})
    assert caught.value.hint == "See --drive."


@pytest.mark.parametrize("loss", [loss for loss, each in OBJECTIVES.items() if loss != each.task])
def test_a_loss_that_is_typed_as_a_task_is_told_its_task(loss: str) -> None:
    with pytest.raises(UsageError) as caught:
        bare_answer({"model": "gpt2", "device": "t4", "task": loss})
    assert caught.value.hint == f"Here it is --task {OBJECTIVES[loss].task} --loss {loss}."


@pytest.mark.parametrize(("setting", "values"), VALUES.items())
def test_a_value_of_another_tool_is_said_in_options_that_there_are(setting: str, values: Mapping[str, str]) -> None:
    for value, here in values.items():
        assert value not in BY_NAME[setting].choices
        assert set(re.findall(r"--[a-z-]+", here)) <= FLAGS, here


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("adamw_torch_fused", "adamw"),
        ("adamw_torch", "adamw-foreach"),
        ("adamw_bnb_8bit", "adamw-8bit"),
        ("galore_adamw", "galore"),
        ("schedule_free_adamw", "adamw-schedule-free"),
    ],
)
def test_optimizers_go_by_the_names_of_the_trainers(typed: str, meant: str) -> None:
    ask = {"model": "gpt2", "device": "rtx-4090", "task": "finetune", "optimizer": typed}
    assert bare_answer(ask).scenario.optimizer == meant


def test_a_paged_optimizer_is_told_where_its_states_may_lie() -> None:
    with pytest.raises(UsageError) as caught:
        bare_answer({"model": "gpt2", "device": "t4", "task": "finetune", "optimizer": "paged_adamw_8bit"})
    assert "--optimizer adamw-8bit" in str(caught.value.hint)
    assert "--offload optimizer" in str(caught.value.hint)


@pytest.mark.parametrize("word", ["--memory-bandwidth", "--utilization", "--efficiency", "--cost"])
def test_what_may_mean_two_things_is_told_and_not_taken(word: str) -> None:
    """A device's bandwidth or its host's, a share of memory or of the peak, the cost of an hour or of all."""
    assert ours(word) is not None
    assert taken(word) is None
    assert taken("--users") == "--concurrency"


ASKS: Mapping[str, Callable[..., Any]] = {
    "estimate": lambda **more: llmfeas.estimate("llama-3-8b", "rtx-4090", task="finetune", **more),
    "plan": lambda **more: llmfeas.plan("llama-3-8b", "rtx-4090", task="finetune", **more),
    "compare": lambda **more: llmfeas.compare("gpt2", ["t4", "rtx-4090"], task="finetune", baseline="t4", **more),
    "solve": lambda **more: llmfeas.solve("cheapest", "gpt2", task="finetune", **more),
}


@pytest.mark.parametrize("name", ASKS)
def test_every_function_takes_them_as_our_own(name: str) -> None:
    """Whole answers, whose ladder, ways and rows ask again."""
    theirs, mine = (ASKS[name](**more).to_dict() for more in ({"per_device_train_batch_size": 1}, {"micro_batch": 1}))
    assert theirs["result"] == mine["result"]

"""What a machine does with a model, told where no task was said: each line is an estimate of its own."""

from __future__ import annotations

import pytest

from llmfeas.feasibility.result import Estimate, Use
from llmfeas.planning.answer import answer, bare_answer

ASKS: list[dict[str, object]] = [
    {"model": "llama-3-8b", "device": "rtx-4070ti"},
    {"model": "llama-3-8b", "device": "rtx-4090", "seq_len": 1024, "context": 16384},
    {"model": "gpt2-xl", "device": "rtx-4070ti"},
    {"model": "gpt2-xl", "device": "rtx-4070ti", "optimizer": "sgd", "micro_batch": 4},
    {"model": "tinyllama-1.1b", "device": "m2-ultra"},
    {"model": "qwen3-0.6b", "device": "ryzen-9-7950x"},
    {"model": "tinyllama-1.1b", "device": "tpu-v5e"},
    {"model": "llama-3-8b", "device": "2xt4"},
    {"model": "llama-3-8b", "device": "8xh100-sxm", "engine": "megatron"},
    {"model": "mixtral-8x7b", "device": "4xl40s", "concurrency": 8, "tokens": "50M"},
]


def uses_of(found: Estimate) -> tuple[Use, ...]:
    assert isinstance(found.uses, tuple)
    return found.uses


@pytest.mark.parametrize("ask", ASKS, ids=str)
def test_each_use_asked_for_gives_the_figures_of_its_line(ask: dict[str, object]) -> None:
    for use in uses_of(answer(ask, ladder=False, remedies=False)):
        said = {name: value for name, value in ask.items() if name != "engine" or use.task != "inference"}
        again = bare_answer({**said, **use.changes})
        assert again.verdict == use.verdict
        assert again.memory.peak_bytes.expected == use.peak_bytes
        assert again.scenario.tokens == use.tokens
        if again.total_seconds is None:
            assert again.speed.expected == use.decode_tokens_per_second
        else:
            assert again.total_seconds.expected == use.total_seconds


@pytest.mark.parametrize("ask", ASKS, ids=str)
def test_what_was_said_is_not_changed_by_a_use(ask: dict[str, object]) -> None:
    for use in uses_of(answer(ask, ladder=False, remedies=False)):
        assert not use.changes.keys() & ask.keys()


@pytest.mark.parametrize("task", ["pretrain", "qlora", "inference"])
def test_who_says_a_task_gets_the_answer_to_it_alone(task: str) -> None:
    found = answer({"model": "gpt2", "device": "rtx-3090", "task": task})
    assert "uses" not in found.result()


def test_without_a_task_the_answer_is_that_of_pretraining() -> None:
    ask = {"model": "gpt2", "device": "rtx-3090"}
    silent, said = answer(ask).result(), answer({**ask, "task": "pretrain"}).result()
    uses = silent.pop("uses")
    assert silent == said
    assert [use["label"] for use in uses] == ["chat", "QLoRA", "LoRA", "full fine-tuning", "pre-training"]
    assert uses[-1]["verdict"] == said["verdict"]


@pytest.mark.parametrize(("model", "first"), [("whisper-large-v3", "transcription"), ("t5-small", "writing")])
def test_an_encoder_decoder_chats_with_nobody(model: str, first: str) -> None:
    assert uses_of(answer({"model": model, "device": "rtx-3060"}))[0].label == first


def test_a_use_that_does_not_fit_as_it_is_names_what_makes_it_fit() -> None:
    uses = {use.label: use for use in uses_of(answer({"model": "gpt2-xl", "device": "rtx-4070ti"}))}
    assert uses["LoRA"].verdict.status == "feasible"
    assert uses["pre-training"].verdict.status == "feasible"
    assert uses["pre-training"].changes["optimizer"] == "adafactor"


def test_a_chat_takes_the_best_usual_format_that_fits() -> None:
    uses = {use.label: use for use in uses_of(answer({"model": "llama-3-8b", "device": "rtx-4070ti"}))}
    chat = uses["chat"]
    assert chat.verdict.status == "feasible"
    assert bare_answer({"model": "llama-3-8b", "device": "rtx-4070ti", **chat.changes}).scenario.quant == "q8_0"


def test_a_use_that_lacks_main_memory_alone_names_what_would_be_enough() -> None:
    ask = {"model": "gpt-oss-120b", "device": "rtx-4090"}
    chat = uses_of(answer(ask, ladder=False, remedies=False))[0]
    assert chat.verdict.status == "infeasible"
    assert chat.part is not None and chat.part["host_memory"] == "64GiB"
    assert bare_answer({**ask, **chat.part}).verdict.status == "feasible"
    said = {**ask, "host_memory": "48GiB"}
    assert uses_of(answer(said, ladder=False, remedies=False))[0].part is None


def test_a_machine_that_is_sold_with_more_memory_says_from_where_on_it_works() -> None:
    ask: dict[str, object] = {"model": "llama3.3:70b", "device": "m4-max"}
    chat = uses_of(answer(ask, ladder=False, remedies=False))[0]
    assert chat.verdict.memory == "exceeds"
    assert chat.part == {"task": "inference", "memory": "64GiB"}
    assert bare_answer({**ask, **chat.part}).verdict.status in ("feasible", "tight")
    said = {**ask, "memory": "48GiB"}
    assert uses_of(answer(said, ladder=False, remedies=False))[0].part is None

"""Work as people count it: examples, bytes of text and epochs come to tokens."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmfeas.catalog.store import catalog
from llmfeas.contract import plain
from llmfeas.errors import UsageError
from llmfeas.planning.answer import bare_answer
from llmfeas.planning.changes.training import tokens_changes
from llmfeas.render.assumptions import context
from llmfeas.scenario import Scenario

ASK: dict[str, object] = {"model": "gpt2", "device": "rtx-3090", "task": "lora"}


def settled(**more: object) -> Scenario:
    return bare_answer({**ASK, **more}).scenario


@given(examples=st.integers(1, 10**6), epochs=st.floats(0.01, 100), each=st.integers(1, 2000))
def test_tokens_are_examples_times_their_tokens_times_epochs(examples: int, epochs: float, each: int) -> None:
    found = settled(examples=examples, epochs=epochs, example_tokens=each, seq_len=1000)
    assert found.tokens == max(1.0, examples * min(each, 1000) * epochs)


def test_an_example_fills_a_sequence_and_is_read_once_where_nothing_is_said() -> None:
    found = settled(examples="2k", seq_len=512)
    assert (found.tokens, found.example_tokens, found.epochs) == (2000 * 512, 512, 1.0)
    assert found.origins["tokens"] == "derived"


def test_the_same_tokens_take_the_same_time_however_they_are_counted() -> None:
    counted = bare_answer({**ASK, "examples": 1000, "epochs": 3, "example_tokens": 500})
    assert counted.total_seconds == bare_answer({**ASK, "tokens": 1_500_000}).total_seconds


def test_what_was_resolved_can_be_said_again() -> None:
    found = bare_answer({**ASK, "examples": 1000, "epochs": 3}).to_dict()["inputs"]
    again = bare_answer({name: entry["value"] for name, entry in found.items() if entry["value"] is not None})
    assert again.scenario.tokens == found["tokens"]["value"]


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        ({"epochs": 3}, "missing-option", "--epochs is about --examples"),
        ({"example_tokens": 300, "tokens": 1e6}, "missing-option", "--example-tokens is about --examples"),
        ({"examples": 10, "tokens": 5000}, "contradiction", "--tokens 5 k contradicts --examples"),
        ({"examples": 0}, "bad-quantity", "--examples"),
        ({"examples": 10, "epochs": 0}, "bad-quantity", "--epochs"),
        ({"data_size": 0}, "bad-quantity", "--data-size"),
        ({"bytes_per_token": 4}, "missing-option", "--bytes-per-token is about --data-size"),
        ({"data_size": "1GB", "bytes_per_token": 0}, "bad-quantity", "--bytes-per-token"),
        ({"data_size": "1GB", "examples": 10}, "contradiction", "--examples and --data-size both"),
        ({"data_size": "1GB", "tokens": 5000}, "contradiction", "--tokens 5 k contradicts --data-size"),
        ({"task": "pretrain", "epochs": 2}, "missing-option", "--epochs is about --examples or --data-size"),
        ({"loader": 0}, "bad-quantity", "--loader"),
    ],
)
def test_what_makes_no_sense_is_refused(more: dict[str, object], code: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        settled(**more)
    assert caught.value.code == code


def test_examples_longer_than_a_sequence_are_cut_and_it_is_said() -> None:
    found = bare_answer({**ASK, "examples": 10, "example_tokens": 1000, "seq_len": 256})
    assert found.scenario.tokens == 2560
    assert "examples-cut" in {note.code for note in found.warnings}


@pytest.mark.parametrize("task", ["pretrain", "inference"])
def test_examples_mean_nothing_to_other_tasks(task: str) -> None:
    found = bare_answer({**ASK, "task": task, "examples": 10, "example_tokens": 2})
    assert [note.code for note in found.warnings].count("option-unused") == 2


@pytest.mark.parametrize("task", ["pretrain", "finetune", "lora", "embed"])
def test_a_text_comes_to_its_bytes_over_those_of_a_token(task: str) -> None:
    found = settled(task=task, data_size="10GB", bytes_per_token=4, epochs=3)
    assert (found.text_bytes, found.tokens) == (10e9, 7.5e9)
    assert found.origins["tokens"] == "derived"


def test_a_token_of_a_larger_vocabulary_stands_for_more_text() -> None:
    def each(model: str) -> float:
        return settled(model=model, device="b200", data_size="1GB").bytes_per_token or 0.0

    assert each("llama-2-7b") == pytest.approx(3.74)
    assert each("llama-3-8b") / each("llama-2-7b") == pytest.approx(3.94 / 3.17, rel=0.01)
    assert each("llama-2-7b") < each("gpt2") < each("llama-3-8b") < each("gemma-2-9b")


def test_a_counted_text_can_be_asked_again_and_read_less_of() -> None:
    found = bare_answer({**ASK, "data_size": "40GB", "epochs": 2, "deadline": "1h"})
    inputs = found.to_dict()["inputs"]
    again = bare_answer({name: entry["value"] for name, entry in inputs.items() if entry["value"] is not None})
    assert again.scenario.tokens == found.scenario.tokens
    (less,) = tokens_changes(found, catalog())
    assert 0 < bare_answer({**ASK, "epochs": 2, **less.settings}).total_seconds.expected <= 3600


def test_what_a_model_writes_itself_is_no_text_that_is_counted() -> None:
    found = bare_answer({**ASK, "task": "grpo", "data_size": "1GB", "loader": 5})
    assert [note.code for note in found.warnings].count("option-unused") == 2
    assert found.time.bound_by != "data"


COUNTED = re.compile(
    r"([\d.]+) k (examples|pairs|prompts)(?: x (\d+)(?: answers)?)? x (\d+) tokens = ([\d.]+) M tokens"
)


@pytest.mark.parametrize(
    "ask",
    [
        {"task": "lora"},
        {"task": "dpo"},
        {"task": "dpo", "loss": "kto"},
        {"task": "grpo"},
        {"task": "grpo", "group_size": 16},
        {"task": "reward"},
        {"task": "embed"},
    ],
    ids=str,
)
def test_what_the_screen_multiplies_gives_what_it_says(ask: dict[str, object]) -> None:
    found = bare_answer({"model": "qwen2.5-1.5b", "device": "h200", "examples": 8000, **ask}).to_dict()
    words = " ".join(context(plain(found["inputs"]), plain(found["result"]["parameters"]))).replace("\u00a0", " ")
    counted = COUNTED.search(words)
    assert counted is not None, words
    number, _, several, each, tokens = counted.groups()
    assert float(number) * 1000 * int(several or 1) * int(each) == pytest.approx(float(tokens) * 1e6, rel=0.01)

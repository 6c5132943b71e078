"""What the page asks of Python is what the command line answers, as JSON, also where the question is wrong."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from llmfeas.options import OPTIONS
from llmfeas.page.answers import SLIDERS, called

ASK = {"model": "gpt2-xl", "device": "rtx-4070ti", "task": "lora", "micro_batch": "4"}


def ask(name: str, *values: Any) -> Any:
    return json.loads(called(name, json.dumps(values)))


def test_an_answer_is_that_of_the_command_it_names(run: Callable[..., Any]) -> None:
    found = ask("answered", ASK)["result"]
    words = shlex.split(found["command"])
    assert words[:2] == ["llmfeas", "estimate"]
    assert json.loads(run(*words[1:], "--json").out) == json.loads(found["json"])


def test_the_form_is_the_table_of_settings() -> None:
    settings = ask("start")["result"]["settings"]
    assert [setting["name"] for setting in settings] == [option.name for option in OPTIONS]
    assert {setting["name"] for setting in settings if setting["slider"]} == set(SLIDERS)


def test_names_are_found_as_people_type_them() -> None:
    assert "qwen3-8b" in [entry["id"] for entry in ask("found", "models", "qwen3 8")["result"]]
    assert {"id": "rtx-4070ti", "name": "GeForce RTX 4070 Ti"} in ask("found", "devices", "4070 ti")["result"]


def test_each_way_applied_to_the_question_works() -> None:
    asked = {"model": "gpt2-xl", "device": "rtx-4070ti"}
    assert ask("answered", asked)["result"]["status"] == "infeasible"
    for way in ask("ways", asked)["result"]:
        assert ask("answered", {**asked, **way["settings"]})["result"]["status"] == way["status"]


def test_devices_stand_beside_one_another() -> None:
    html = ask("beside", ASK, "t4, m4-max")["result"]["html"]
    assert all(name in html for name in ("rtx-4070ti", "t4", "m4-max"))


def test_a_question_is_followed_further_in_pictures() -> None:
    for what in ask("start")["result"]["curves"]:
        drawn = ask("curves", {**ASK, "task": "lora"}, what)["result"]
        assert drawn.startswith("<figure"), what


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({**ASK, "model": "gpt9"}, "unknown-model"),
        ({**ASK, "micro_batch": "many"}, "bad-quantity"),
        ({**ASK, "task": "<script>"}, "bad-choice"),
        ({"model": "gpt2"}, None),
    ],
)
def test_a_wrong_question_is_an_error_that_says_what_to_do(settings: dict[str, str], code: str | None) -> None:
    error = ask("answered", settings)["error"]
    assert code is None or error["code"] == code
    assert error["code"] != "bug"
    assert error["message"]


def test_hostile_text_stays_text() -> None:
    hostile = "</script><img src=x onerror=y>"
    assert "<img" not in json.dumps(ask("found", "models", hostile))
    assert ask("answered", {**ASK, "model": hostile})["error"]["code"] == "unknown-model"


@pytest.mark.parametrize(
    "said", [{"device": "t4"}, {"model": ["gpt2"], "device": "t4"}, {"model": "gpt2"}, {"model": "gpt2", "device": " "}]
)
def test_devices_beside_a_question_that_names_nothing_are_an_error_of_the_question(said: dict[str, Any]) -> None:
    error = ask("beside", said, "l4")["error"]
    assert error["code"] == "missing-option"
    assert "was given" in error["message"]

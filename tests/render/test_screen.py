"""What a person sees: whole screens, at any width, in any terminal."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
from render_cases import CASES, case_names, read_case
from rich.cells import cell_len

from llmfeas.render.assumptions import context
from llmfeas.render.explain import explained
from llmfeas.render.formats.table import rendered
from llmfeas.render.pages.estimate import report
from llmfeas.render.pages.load import load_topics
from llmfeas.render.report import GLUE
from llmfeas.render.words import sentence

WIDTHS = (40, 60, 80, 100, 200)
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
FIGURE = re.compile(r"\d[\d.,e]*")
XL = "gpt2-xl-pretrain-rtx-4070ti"

EXPLANATION = [
    {
        "quantity": "optimizer states",
        "text": "states of the optimizer",
        "formula": "parameters * bytes_each + tensors",
        "inputs": [
            {"name": "parameters", "value": 1557611200, "unit": "", "origin": "model"},
            {"name": "bytes_each", "value": 8.0, "unit": "bytes", "origin": "default"},
            {"name": "tensors", "value": 4096.0, "unit": "bytes", "origin": "derived"},
        ],
        "value": 12460893696.0,
        "unit": "bytes",
        "share": 0.4,
        "tensors": [{"operator": "head", "shape": [1, 1024], "bytes_per_element": 2, "count": 2, "bytes": 4096.0}],
    },
    {
        "quantity": "step",
        "formula": "max(work, 2) / rate ** 0.5",
        "inputs": [
            {"name": "work", "value": 326, "unit": "FLOP", "origin": "model"},
            {"name": "rate", "value": 4.0, "unit": "FLOP/s", "origin": "device"},
        ],
        "value": 163.0,
        "unit": "s",
        "share": None,
    },
]


def screen(envelope: dict[str, Any], width: int = 80, **rest: bool) -> str:
    return rendered(report(envelope, *case_names(envelope)), width, **rest)


@pytest.mark.parametrize("name", CASES)
def test_screen_of_80_columns(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}-80.txt", screen(read_case(name)))


@pytest.mark.parametrize("width", [40, 60, 100, 200])
def test_screen_of_other_widths(width: int, golden: Callable[[str, str], None]) -> None:
    golden(f"{XL}-{width}.txt", screen(read_case(XL), width))


def test_screen_with_its_derivation(golden: Callable[[str, str], None]) -> None:
    envelope = read_case(XL)
    shown = explained(report(envelope, *case_names(envelope)), envelope["inputs"], EXPLANATION)
    golden(f"{XL}-explain.txt", rendered(shown))


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_too_long_and_nothing_is_cut_off(envelope: dict[str, Any], width: int) -> None:
    lines = screen(envelope, width).splitlines()
    assert max(cell_len(line) for line in lines) <= width
    assert not any("…" in line for line in lines)
    assert FIGURE.findall("\n".join(lines)) == FIGURE.findall(screen(envelope, 200))


def test_one_screen_is_enough(envelope: dict[str, Any]) -> None:
    assert len(screen(envelope).splitlines()) <= 35


def test_the_answer_comes_first(envelope: dict[str, Any]) -> None:
    words = report(envelope).verdict
    assert words is not None
    assert any(words.whole.replace(GLUE, " ") in line for line in screen(envelope).splitlines()[:3])


def test_without_colour_there_are_no_escape_codes(envelope: dict[str, Any]) -> None:
    assert "\x1b" not in screen(envelope)
    assert GLUE not in screen(envelope)


def test_colour_adds_nothing_but_colour(envelope: dict[str, Any]) -> None:
    coloured = screen(envelope, colour=True)
    assert "\x1b[" in coloured
    assert ESCAPE.sub("", coloured) == screen(envelope)


def test_a_terminal_that_knows_ascii_only_gets_ascii(envelope: dict[str, Any]) -> None:
    assert screen(envelope, unicode=False).isascii()


@pytest.mark.parametrize(
    ("status", "memory", "time", "budget", "words"),
    [
        ("feasible", "fits", "ok", "ok", "✓ feasible"),
        ("tight", "tight", "not_asked", "not_asked", "! tight"),
        ("unsupported", "fits", "not_asked", "not_asked", "✗ not supported"),
        ("infeasible", "exceeds", "not_asked", "not_asked", "✗ does not fit"),
        ("infeasible", "fits", "over_deadline", "ok", "✗ misses the deadline"),
        ("infeasible", "fits", "impractical", "not_asked", "✗ would take years"),
        ("infeasible", "exceeds", "over_deadline", "over_budget", "✗ does not fit, misses the deadline, over budget"),
    ],
)
def test_the_verdict_in_words(status: str, memory: str, time: str, budget: str, words: str) -> None:
    envelope = read_case(XL)
    envelope["result"]["verdict"] |= {"status": status, "memory": memory, "time": time, "budget": budget}
    assert words in screen(envelope)


def test_what_would_not_run_has_its_time_on_condition() -> None:
    envelope = read_case(XL)
    assert "112 days (89.6 – 150), if it did fit" in screen(envelope)
    envelope["result"]["verdict"]["software"] = "unsupported"
    assert "if it were supported" in screen(envelope)


def test_what_is_unknown_is_left_out(envelope: dict[str, Any]) -> None:
    result = envelope["result"]
    result["time"] = dict.fromkeys(result["time"])
    result["cost"] = dict.fromkeys(result["cost"])
    result["flops"] = dict.fromkeys(result["flops"])
    result["memory"]["runner_up_moment"] = None
    labels = {line.split()[0] for line in screen(envelope).splitlines() if line[:1].strip()}
    assert not labels & {"Time", "Speed", "Cost", "Energy", "Compute"}
    assert "None" not in screen(envelope)


HOSTILE = ["[/x]", "[bold]red[/bold]", "a\x1b[31mb", "a\rb", "a\nb", "\u202eevil", "x" * 500, ":smile:"]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("colour", [False, True])
def test_names_are_shown_and_never_obeyed(name: str, colour: bool) -> None:
    envelope = copy.deepcopy(read_case(XL))
    envelope["warnings"] = [{"code": "x", "message": name}]
    envelope["result"]["ladder"][0]["label"] = name
    envelope["result"]["cost"]["price"]["provider"] = name
    envelope["result"]["remedies"][0]["changes"] = {"device": name}
    plain = rendered(report(envelope, name, name), 80)
    text = ESCAPE.sub("", rendered(report(envelope, name, name), 80, colour=True)) if colour else plain
    assert text == plain
    assert not set(text) & {"\x1b", "\r", "\u202e", "\x07"}
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    if len(name) < 40 and name.isprintable():
        assert name in text


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("needs 3 GiB (with a cache)", "Needs 3 GiB (with a cache)."),
        ("mlx on MI300X: does not run", "mlx on MI300X: does not run."),
        ("flash on T4: another kernel", "Flash on T4: another kernel."),
        ("pretrain on M1: slow!", "pretrain on M1: slow!"),
        ("vLLM refuses to start", "vLLM refuses to start."),
        ("--price 0: nothing is paid", "--price 0: nothing is paid."),
    ],
)
def test_a_message_becomes_a_sentence(message: str, shown: str) -> None:
    assert sentence(message) == shown


def test_in_ascii_a_product_is_no_difference(envelope: dict[str, Any]) -> None:
    shown = rendered(report(envelope), 80, unicode=False)
    assert "·" not in shown
    assert not re.search(r"\d-N-D", shown)
    assert " -\n" in shown or " - " in shown


def test_what_was_asked_is_not_listed_again_among_what_else_works(envelope: dict[str, Any]) -> None:
    """A rung takes defaults: beside an answer with other settings it would contradict it."""
    asked, ladder = envelope["inputs"]["task"]["value"], envelope["result"]["ladder"]
    if not ladder or asked == "inference":
        pytest.skip("there is no rung of what was asked")
    shown = screen(envelope).replace(GLUE, " ")
    also = shown[shown.index("Also here") : shown.index("Assumed")]
    (rung,) = (rung["label"] for rung in ladder if rung["task"] == asked)
    assert not re.search(rf"(?<!Q){re.escape(rung)} [✓✗!]", also)
    assert all(each["label"] in " ".join(also.split()) for each in ladder if each["task"] != asked)


@pytest.mark.parametrize(("hourly", "says"), [(None, "for electricity at $0.30 a kWh"), (0.5, "with electricity at")])
def test_a_cost_says_when_electricity_is_in_it(hourly: float | None, says: str) -> None:
    envelope = copy.deepcopy(read_case(XL))
    envelope["inputs"]["electricity"] = {"value": 0.3, "origin": "given"}
    envelope["inputs"]["price"] = {"value": hourly, "origin": "given"}
    envelope["result"]["cost"]["usd"] = {"low": 1.0, "expected": 2.0, "high": 3.0}
    assert says in " ".join(screen(envelope).replace(GLUE, " ").split())


def test_a_device_alone_communicates_with_its_host() -> None:
    name = next(name for name in CASES if read_case(name)["result"]["time"].get("decode_bound_by"))
    envelope = copy.deepcopy(read_case(name))
    envelope["result"]["time"]["decode_bound_by"] = "communication"
    for devices, words in ((1, "transfers from main memory"), (2, "communication between devices")):
        envelope["inputs"]["num_devices"]["value"] = devices
        assert words in screen(envelope, 200)


def test_where_nothing_near_makes_it_fit_that_is_said(envelope: dict[str, Any]) -> None:
    envelope["result"]["remedies"] = []
    for memory, said in (("exceeds", True), ("tight", False)):
        envelope["result"]["verdict"]["memory"] = memory
        assert ("'llmfeas plan' looks further" in screen(envelope)) == said


def test_what_each_of_several_users_sees_stands_beside_what_all_get() -> None:
    envelope = read_case("mixtral-8x7b-inference-rtx-3090")
    envelope["inputs"]["concurrency"]["value"] = 32
    envelope["result"]["time"]["tokens_per_second_per_sequence"] = {"low": 9.0, "expected": 12.0, "high": 15.0}
    assert "to all 32 together, 12 (9 – 15) tokens/s to each" in " ".join(screen(envelope, 200).split())


@pytest.mark.parametrize(("prompt", "shown"), [(0, False), (1000, True)])
def test_the_time_to_the_first_token_is_told_where_there_is_a_prompt(prompt: int, shown: bool) -> None:
    envelope = read_case("mixtral-8x7b-inference-rtx-3090")
    envelope["inputs"]["prompt"]["value"] = prompt
    assert ("first token after" in screen(envelope)) == shown


def test_no_word_of_a_long_rung_is_broken() -> None:
    from llmfeas.cli.estimated import report_of
    from llmfeas.planning.answer import answer

    found = answer({"model": "qwen3-30b-a3b", "device": "rtx-4070ti", "task": "inference"}, remedies=False)
    shown = rendered(report_of(found, found.to_dict()), 60)
    assert shown.replace(GLUE, " ").count("of main memory") == 3


@pytest.mark.parametrize(("code", "said"), [("fused", "a framework's fused kernels"), ("public", "public code;")])
def test_whose_kernels_a_training_is_taken_to_run_is_said(code: str, said: str) -> None:
    found = copy.deepcopy(read_case(XL))
    assert said not in screen(found), "results of older versions do not tell"
    found["result"]["memory"]["code"] = code
    shown = screen(found)
    assert said in shown[shown.index("Assumed") :]


def served_on(**layout: int) -> tuple[str, ...]:
    asked = {"task": "inference", "engine": "vllm", "quant": "none", "precision": "bf16", "context": 4096, **layout}
    return context({name: {"value": value} for name, value in asked.items()}, {"total": 8e9})


def test_copies_that_serve_are_counted() -> None:
    assert f"4{GLUE}copies" in served_on(num_devices=4, tp=1, pp=1)
    assert f"2{GLUE}copies" in served_on(num_devices=8, tp=2, pp=2)
    assert f"dp{GLUE}8" in served_on(num_devices=8, ep=8), "they share their experts"
    assert not [part for part in served_on(num_devices=4, tp=2, pp=2) if "cop" in part]


@pytest.mark.parametrize(("bound", "said"), [("max_num_seqs", "few ever wait"), ("queue", "none waits")])
def test_nobody_is_said_not_to_wait_where_the_slowest_do(bound: str, said: str) -> None:
    one = {"low": 0.01, "expected": 0.01, "high": 0.01}
    load = dict.fromkeys(("requests_per_second", "output_tokens_per_second", "running", "waiting"), one)
    load |= {key: {"p50": one, "p95": one} for key in ("ttft_seconds", "tpot_seconds")}
    (topic,) = load_topics({}, {"load": {**load, "largest_requests_per_second": one, "bound_by": bound}})
    assert said in "".join(phrase.text for line in topic.paragraphs for phrase in line)

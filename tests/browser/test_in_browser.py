"""The page in a real browser: its answers are the command line's, its state is its address, and it works offline.

Run by `.ci/browser`, which gets Chromium, Playwright, the runtime and axe-core; variables of the environment name them.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import llmfeas
from llmfeas.cli.commands.page import server
from llmfeas.errors import LlmfeasError
from llmfeas.page.folder import write_page

pytestmark = pytest.mark.browser
CHROMIUM, RUNTIME, AXE = (os.environ.get(f"LLMFEAS_{name}", "") for name in ("CHROMIUM", "PYODIDE", "AXE"))
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MODELS = ("gpt2", "gpt2-xl", "llama-3-8b", "qwen3-8b", "qwen3-30b-a3b", "gemma-3-12b", "mixtral-8x7b", "gpt-oss-20b")
DEVICES = ("rtx-4070ti", "rtx-4090", "t4", "m4-max", "8xh100-sxm", "rx-7900xtx", "cpu", "v5e-8", "arc-b580", "no such")
TASKS = ("", "pretrain", "finetune", "lora", "qlora", "inference", "dpo")
ASKS = 200
WAIT = 120_000
CONFIG = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "vocab_size": 1000,
    "num_key_value_heads": 2,
    "intermediate_size": 512,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("page") / "public"
    write_page(folder, Path(RUNTIME))
    with server(folder, 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/"
        running.shutdown()


@pytest.fixture(scope="module")
def context() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        context = browser.new_context(viewport={"width": 1440, "height": 1000}, bypass_csp=True)
        context.set_default_timeout(WAIT)
        yield context
        browser.close()


@pytest.fixture(scope="module")
def page(context: Any, address: str) -> Any:
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(address)
    page.wait_for_selector("#answer h1")
    yield page
    assert faults == []


def opened(page: Any, address: str, query: str = "") -> None:
    page.goto(f"{address}?{query}")
    page.wait_for_function("document.querySelector('#answer h1') || document.querySelector('#state.error')")


def settled(page: Any, words: str) -> None:
    """Wait until the answer is to the question whose command holds `words`."""
    page.wait_for_function("words => document.querySelector('#command').textContent.includes(words)", arg=words)


def shown(page: Any) -> Any:
    return json.loads(page.text_content("#json"))


def equal(found: Any, expected: Any) -> bool:
    if isinstance(expected, float):
        return bool(found == pytest.approx(expected, rel=1e-9))
    if isinstance(expected, dict):
        return expected.keys() == found.keys() and all(equal(found[key], value) for key, value in expected.items())
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(equal, found, expected))
    return bool(found == expected)


def test_random_questions_have_the_answers_of_the_command_line(page: Any) -> None:
    random, answered = Random(7), 0
    ask = """settings => new Promise(resolve => {
        const worker = window.own ??= new Worker('worker.js', {type: 'module'});
        worker.onmessage = ({data}) => data.id && resolve(data.text);
        worker.postMessage({id: 1, name: 'answered', values: [settings]}); })"""
    for _ in range(ASKS):
        settings = {"model": random.choice(MODELS), "device": random.choice(DEVICES)}
        settings |= {"task": task} if (task := random.choice(TASKS)) else {}
        settings |= {"seq_len": "1024"} if task not in ("", "inference") and random.random() < 0.5 else {}
        found = json.loads(page.evaluate(ask, settings))
        try:
            expected = llmfeas.estimate(**settings).to_dict()
        except LlmfeasError as error:
            assert found["error"]["code"] == error.code
            continue
        assert equal(json.loads(found["result"]["json"]), json.loads(json.dumps(expected))), settings
        answered += 1
    assert answered > ASKS / 2


def test_each_control_is_in_the_address_and_the_address_in_the_controls(page: Any, address: str) -> None:
    opened(page, address, "model=llama-3-8b&device=rtx-4090&task=qlora&seq_len=1024")
    assert page.input_value("#set-task") == "qlora"
    assert page.input_value("#set-seq_len") == "1024"
    page.fill("#set-micro_batch", "2")
    settled(page, "--micro-batch 2")
    asked = parse_qs(urlsplit(page.url).query)
    assert asked == {
        "model": ["llama-3-8b"],
        "device": ["rtx-4090"],
        "task": ["qlora"],
        "seq_len": ["1024"],
        "micro_batch": ["2"],
    }
    page.focus("#set-micro_batch + input")
    page.keyboard.press("ArrowRight")
    settled(page, "--micro-batch 4")
    assert shown(page)["inputs"]["micro_batch"]["value"] == 4


def test_of_what_a_slider_passes_the_last_is_answered(page: Any, address: str) -> None:
    opened(page, address, "model=gpt2&device=t4&task=lora")
    page.evaluate("""() => {
        const slider = document.querySelector('#set-seq_len + input');
        for (const value of [5, 6, 7, 8, 9]) { slider.value = String(value); slider.dispatchEvent(new Event('input')); }
    }""")
    settled(page, "--seq-len 512")
    assert shown(page)["inputs"]["seq_len"]["value"] == 512


def test_a_broken_address_is_said_and_defaults_hold(page: Any, address: str) -> None:
    opened(page, address, "model=gpt2&nonsense=1")
    assert "nonsense" in page.text_content("#state")
    assert shown(page)["inputs"]["device"]["value"] == "rtx-4070ti"


def test_a_wrong_name_offers_near_ones(page: Any, address: str) -> None:
    opened(page, address, "model=gpt2-xxl&device=t4")
    assert page.text_content("#state")
    page.click("#answer button >> nth=0")
    page.wait_for_selector("#answer h1")


def test_a_way_is_a_button_that_applies_it(page: Any, address: str) -> None:
    opened(page, address, "model=gpt2-xl&device=rtx-4070ti&task=pretrain")
    page.wait_for_selector("#ways button")
    page.click("#ways button >> nth=0")
    page.wait_for_function("document.querySelector('.verdict').textContent.includes('feasible')")


def test_a_dropped_file_is_read_here(page: Any, address: str, tmp_path: Path) -> None:
    opened(page, address, "device=t4&task=lora")
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    page.set_input_files("#file", str(config))
    settled(page, "./config.json")
    assert "dropped" not in page.url
    expected = llmfeas.estimate(model=str(config), device="t4", task="lora")
    assert shown(page)["result"]["parameters"]["total"] == expected.parameters.total


def test_hostile_text_stays_text(page: Any, address: str, tmp_path: Path) -> None:
    opened(page, address, "model=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&device=t4")
    assert page.query_selector("#state img, #answer img") is None
    hostile = tmp_path / "<img src=x onerror=alert(1)>.json"
    hostile.write_text("{" * 10_000)
    page.set_input_files("#file", str(hostile))
    page.wait_for_function("document.querySelector('#state').textContent.includes('.json')")
    assert page.query_selector("#state img, #answer img") is None


def test_devices_stand_beside(page: Any, address: str) -> None:
    opened(page, address, "model=gpt2&device=t4&task=lora&beside=rtx-4090,m4-max")
    page.wait_for_function("document.querySelector('#beside').textContent.includes('m4-max')")


@pytest.mark.parametrize("width", [360, 1440])
def test_no_width_needs_scrolling_sideways_and_nothing_bars_anybody(page: Any, address: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for device in ("4xh100-sxm", "rtx-4090"):
        opened(page, address, f"model=llama-3-8b&device={device}&task=inference")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa']})")["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    page.set_viewport_size({"width": 1440, "height": 1000})


def test_it_works_without_a_network_once_it_was_loaded(page: Any, context: Any, address: str) -> None:
    opened(page, address, "model=gpt2&device=t4")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.wait_for_function("navigator.serviceWorker.controller !== null")
    context.set_offline(True)
    try:
        opened(page, address, "model=gpt2&device=t4&task=lora")
        assert shown(page)["inputs"]["task"]["value"] == "lora"
    finally:
        context.set_offline(False)

"""How long the page takes in Chromium, from a cold load to its first answer and from a change to the next one:
`python benchmarks/page.py`, with the variables of the environment that `.ci/browser` sets.

Times are of the clock: run it on a machine that does nothing else.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from llmfeas.cli.commands.page import server
from llmfeas.page.folder import write_page

CHROMIUM, RUNTIME = (os.environ[f"LLMFEAS_{name}"] for name in ("CHROMIUM", "PYODIDE"))
LOADS = 4
REST_MS = 1500
FIRST_S, FURTHER_MS, MEMORY_MB = 6, 150, 400
"""What was asked for."""
CHANGES = {
    "another task": ("#set-task", ("qlora", "inference", "lora", "finetune", "pretrain", "qlora", "lora")),
    "a slider moved": ("#set-seq_len + input", ("9", "10", "8", "9", "7", "10", "9")),
    "a length typed": ("#set-seq_len", ("512", "1024", "256", "768", "1024", "512", "640")),
    "another model typed": ("#set-model", ("llama-3-8b", "gpt2", "qwen3-8b", "gpt2-large", "gemma-3-12b", "gpt2-xl")),
}
CHANGED = """([where, value]) => new Promise(resolve => {
    const control = document.querySelector(where), answer = document.querySelector('#answer');
    const begin = performance.now();
    new MutationObserver((_, watch) => {
        if (!answer.querySelector('h1')) return;
        watch.disconnect();
        requestAnimationFrame(() => resolve(performance.now() - begin));
    }).observe(answer, {childList: true});
    control.value = value;
    control.dispatchEvent(new Event('input', {bubbles: true}));
})"""


def loaded(playwright: Any, address: str) -> tuple[Any, Any, float]:
    """A browser that never saw the page, the page in it, and the seconds until its first answer."""
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
    page, begin = browser.new_page(), time.perf_counter()
    page.goto(address)
    page.wait_for_selector("#answer h1")
    return browser, page, time.perf_counter() - begin


def changed(page: Any, where: str, values: tuple[str, ...]) -> list[float]:
    """The milliseconds from each change to the answer to it."""
    took = []
    for value in values:
        page.wait_for_timeout(REST_MS)
        took.append(page.evaluate(CHANGED, [where, value]))
    return took


def renderer_mb() -> float:
    """The memory of the largest process that draws a page."""
    listed = subprocess.run(["ps", "-eo", "rss,args"], capture_output=True, text=True, check=True).stdout
    return max(int(line.split()[0]) for line in listed.splitlines() if "--type=renderer" in line) * 1024 / 1e6


def main() -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as place:
        write_page(Path(place) / "public", Path(RUNTIME))
        with server(Path(place) / "public", 0) as running, sync_playwright() as playwright:
            threading.Thread(target=running.serve_forever, daemon=True).start()
            address, firsts = f"http://127.0.0.1:{running.server_address[1]}/", []
            for _ in range(LOADS):
                browser, page, seconds = loaded(playwright, address)
                firsts.append(seconds)
                if len(firsts) < LOADS:
                    browser.close()
            print(f"first answer         {statistics.median(firsts):5.2f} s of a cold load (asked for: {FIRST_S})")
            for name, (where, values) in CHANGES.items():
                took = changed(page, where, values)
                print(f"{name:20} {statistics.median(took):5.0f} ms, at most {max(took):.0f} (asked for: {FURTHER_MS})")
            print(f"memory               {renderer_mb():5.0f} MB (asked for: {MEMORY_MB})")
            browser.close()
            running.shutdown()


if __name__ == "__main__":
    main()

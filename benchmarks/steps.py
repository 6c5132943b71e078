"""Time the steps of data/measurements/own_h200.yaml, or of another such file, on this machine's GPU.

`python benchmarks/steps.py FILE [ID...]` runs each row's scenario through the libraries that people use (transformers,
peft, trl, sentence-transformers, bitsandbytes, liger-kernel), each in a process of its own, and prints what it measured
as JSON; where there is no GPU the processor does the work. Weights and tokens are random: nothing is downloaded, and a
step takes as long. Tied tables come untied unless a configuration ties them. Where llmfeas is not installed: `--write
OUT FILE [ID...]` beside one that is, then `--read OUT [SECONDS]`, which starts no run after so many seconds. Rows of
the engine pytorch-fla alone see the folder that STEPS_FLA names, in which flash-linear-attention is installed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from step_models import Scenario, built, on_a_gpu, words
from step_trainers import WARM, Clock, reader, trainer

LIBRARIES = ("accelerate", "peft", "sentence_transformers", "transformers", "trl")
LONGEST_SECONDS = 90.0
"""A run is ended after so long."""


def generated(scenario: Scenario) -> dict[str, float]:
    """Tokens a second of all sequences after the prompt, by the difference of a long and a short answer."""
    import torch

    model = built(scenario).eval()
    batch, new = scenario["concurrency"], scenario["output_tokens"]
    tokens = torch.randint(3, model.config.vocab_size, (batch, scenario["prompt"]), device=model.device)

    def seconds(count: int) -> float:
        start = time.perf_counter()
        mask = torch.ones_like(tokens)
        model.generate(tokens, attention_mask=mask, min_new_tokens=count, max_new_tokens=count, do_sample=False).cpu()
        return time.perf_counter() - start

    seconds(8)
    torch.cuda.reset_peak_memory_stats()
    first = statistics.median(seconds(1) for _ in range(3))
    return {"decode_tokens_per_second": batch * (new - 1) / (min(seconds(new) for _ in range(2)) - first)}


LEAST_SECONDS = 1.0
"""Texts are read anew until so much time has passed."""


def read(scenario: Scenario) -> dict[str, float]:
    """Tokens a second that sentence-transformers' `encode` makes vectors of, texts of one length in batches; alone is
    one batch of them.
    """
    batch, length = scenario["concurrency"], scenario["prompt"]
    model, vocab = reader(scenario, length)
    texts = words(max(batch, min(2048, 16 * batch)), length, vocab)

    def seconds(some: list[str]) -> float:
        start = time.perf_counter()
        model.encode(some, batch_size=batch, convert_to_numpy=True, show_progress_bar=False)
        return time.perf_counter() - start

    for _ in range(2):
        seconds(texts[:batch])
    if on_a_gpu():
        import torch

        torch.cuda.reset_peak_memory_stats()
    alone = statistics.median(seconds(texts[:batch]) for _ in range(5))
    texts = texts[: batch * max(1, round(min(16.0, 3 * LEAST_SECONDS / alone)))]
    rounds = max(2, min(20, int(LEAST_SECONDS / (alone * len(texts) / batch))))
    taken = statistics.median(seconds(texts) for _ in range(rounds))
    return {"prefill_tokens_per_second": len(texts) * length / taken, "alone_seconds": alone}


def with_fla() -> None:
    """Let this process alone see flash-linear-attention, and compile what its kernels are tuned over side by side."""
    from concurrent.futures import ThreadPoolExecutor

    import triton
    from triton.runtime.autotuner import Autotuner

    sys.path.insert(0, os.environ["STEPS_FLA"])
    workers, prune = ThreadPoolExecutor(os.cpu_count()), Autotuner.prune_configs

    def compiled(self: Any, options: dict[str, Any]) -> Any:
        kept = prune(self, options)
        with triton.AsyncCompileMode(workers, ignore_errors=True):
            for each in kept:
                self.fn.run(*self.nargs.values(), **{**options, **each.all_kwargs(), "warmup": True})
        return kept

    Autotuner.prune_configs = compiled


def measured(scenario: Scenario) -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    if scenario["engine"] == "pytorch-fla":
        with_fla()
    if scenario["task"] == "inference":
        found: dict[str, Any] = read(scenario) if scenario["engine"] == "sentence-transformers" else generated(scenario)
    else:
        clock = Clock(1 if scenario["task"] == "grpo" else WARM)
        made = trainer(scenario, clock)
        gc.collect()
        if on_a_gpu():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        made.train()
        found = {"step_seconds": statistics.median(clock.seconds()), "steps": clock.seconds(), **clock.kernels}
    if not on_a_gpu():
        return {**found, "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    free, total = torch.cuda.mem_get_info()
    return {
        **found,
        "peak_bytes": torch.cuda.max_memory_allocated(),
        "device_bytes": total - free,
        "device": torch.cuda.get_device_name(),
    }


def in_a_process(name: str, scenario: Scenario) -> None:
    """Run one scenario in a copy of this process, which has the libraries loaded and no device yet."""
    started = time.perf_counter()
    child = os.fork()
    if child == 0:
        try:
            said: dict[str, Any] = measured(scenario)
        except BaseException as error:
            traceback.print_exc()
            said = {"error": f"{type(error).__name__}: {error}"[:300]}
        said["seconds"] = round(time.perf_counter() - started, 1)
        print(name, json.dumps(said), flush=True)
        os._exit(0)
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.05)
        if time.perf_counter() - started > LONGEST_SECONDS:
            os.kill(child, 9)
            os.waitpid(child, 0)
            print(name, json.dumps({"error": f"ended after {LONGEST_SECONDS:.0f} s"}), flush=True)
            return


def scenarios(path: Path, ids: list[str]) -> dict[str, Scenario]:
    from llmfeas.evidence.measurements import read_measurements, settings_of

    rows, _ = read_measurements([path])
    found = {row.id: dict(settings_of(row)) for row in rows if not ids or row.id in ids}
    for each in found.values():
        if str(each["model"]).endswith(".json"):
            each["model"] = os.path.relpath(str(each["model"]), Path(__file__).parent.parent)
    return found


def load_libraries() -> dict[str, str]:
    """Import what all runs need without opening the device, which a fork would lose; their releases.

    bitsandbytes asks the device for its generation when it is imported: the driver's tool says it instead.
    """
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    import torch

    asked, card = torch.cuda.get_device_capability, ["none"]
    if on_a_gpu():
        query = ["nvidia-smi", "--query-gpu=compute_cap,name,driver_version", "--format=csv,noheader"]
        generation, *card = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip().split(", ")
        torch.cuda.get_device_capability = lambda *_: tuple(map(int, generation.split(".")))
    found = {"card": " ".join(card), "torch": str(torch.__version__)}
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            found[name] = str(importlib.import_module(name).__version__)
    torch.cuda.get_device_capability = asked
    if torch.cuda.is_initialized():
        raise SystemExit("a library opened the device when it was imported")
    return found


def run(asked: dict[str, Scenario], limit_seconds: float) -> None:
    start = time.perf_counter()
    print("libraries", json.dumps(load_libraries()), round(time.perf_counter() - start, 1), flush=True)
    for name, scenario in asked.items():
        if time.perf_counter() - start < limit_seconds:
            in_a_process(name, scenario)
        else:
            print(name, json.dumps({"error": "no time"}), flush=True)


def main() -> None:
    match sys.argv[1:]:
        case ["--write", out, path, *ids]:
            Path(out).write_text(json.dumps(scenarios(Path(path), ids)), encoding="utf-8")
        case ["--read", path, *limit]:
            run(json.loads(Path(path).read_text(encoding="utf-8")), float(limit[0]) if limit else float("inf"))
        case [path, *ids]:
            run(scenarios(Path(path), ids), float("inf"))


if __name__ == "__main__":
    main()

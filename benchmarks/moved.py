"""What a change moves: the same random questions asked of two installations, `python benchmarks/moved.py OLD NEW`.

OLD and NEW are `llmfeas` programs (`.venv/bin/llmfeas`). The questions are drawn with a seed from the catalog of OLD
and answered by `sweep`, every tenth with ladder and remedies. Printed is how many answers differ, in which keys and by
how much, with the questions that differ most; the exit code is 1 if any does.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Ask = dict[str, object]

TASKS = ("pretrain", "finetune", "lora", "qlora", "inference")
COUNTS = (1, 1, 1, 1, 2, 3, 4, 8, 8, 16, 64, 100, 512, 2048)
POWERS = (1, 2, 4, 8, 16)
TRAINING_ENGINES = (
    *("pytorch", "pytorch-compile", "pytorch-liger", "pytorch-kbit", "deepspeed", "megatron", "nemo", "nemo-tuned"),
    *("maxtext", "llm.c", "llmq", "unsloth", "mlx", "transformer-engine", "torchtitan"),
)
SERVING_ENGINES = (
    *("llama.cpp", "llama.cpp-2023", "llama.cpp-vulkan", "ollama", "exllamav2", "transformers", "vllm", "sglang"),
    *("vllm-2023", "tensorrt-llm", "mlx", "gpt-fast", "tgi", "lmdeploy", "ctranslate2"),
)
TRAINING: Mapping[str, tuple[float, Sequence[object]]] = {
    "tokens": (0.2, ("1M", "300M", "10B", "2T")),
    "seq_len": (0.4, (128, 512, 1000, 2048, 4096, 16384)),
    "micro_batch": (0.4, (1, 2, 3, 4, 8, 32)),
    "global_batch": (0.2, (1, 8, 64, 512, 4096)),
    "precision": (0.4, ("fp32", "tf32", "bf16-mixed", "fp16-mixed", "bf16", "fp16", "fp8-mixed")),
    "optimizer": (0.4, ("adamw", "adamw-foreach", "adamw-8bit", "adafactor", "sgd", "sgd-momentum", "lion", "muon")),
    "checkpointing": (0.4, ("none", "selective", "full")),
    "dropout": (0.1, (0, 0.1)),
    "zero": (0.3, (0, 1, 2, 3)),
    "interleave": (0.05, (2, 4)),
    "offload": (0.15, ("none", "activations", "optimizer", "all")),
    "engine": (0.4, TRAINING_ENGINES),
    "mfu": (0.03, (0.4,)),
    "deadline": (0.1, ("1h", "30d")),
    "budget": (0.1, (100, 100000)),
}
ADAPTERS: Mapping[str, tuple[float, Sequence[object]]] = {
    "lora_rank": (0.3, (1, 8, 64, 256)),
    "lora_targets": (0.2, ("all-linear", "attention")),
    "lora_dropout": (0.2, (0, 0.05)),
}
INFERENCE: Mapping[str, tuple[float, Sequence[object]]] = {
    "context": (0.4, (512, 2048, 8192, 32768, 131072)),
    "prompt": (0.3, (0, 100, 1000)),
    "concurrency": (0.4, (1, 2, 4, 5, 16, 64, 300)),
    "kv_dtype": (0.2, ("fp16", "bf16", "fp8", "int8")),
    "gpu_layers": (0.1, (0, 10, 30, 999)),
    "offload": (0.1, ("all",)),
    "quant": (0.5, ("none", "int8", "nf4", "q8_0", "q6_k", "q4_k_m", "q2_k", "awq-int4", "gptq-int4", "mxfp4", "fp8")),
    "engine": (0.4, SERVING_ENGINES),
}
LAYOUT: Mapping[str, tuple[float, Sequence[object]]] = {
    "tp": (0.25, POWERS),
    "pp": (0.25, (1, 2, 3, 4, 8, 16)),
    "ep": (0.1, POWERS),
    "cp": (0.1, POWERS),
    "attention": (0.1, ("flash", "eager")),
    "memory": (0.03, ("16GiB", "192GiB")),
    "host_memory": (0.1, ("64GiB", "1TiB")),
    "price": (0.05, (1.5,)),
}


def listed(program: str, kind: str) -> list[str]:
    """The ids of the catalog."""
    out = subprocess.run([program, kind, "list", "--json"], check=True, capture_output=True, text=True).stdout
    return [row["id"] for row in json.loads(out)["result"]["rows"]]


def asks(program: str, count: int, seed: int) -> Iterator[Ask]:
    """Draw questions: each setting is given now and then, models and devices evenly."""
    draw = random.Random(seed)
    models, devices = listed(program, "models"), listed(program, "devices")
    for number in range(count):
        task = draw.choice(TASKS)
        devices_asked = draw.choice(COUNTS)
        ask: Ask = {"id": number, "model": draw.choice(models), "device": draw.choice(devices), "task": task}
        if devices_asked > 1:
            ask["num_devices"] = devices_asked
        tables = [INFERENCE if task == "inference" else TRAINING]
        tables += [ADAPTERS] if task in ("lora", "qlora") else []
        tables += [LAYOUT] if devices_asked > 1 else []
        for table in tables:
            share = draw.random()
            ask.update(
                {name: draw.choice(values) for name, (often, values) in table.items() if draw.random() < often * share}
            )
        yield ask


def answered(program: str, file: Path, more: Sequence[str]) -> list[dict[str, Any]]:
    """The answers of one installation, in the order of the questions."""
    done = subprocess.run([program, "sweep", str(file), *more], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{program} sweep ended with {done.returncode}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of an answer by dotted path; what differs between any two builds is left out."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if (path, key) not in (("", "llmfeas"), ("", "catalog")):
                yield from flat(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from flat(inner, f"{path}[{index}]")
    else:
        yield path, value


def moved(old: Any, new: Any) -> float:
    """By how much a leaf moved: |log ratio| of numbers, infinite for all else that is not equal."""
    if old == new:
        return 0.0
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (old, new))
    return abs(math.log(new / old)) if numbers and old and new and old * new > 0 else math.inf


def compared(old: dict[str, Any], new: dict[str, Any], least: float) -> dict[str, tuple[Any, Any, float]]:
    """The leaves that moved by more than `least`: path -> old, new, by how much."""
    first, second = dict(flat(old)), dict(flat(new))
    found: dict[str, tuple[Any, Any, float]] = {}
    for path in first.keys() | second.keys():
        before, after = first.get(path, "(absent)"), second.get(path, "(absent)")
        if (by := moved(before, after)) > least:
            found[path] = before, after, by
    return found


def main() -> int:
    """Ask both, print what moved."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--asks", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--least", type=float, default=1e-9, help="relative change that counts")
    parser.add_argument("--ignore", action="append", default=[], help="beginning of a path that may move")
    parser.add_argument("--show", type=int, default=10, help="questions to print")
    options = parser.parse_args()
    questions = list(asks(options.old, options.asks, options.seed))
    everything = questions[::10]
    rest = [ask for ask in questions if ask["id"] % 10]  # type: ignore[operator]
    by_path: dict[str, list[float]] = defaultdict(list)
    changed: list[tuple[float, Ask, dict[str, tuple[Any, Any, float]]]] = []
    with tempfile.TemporaryDirectory() as folder:
        for part, more in ((rest, ()), (everything, ("--with", "ladder,remedies"))):
            file = Path(folder, "asks.ndjson")
            file.write_text("".join(json.dumps(ask) + "\n" for ask in part), encoding="utf-8")
            with ThreadPoolExecutor(2) as pool:
                old, new = pool.map(lambda program: answered(program, file, more), (options.old, options.new))  # noqa: B023
            for ask, before, after in zip(part, old, new, strict=True):
                found = compared(before, after, options.least)
                found = {
                    path: one for path, one in found.items() if not path.startswith(tuple(options.ignore) or ("\0",))
                }
                for path, (_, _, by) in found.items():
                    by_path[path].append(by)
                if found:
                    changed.append((max(by for _, _, by in found.values()), ask, found))
    print(f"{len(changed)} of {len(questions)} answers moved")
    for path, by in sorted(by_path.items(), key=lambda item: -len(item[1]))[:40]:
        finite = sorted(one for one in by if one < math.inf)
        most = (
            f"{math.expm1(finite[-1]):.2%} at most, {math.expm1(finite[len(finite) // 2]):.2%} median" if finite else ""
        )
        print(f"  {len(by):6} {path}  {most}  {len(by) - len(finite) or ''}")
    for _, ask, found in sorted(changed, key=lambda one: -one[0])[: options.show]:
        print(json.dumps(ask))
        for path, (before, after, _) in sorted(found.items())[:8]:
            print(f"    {path}: {str(before)[:90]} -> {str(after)[:90]}")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())

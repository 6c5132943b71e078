"""How the time of an answer grows with what is asked, of the installation beside: `python benchmarks/growth.py`.

Each line asks the same with a small and a large size; the processor's time, less that of the smallest question, must
not grow faster than the size.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

SLACK = 1.5
"""A growth that is so much above the size's is noise."""
NOISE_SECONDS = 0.05

LLAMA = {
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_attention_heads": 16,
    "vocab_size": 32000,
    "max_position_embeddings": 8192,
}
GEMMA = {
    **LLAMA,
    "model_type": "gemma3_text",
    "head_dim": 64,
    "num_key_value_heads": 4,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
}
Asked = Callable[[Path, int], list[str]]


def seconds(arguments: list[str]) -> float:
    """The processor's time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "llmfeas", *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def layers(folder: Path, count: int) -> list[str]:
    """A model of so many equal layers."""
    return _model(folder, {**LLAMA, "num_hidden_layers": count})


def mixed_layers(folder: Path, count: int) -> list[str]:
    """A model whose layers differ without a pattern."""
    draw = random.Random(1)
    kinds = [draw.choice(("sliding_attention", "full_attention")) for _ in range(count)]
    return _model(folder, {**GEMMA, "num_hidden_layers": count, "layer_types": kinds})


def _model(folder: Path, config: dict[str, object]) -> list[str]:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return _bare(folder, {"model": str(folder), "device": "h100-sxm", "task": "lora"})


def _bare(folder: Path, asked: dict[str, object]) -> list[str]:
    """One question without what else is possible, which is more where less fits."""
    path = folder / "one.ndjson"
    path.write_text(json.dumps(asked) + "\n", encoding="utf-8")
    return ["sweep", str(path)]


def devices(folder: Path, count: int) -> list[str]:
    """A mixture of experts on so many devices."""
    return _bare(folder, {"model": "deepseek-v3", "device": "h100-sxm", "num_devices": count})


def expectations(folder: Path, count: int) -> list[str]:
    """A file of so many scenarios with an expectation each."""
    rows = (f"- {{id: {n}, model: gpt2, device: t4, task: lora, micro_batch: {1 + n % 8}}}" for n in range(count))
    path = folder / "checks.yaml"
    path.write_text("\n".join(f"{row[:-1]}, expect: {{peak_gib: {{max: 9999}}}}}}" for row in rows), encoding="utf-8")
    return ["check", str(path), "--json"]


def own_entries(folder: Path, count: int) -> list[str]:
    """A catalog of one's own with so many devices, beside ours."""
    path = folder / "own.yaml"
    rows = "".join(f"  - {{id: own-{n}, name: Own {n}, extends: rtx-4090}}\n" for n in range(count))
    path.write_text("devices:\n" + rows, encoding="utf-8")
    return ["estimate", "-m", "gpt2", "-d", f"own-{count - 1}", "--catalog", str(path), "--json"]


SIZES: dict[str, tuple[Asked, int, int]] = {
    "equal layers": (layers, 100, 1000),
    "mixed layers": (mixed_layers, 100, 1000),
    "devices": (devices, 1000, 100_000),
    "expectations": (expectations, 1000, 8000),
    "own devices": (own_entries, 500, 5000),
}


def main() -> int:
    exceeded = False
    with tempfile.TemporaryDirectory() as name:
        least = min(seconds(layers(Path(name), 2)) for _ in range(3))
        for what, (asked, small, large) in SIZES.items():
            times = [min(seconds(asked(Path(name), size)) for _ in range(2)) - least for size in (small, large)]
            growth = times[1] / max(times[0], NOISE_SECONDS)
            exceeded = exceeded or growth > SLACK * large / small
            print(f"{what:13} {small:6,} to {large:7,}: {times[0]:6.2f} to {times[1]:6.2f} s more, {growth:5.1f} x")
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())

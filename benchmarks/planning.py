"""What ladder, remedies, plans and inverse questions cost: `python benchmarks/planning.py`.

Seeded questions in one warm process, each of them new to it: milliseconds of the processor for ladder and remedies
beside an answer that is there, for `plan`, and for `solve`. `--counts` prints what was called how often instead, which
no busy machine changes; `--dump` writes all answers, for comparing two installations.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from fuzz.agreement import asked
from llmfeas.catalog.store import catalog
from llmfeas.errors import LlmfeasError
from llmfeas.planning.answer import answer, bare_answer
from llmfeas.planning.plan import plan
from llmfeas.planning.solve import solved

Ask = dict[str, object]

COUNTED = (
    *("_settled", "_for_batch", "resolution", "estimate", "memory", "peak_bytes"),
    *("peak_candidates", "walked_step"),
)
"""Functions of ours that say what an answer costs."""
PLANS: tuple[Ask, ...] = (
    {"model": "llama-3-70b", "device": "64xgb200", "task": "pretrain", "budget": 1},
    {"model": "llama-3-8b", "device": "1000xmi50-16gb", "task": "finetune"},
    {"model": "deepseek-v3.2", "device": "64xh100-sxm", "task": "pretrain"},
    {"model": "deepseek-v3.2", "device": "8xh100-sxm", "task": "finetune"},
    {"model": "kimi-k3", "device": "64xb200", "task": "pretrain"},
    {"model": "kimi-k3", "device": "8xh200", "task": "inference"},
)
"""Questions that took a plan long."""
SOLVES: tuple[tuple[str, Ask], ...] = (
    ("cheapest", {"model": "llama-3-8b", "task": "lora", "deadline": "1d"}),
    ("cheapest", {"model": "llama-3-70b", "task": "finetune", "deadline": "7d"}),
    ("cheapest", {"model": "gpt2-xl", "task": "pretrain", "deadline": "30d"}),
    ("cheapest", {"model": "qwen3-30b-a3b", "task": "qlora", "deadline": "2d"}),
    ("cheapest", {"model": "llama-3-8b", "task": "inference"}),
    ("min-devices", {"model": "kimi-k3", "device": "b200", "task": "pretrain", "tokens": "15T", "deadline": "90d"}),
    ("min-devices", {"model": "llama-3-70b", "device": "h100-sxm", "task": "pretrain", "deadline": "90d"}),
)


def questions(count: int, seed: int) -> Iterator[Ask]:
    """A model, a device and a task each, now and then several devices."""
    draw, known = random.Random(seed), catalog()
    devices = [name for name in known.devices if known.devices.peek(name, "backend") != "cpu"]
    models = list(known.models)
    for _ in range(count):
        ask: Ask = {"model": draw.choice(models), "device": draw.choice(devices)}
        ask["task"] = draw.choice(("pretrain", "finetune", "lora", "qlora", "inference"))
        if draw.random() < 0.3:
            ask["num_devices"] = draw.choice((2, 4, 8, 8, 16, 64))
        yield ask


def beside(ask: Ask) -> Any:
    """Ladder and remedies."""
    return answer(ask, uses=False)


def planned(ask: Ask) -> Any:
    """The plan."""
    return plan(ask, catalog())


def solving(question: str) -> Callable[[Ask], Any]:
    """The answer of an inverse question."""
    return lambda ask: solved(question, ask, catalog())


def timed(ask: Ask, task: Callable[[Ask], Any], *, asked: bool) -> tuple[float, Any]:
    """Milliseconds of a task, and what came of it; `asked`: beyond the bare answer; a refusal is its words.

    Garbage is collected in between, as no command does within one answer.
    """
    gc.collect()
    try:
        if asked:
            bare_answer(ask)
        begin = time.process_time()
        found = task(ask)
        return 1000 * (time.process_time() - begin), found
    except LlmfeasError as error:
        return 0.0, error.message


def report(name: str, bar_ms: float, measured: list[tuple[float, object]]) -> None:
    """Print the distribution and the slowest questions."""
    times = sorted(ms for ms, _ in measured)
    over = sum(ms > bar_ms for ms in times)
    middle, ninety = statistics.median(times), times[len(times) * 9 // 10]
    print(
        f"{name}: {len(times)} asks, median {middle:.1f} ms, p90 {ninety:.1f}, worst {times[-1]:.1f}; "
        f"{over} over {bar_ms:g} ms"
    )
    for ms, ask in sorted(measured, key=lambda one: -one[0])[:8]:
        print(f"  {ms:8.1f}  {json.dumps(ask)}")


def profiled(run: Callable[[], object]) -> Mapping[str, int]:
    """How often the functions of `COUNTED` were called in a run."""
    profile = cProfile.Profile()
    profile.runcall(run)
    counts = dict.fromkeys(COUNTED, 0)
    for (file, _, name), row in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if name in counts and "llmfeas" in file:
            counts[name] += row[1]
    return counts


def main() -> int:
    """Time, or count, or write down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--asks", type=int, default=340)
    parser.add_argument("--plans", type=int, default=200)
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("--dump", type=Path, help="write what was answered, one line an ask")
    options = parser.parse_args()
    gc.disable()
    for warm in ({"model": "gpt2", "device": "rtx-4070ti", "task": "pretrain"}, {"model": "gpt2", "device": "t4"}):
        timed({**warm}, beside, asked=True)
        timed({**warm, "budget": 1}, planned, asked=True)
    rows: list[str] = []

    def run(name: str, bar_ms: float, work: list[tuple[Any, Ask, Callable[[Ask], Any]]]) -> None:
        measured: list[tuple[float, object]] = []

        def all_of_it() -> None:
            for label, ask, task in work:
                ms, found = timed(ask, task, asked=not label)
                shown = {"solve": label, **ask} if label else ask
                measured.append((ms, shown))
                if options.dump:
                    written = found if isinstance(found, str) else found.to_dict()
                    rows.append(json.dumps([name, shown, written], default=str))

        if options.counts:
            print(f"{name}: {profiled(all_of_it)}")
        else:
            all_of_it()
            report(name, bar_ms, measured)

    run("ladder and remedies", 15, [("", ask, beside) for ask in questions(options.asks, options.seed)])
    drawn = [asked(options.seed * 100_000 + number) for number in range(options.plans)]
    run("plan", 1000, [("", ask, planned) for ask in (*PLANS, *drawn)])
    run("solve", 300, [(question, ask, solving(question)) for question, ask in SOLVES])
    if options.dump:
        options.dump.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

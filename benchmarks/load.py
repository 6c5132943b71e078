"""How near the model of a server's load comes to the simulation of its scheduler: `python benchmarks/load.py [COUNT]`.

For each kind of arrivals COUNT servers and lengths are drawn with seeds, engines in turn. Printed are the median, the
90th percentile and the worst relative error of five figures; how many are within 15 %, and how many are so or lie
between the quantiles two points below and above (a p95 where 5 % of the requests wait for a slot jumps: 0.1 s at 94 %,
2 s at 96 %); how far two halves of the simulations are apart; and the settings that are worst.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "load"))

from random_servers import FIGURES, KINDS, POLICIES, drawn, drawn_arrivals, quantile, seen, simulated

from llmfeas.load.batch import Batch
from llmfeas.load.serve import load

WORK = 150_000
"""Tokens of the answers of one simulated run, about."""
NEAR = 0.15


def error(found: float, true: float) -> float:
    return max(found / true, true / found) - 1 if found > 0 and true > 0 else float(found != true)


def printed(kind: str, settings: int, worst: int) -> None:
    errors: dict[str, list[float]] = defaultdict(list)
    apart: dict[str, list[float]] = defaultdict(list)
    near: dict[str, list[bool]] = defaultdict(list)
    rows, milliseconds = [], []
    for number in range(settings):
        policy = list(POLICIES)[number % len(POLICIES)]
        random_, server, lengths = drawn(number, policy, fixed=kind != "users")
        arrivals = drawn_arrivals(random_, server, lengths, kind, WORK)
        endless = arrivals.requests is None
        runs = simulated(server, lengths, arrivals, range(4), WORK)
        true, one, other = (seen(part, endless=endless) for part in (runs, runs[:2], runs[2:]))
        begun = time.process_time()
        found = load(Batch(server, lengths), arrivals)
        milliseconds.append(1e3 * (time.process_time() - begun))
        ttft, tpot = found.ttft_seconds, found.tpot_seconds
        answers = (ttft.p50, ttft.p95, tpot.p50, tpot.p95, found.requests_per_second)
        for name, answer in zip(FIGURES, answers, strict=True):
            low, middle, high = true[name]
            errors[name].append(error(answer, middle))
            apart[name].append(error(one[name][1], other[name][1]))
            near[name].append(errors[name][-1] < NEAR or low <= answer <= high)
        told = "  ".join(
            f"{name} {answer / true[name][1] - 1:+.0%}" for name, answer in zip(FIGURES, answers, strict=True)
        )
        rows.append((max(errors[name][-1] * (not near[name][-1]) for name in FIGURES), number, policy, found, told))
    print(f"\n{kind}: {settings} settings, {quantile(milliseconds, 0.5):.1f} ms (at most {max(milliseconds):.1f})")
    for name in FIGURES:
        values = errors[name]
        print(
            f"  {name:10}  median {quantile(values, 0.5):6.1%}  p90 {quantile(values, 0.9):6.1%}"
            f"  worst {max(values):6.0%}  within 15 % {sum(value < NEAR for value in values) / settings:4.0%}"
            f"  or two points {sum(near[name]) / settings:4.0%}"
            f"   halves apart: median {quantile(apart[name], 0.5):6.1%}  p90 {quantile(apart[name], 0.9):6.1%}"
        )
    for _, number, policy, found, told in sorted(rows, key=lambda row: -row[0])[:worst]:
        print(f"    {number} {policy} {found.requests_per_second / found.largest_rate:.2f} {found.bound_by}: {told}")


if __name__ == "__main__":
    count, kinds, shown = (*sys.argv[1:], *("60", "all", "5")[len(sys.argv) - 1 :])
    for each in KINDS if kinds == "all" else (kinds,):
        printed(each, int(count), int(shown))

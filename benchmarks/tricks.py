"""What each trick for speed buys: the same work with one of them switched off, `python benchmarks/tricks.py`.

Processor's time from an installed wheel, the least of interleaved rounds. A trick that buys under 3 % of the work that
it is for is not worth its place.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from sweep import ids, scenarios

from wheel_environment import built, installed

WORTH = 0.03
ANSWER = ("estimate", "--model", "gpt2-xl", "--device", "rtx-4070ti", "--json")
COMPARISON = ("compare", "--model", "gpt2", "--all", "--json")
TRICKS = {
    "leaving without the interpreter's end": ("answer", "from llmfeas.cli import leaving\nleaving.leave = id"),
    "no collector for one answer": ("answer", "import gc\ngc.disable = int"),
    "plain words read without click": (
        "answer",
        "from llmfeas.cli import plain\nplain.plain_values = lambda words: None",
    ),
    "bounds before a trial is settled": (
        "answer",
        "from llmfeas.planning.trials import Search\n"
        "Search.hopeless = lambda self, changes: False\nSearch.runs = lambda self, changes: True",
    ),
    "a question kept up to its batch": (
        "sweep",
        "from llmfeas.settle import resolving\nresolving._settled = resolving._settled.__wrapped__",
    ),
    "findings shared across batches": ("sweep", "from llmfeas import findings\nfindings.MAX_SHARED = 1"),
    "findings shared across devices": (
        "comparison",
        "from llmfeas import findings\nfindings._common = lambda scenario: scenario.shared",
    ),
    "walks kept": (
        "answer",
        "from llmfeas.memory import training\ntraining.peak_candidates = training.peak_candidates.__wrapped__",
    ),
}
"""What it is, the work that it is for, and Python that switches it off."""
RUN = "import sys\n{off}\nfrom llmfeas.cli import program\nsys.argv = ['llmfeas', *sys.argv[1:]]\nsys.exit(program())"


def seconds(python: Path, off: str, arguments: tuple[str, ...]) -> float:
    """The processor's time of one run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [str(python), "-c", RUN.format(off=off), *arguments]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "0"}, **quiet)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (wheel,) = built(folder / "dist", "--wheel")
        python = installed(wheel, folder / "environment")
        program, file = str(python.parent / "llmfeas"), folder / "scenarios.ndjson"
        asked = scenarios(ids(program, "models", 2), ids(program, "devices", 5))
        file.write_text("".join(json.dumps(one) + "\n" for one in asked), encoding="utf-8")
        works = {"answer": ANSWER, "comparison": COMPARISON, "sweep": ("sweep", str(file))}
        runs = {**{work: (work, "pass") for work in works}, **TRICKS}
        times: dict[str, list[float]] = {each: [] for each in runs}
        for _ in range(rounds):
            for each, (work, off) in runs.items():
                times[each].append(seconds(python, off, works[work]))
    least = {each: min(found) for each, found in times.items()}
    unworthy = 0
    for work in works:
        print(f"{work:40} {least[work] * 1e3:6.0f} ms")
    for each, (work, _) in TRICKS.items():
        gain = least[each] / least[work] - 1
        unworthy += gain < WORTH
        print(f"{each:40} {least[each] * 1e3:6.0f} ms of {work} without it: {gain:+.0%}")
    return int(unworthy > 0)


if __name__ == "__main__":
    sys.exit(main())

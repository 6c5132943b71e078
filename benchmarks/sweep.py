"""How many scenarios `llmfeas sweep` answers a second, from an installed wheel: `python benchmarks/sweep.py`.

20 models x 100 devices x 5 tasks x 10 batches, as NDJSON, in order and shuffled; and questions of all models, devices
and settings at random, no two alike. The rate of one process is told by the processor's time, which a busy machine
changes less than the clock; what two processes gain only the clock tells, on a machine at rest, beside what two loops
that share nothing gain there: two processors may be one core.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from moved import asks

from wheel_environment import built, installed

TASKS = ("pretrain", "finetune", "lora", "qlora", "inference")
BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
RANDOM = 2000
"""Questions at random."""
RATE, SHUFFLED_RATE, RANDOM_RATE, GAIN, MEMORY_MB, FIRST_SECONDS = 1700, 500, 40, 1.4, 200, 1.0
"""What is asked: scenarios a second, the same shuffled, at random, times that with two processes, megabytes a process,
seconds to the first line."""
LOOP = (sys.executable, "-c", "sum(number * number for number in range(10_000_000))")


def ids(program: str, kind: str, count: int) -> list[str]:
    """`count` ids of the catalog, spread over all of them."""
    listed = subprocess.run([program, kind, "list", "--json"], check=True, capture_output=True, text=True).stdout
    known = [row["id"] for row in json.loads(listed)["result"]["rows"]]
    return [known[index * len(known) // count] for index in range(count)]


def scenarios(models: list[str], devices: list[str]) -> Iterator[dict[str, object]]:
    """Yield what is asked; in inference the batch is the number of requests at once."""
    crossed = itertools.product(models, devices, TASKS, BATCHES)
    for number, (model, device, task, batch) in enumerate(crossed, start=1):
        batched = "concurrency" if task == "inference" else "micro_batch"
        yield {"id": number, "model": model, "device": device, "task": task, batched: batch}


def run(command: list[str], out: Path) -> tuple[float, float, float, float]:
    """Seconds on the clock, of the processor, until the first line, and megabytes of all processes at most."""
    begin, used, first, most = time.perf_counter(), children_seconds(), 0.0, 0.0
    with out.open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None:
        if not first and out.stat().st_size:
            first = time.perf_counter() - begin
        most = max(most, resident_mb(process.pid))
        time.sleep(0.2 if first else 0.02)
    return time.perf_counter() - begin, children_seconds() - used, first, most


def own_gain() -> float:
    """What two loops that share nothing gain on this machine by running at once."""
    begin = time.perf_counter()
    subprocess.run(LOOP, check=True)
    alone, begin = time.perf_counter() - begin, time.perf_counter()
    both = [subprocess.Popen(LOOP) for _ in range(2)]
    for each in both:
        each.wait()
    return 2 * alone / (time.perf_counter() - begin)


def children_seconds() -> float:
    """The processor's time of all processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def resident_mb(session: int) -> float:
    """The memory that the processes of a session hold for themselves, in megabytes; 0 where /proc is missing."""
    total = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(entry.name)) == session:
                rollup = (entry / "smaps_rollup").read_text(encoding="ascii")
                total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
        except (OSError, ValueError, StopIteration):
            continue
    return total / 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=int, default=1, help="ask every n-th model only")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (wheel,) = built(folder / "dist", "--wheel")
        program = str(installed(wheel, folder / "environment").parent / "llmfeas")
        asked = list(scenarios(ids(program, "models", 20)[:: arguments.share], ids(program, "devices", 100)))
        mixed = random.Random(1).sample(asked, len(asked))
        anything = list(asks(program, RANDOM // arguments.share, 14))
        files = {"scenarios": asked, "shuffled": mixed, "random": anything}
        for name, lines in files.items():
            (folder / f"{name}.ndjson").write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
        good, clocks = True, []
        runs = ("scenarios", 1, RATE), ("scenarios", 2, 0), ("shuffled", 1, SHUFFLED_RATE), ("random", 1, RANDOM_RATE)
        for name, jobs, bar in runs:
            out, count = folder / f"out-{name}-{jobs}", len(files[name])
            clock, cpu, first, most = run([program, "sweep", str(folder / f"{name}.ndjson"), "--jobs", str(jobs)], out)
            clocks.append(clock)
            rate = count / cpu
            print(f"{name}, --jobs {jobs}: first line after {first:.2f} s, {most:.0f} MB at most")
            print(f"  {count / clock:,.0f} a second on the clock, {rate:,.0f} a second of the processor")
            good = good and first < FIRST_SECONDS and most < MEMORY_MB * jobs and rate >= bar
        same = (folder / "out-scenarios-1").read_bytes() == (folder / "out-scenarios-2").read_bytes()
        print(
            f"two processes are {clocks[0] / clocks[1]:.2f} x as fast, with {'the same' if same else 'OTHER'} answers; "
            f"two loops {own_gain():.2f} x"
        )
        print(
            f"asked for: {RATE:,} a second, {SHUFFLED_RATE:,} shuffled, {RANDOM_RATE:,} at random, "
            f"{GAIN} x with two processes, {MEMORY_MB} MB a process, {FIRST_SECONDS:g} s"
        )
    return int(not (good and same))


if __name__ == "__main__":
    sys.exit(main())

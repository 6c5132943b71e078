"""`python -m fuzz.kills`: a long sweep in two processes, ended by each signal at random moments.

What was written must be whole lines of valid JSON, and no process may live on; `fuzz.processes` says how that is seen.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import tempfile
from pathlib import Path
from random import Random

from .processes import BEFORE_US_SECONDS, struck
from .words import question

ENDINGS = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")
DISTINCT = 20_000
"""Lines that are drawn; a longer sweep repeats them under other ids."""


def written(path: Path, lines: int, chance: Random) -> None:
    """Write a sweep of so many random lines."""
    drawn = [json.dumps(question(chance)) for _ in range(min(lines, DISTINCT))]
    with path.open("w", encoding="utf-8") as sink:
        for number, line in enumerate(itertools.islice(itertools.cycle(drawn), lines)):
            sink.write(f'{{"id": {number}, {line[1:]}\n')


def killed(source: Path, name: str, moment: float) -> tuple[int, list[str]]:
    """End the sweep of a file by a signal after so many seconds: bytes it had written, and what does not hold."""
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        place = Path(folder)
        (place / "in.ndjson").symlink_to(source)
        faults = list(struck(place, name, moment, jobs=2))
        return (place / "stdout").stat().st_size, faults


def main() -> int:
    """Read the command line, sweep and end, and report."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.kills", description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=50, help="moments for each signal")
    parser.add_argument("--latest", type=float, default=8.0, help="seconds, the latest moment")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    chance, folder, failed = Random(f"{asked.seed}/kills"), Path(tempfile.mkdtemp(prefix="kills-")), 0
    try:
        written(folder / "in.ndjson", asked.lines, chance)
        for name in ENDINGS:
            moments = [chance.uniform(BEFORE_US_SECONDS, asked.latest) for _ in range(asked.times)]
            done = [killed(folder / "in.ndjson", name, moment) for moment in moments]
            faults = [fault for _, found in done for fault in found]
            failed += len(faults)
            sizes = [size for size, _ in done]
            print(f"{name}: {len(sizes)} times, {sum(map(bool, sizes))} of them once lines were written", end=", ")
            print(f"at most {max(sizes) / 1e6:.1f} MB; {len(faults)} failures", *faults, sep="\n  ", flush=True)
    finally:
        shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())

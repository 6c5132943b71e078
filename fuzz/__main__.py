"""`python -m fuzz`: attack for a time, and report what did not hold, with the name that repeats it."""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from .run import KINDS, Report, attack, attacked


def again(name: str) -> int:
    """Repeat one attack, and show what it asked and what did not hold."""
    from . import holds, words

    kind, seed, number = name.split("/")
    real, asked = holds.answered, []

    def shown(arguments: Any, stdin: bytes = b"") -> holds.Outcome:
        print(f"llmfeas {' '.join(map(ascii, arguments))}"[:2000])
        for path in sorted(Path().rglob("*")):
            if path.is_file():
                print(f"  {path}: {path.read_bytes()[:3000]!r}")
        outcome = real(arguments, stdin)
        asked.append(outcome)
        print(f"  exit code {outcome.code}, {outcome.cpu_seconds:.1f} s, {outcome.err[:1000]!a}")
        return outcome

    module = import_module(f"fuzz.{KINDS[kind].partition(':')[0]}")
    for place in (module, words):
        if hasattr(place, "answered"):
            place.answered = shown  # type: ignore[attr-defined]
    found = attacked(kind, int(seed), int(number))
    print(json.dumps(found, indent=1))
    return len(found)


def main() -> int:
    """Read the command line, attack, and report."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--again", nargs="+", metavar="KIND/SEED/NUMBER", help="repeat attacks and show them")
    asked = parser.parse_args()
    if asked.again:
        return 1 if sum(map(again, asked.again)) else 0
    begin, report = time.monotonic(), Report(seed=asked.seed)
    with contextlib.suppress(KeyboardInterrupt):
        attack(asked.only, report, 60 * asked.minutes)
    print(f"seed {asked.seed}, {(time.monotonic() - begin) / 60:.1f} minutes")
    print(report.written())
    return 1 if report.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())

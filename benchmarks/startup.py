"""How long a command takes from an installed wheel, as a multiple of `python -c pass`: `python benchmarks/startup.py`.

Runs are interleaved, so that a busy moment of the machine touches all of them; medians are compared, of the time on the
clock and of the processor's time, which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pty
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from wheel_environment import built, installed

BASE = "python -c pass"
ESTIMATE = ("estimate", "--model", "gpt2-xl", "--device", "rtx-4070ti")
COMMANDS = {
    "--help": (("--help",), 4.2),
    "estimate --json": ((*ESTIMATE, "--json"), 10.5),
    "estimate by names": (("estimate", "--model", "Llama 3 8B", "--device", "RTX 4090", "--json"), 17),
    "estimate (table)": (ESTIMATE, 15),
    "estimate (terminal)": (ESTIMATE, 15.5),
    "completion": ((), 4.8),
    "compare --all --json": (("compare", "--model", "gpt2", "--all", "--json"), 86),
}
"""What is measured, with the ratio that it must not exceed; `--all` grows with the catalog (1,100 devices)."""
ON_TERMINAL = ("estimate (terminal)",)
"""What has a terminal before it, for which it draws in colours."""
ASKED = {"completion": {"_LLMFEAS_COMPLETE": "bash_complete", "COMP_WORDS": "llmfeas estimate --ta", "COMP_CWORD": "2"}}
"""What a shell says in variables."""


def seconds(command: list[str], on_terminal: bool, variables: Mapping[str, str]) -> tuple[float, float]:
    """The time on the clock and the processor's time of one run."""
    used, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    if on_terminal:
        show(command)
    else:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(command, check=True, env={**os.environ, **variables}, **quiet)
    clock, now = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


def show(command: list[str]) -> None:
    """Run a command that writes to a terminal."""
    ours, theirs = pty.openpty()
    terminal = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=terminal) as process:
        os.close(theirs)
        with contextlib.suppress(OSError):  # how Linux says that nobody writes any more
            while os.read(ours, 65536):
                pass
    os.close(ours)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def measured(commands: dict[str, list[str]], rounds: int) -> dict[str, tuple[float, float]]:
    """The medians of both times for each command."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(seconds(command, name in ON_TERMINAL, ASKED.get(name, {})))
    return {
        name: (statistics.median(clock for clock, _ in runs), statistics.median(cpu for _, cpu in runs))
        for name, runs in times.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        (wheel,) = built(Path(folder, "dist"), "--wheel")
        python = installed(wheel, Path(folder, "environment"))
        program = str(python.parent / "llmfeas")
        commands = {name: [program, *arguments] for name, (arguments, _) in COMMANDS.items()}
        found = measured({BASE: [str(python), "-c", "pass"], **commands}, rounds)
    clock_base, cpu_base = found[BASE]
    print(f"{BASE:22} {clock_base * 1e3:6.1f} ms on the clock, {cpu_base * 1e3:5.1f} ms of the processor")
    exceeded = False
    for name, (_, bar) in COMMANDS.items():
        clock, cpu = found[name][0] / clock_base, found[name][1] / cpu_base
        exceeded = exceeded or min(clock, cpu) > bar
        print(f"{name:22} {clock:5.1f} x on the clock, {cpu:5.1f} x of the processor  (at most {bar} x)")
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())

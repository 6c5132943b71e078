"""Processes: signals at any moment, full disks, killed workers, readers that go away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from .words import question

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGKILL")
PATIENCE_SECONDS = 30.0
LATEST_SECONDS = 3.0
"""The latest moment of a signal."""
BEFORE_US_SECONDS = 0.4
"""Until then the interpreter may be at its own start, and an interrupt its own affair."""


def processes(chance: Random, folder: Path) -> Iterator[str]:
    """One sweep in a process group of its own, to which something happens."""
    lines = [json.dumps({"id": number, **question(chance)}) for number in range(30)] * 8
    (folder / "in.ndjson").write_text("\n".join(lines) + "\n")
    jobs, to_file = chance.choice((1, 2)), chance.random() < 0.3
    happening = chance.choice((*SIGNALS, "full disk", "killed worker", "closed pipe"))
    if happening == "killed worker":
        jobs = 2  # one alone has no worker
    limit = chance.randrange(20_000, 2_000_000) if happening == "full disk" else None
    moment = chance.uniform(BEFORE_US_SECONDS, LATEST_SECONDS)
    yield from struck(folder, happening, moment, jobs=jobs, to_file=to_file, limit=limit)


def struck(
    folder: Path, happening: str, moment: float, *, jobs: int, to_file: bool = False, limit: int | None = None
) -> Iterator[str]:
    """Yield what does not hold of a sweep of `in.ndjson` to which something happens after so many seconds.

    A signal reaches its first process alone. `limit`: bytes that it may write; with `to_file` it writes `out.ndjson`.
    """
    command = [sys.executable, "-m", "llmfeas", "sweep", "in.ndjson", "--jobs", str(jobs)]
    command += ["-o", "out.ndjson"] if to_file else []

    def limited() -> None:
        import resource

        for name in SIGNALS[:-1]:
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if limit:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    with (folder / "stdout").open("wb") as sink, (folder / "stderr").open("wb") as errors:
        out = subprocess.PIPE if happening == "closed pipe" else sink
        process = subprocess.Popen(
            command, stdout=out, stderr=errors, start_new_session=True, preexec_fn=limited, cwd=folder
        )
        if process.stdout is not None:
            process.stdout.readline()
            process.stdout.close()
        elif happening != "full disk":
            time.sleep(moment)
            _strike(happening, process.pid)
        try:
            code = process.wait(PATIENCE_SECONDS if happening in SIGNALS else 4 * PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            yield f"{happening} with --jobs {jobs}: still there"
            return
    said = (folder / "stderr").read_text("utf-8", "replace")
    yield from _left(happening, code, said, folder, to_file)
    yield from _alive(process.pid, happening)


def _strike(happening: str, master: int) -> None:
    if happening in SIGNALS:
        _sent(master, happening)
        return
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == master:
            _sent(int(path.parent.name), "SIGKILL")
            return


def _sent(pid: int, name: str) -> None:
    try:
        os.kill(pid, getattr(signal, name))
    except ProcessLookupError:
        return


def _left(happening: str, code: int, said: str, folder: Path, to_file: bool) -> Iterator[str]:
    """What does not hold of exit code, message and what was written."""
    number = getattr(signal, happening, None) if happening in SIGNALS else None
    allowed = {0, 2, 3}
    if number is not None:
        allowed = {0, 3, -number if happening == "SIGKILL" else 128 + number}
    written = (
        (folder / ("out.ndjson" if to_file else "stdout")).read_bytes()
        if not to_file or (folder / "out.ndjson").exists()
        else b""
    )
    if happening == "SIGINT" and "Traceback" in said and "llmfeas" not in said:
        return  # the interpreter was still at its own start: nothing of ours was there to prevent it
    if number is not None and code == -number and not said and not written:
        return  # the same: no handler was there yet
    if number is not None and code == -number and said.endswith("say why.\n"):
        return  # all was said: the interpreter was taking itself apart, and a shell sees 128 + n as well
    if code not in allowed:
        yield f"{happening}: exit code {code}: {said[-300:]!r}"
    if "Traceback" in said or "bug" in said:
        yield f"{happening}: {said[-400:]!r}"
    if happening != "SIGKILL":
        parts = [path.name for path in folder.glob(".llmfeas-*")]
        if parts:
            yield f"{happening}: leaves {parts}"
    if happening == "SIGKILL":
        written = written[: written.rfind(b"\n") + 1]
    for place, line in enumerate(written.split(b"\n")[:-1] if written.endswith(b"\n") else written.split(b"\n")):
        try:
            json.loads(line or b"{}")
        except ValueError:
            yield f"{happening}: line {place} is no JSON: {line[:100]!r} ... {line[-100:]!r}"
            return


def _alive(group: int, happening: str) -> Iterator[str]:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        if not _living(group):
            return
        time.sleep(0.02)
    os.killpg(group, signal.SIGKILL)
    yield f"{happening}: processes live on"


def _living(group: int) -> bool:
    """Whether the group has a process that is no zombie."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            return True
    return False

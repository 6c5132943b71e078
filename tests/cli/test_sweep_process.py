"""A sweep as a process among others: pipes, signals, full disks, several processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, "-m", "llmfeas", "sweep"]
TASKS = ("pretrain", "finetune", "lora", "qlora", "inference")
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and limits as POSIX has them")


def scenario(number: int) -> bytes:
    batch = "concurrency" if TASKS[number % 5] == "inference" else "micro_batch"
    asked = {"id": number, "model": "gpt2", "device": "rtx-4090", "task": TASKS[number % 5], batch: 1 + number // 5 % 9}
    return json.dumps(asked).encode() + b"\n"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hundreds of scenarios with some broken lines among them."""
    path = tmp_path_factory.mktemp("sweep") / "many.ndjson"
    broken = {77: b"{\n", 200: b'{"id": 200, "model": "gpt2", "device": "nothing"}\n', 401: b"\xff{}\n"}
    path.write_bytes(b"".join(broken.get(number) or scenario(number) for number in range(600)))
    return path


@pytest.fixture(scope="module")
def answered(many: Path) -> bytes:
    result = subprocess.run([*COMMAND, str(many)], capture_output=True, check=False)
    assert result.returncode == 3
    assert result.stderr == b"Error: 3 of 600 scenarios are bad. Their lines in the output say why.\n"
    return result.stdout


def rows(text: bytes) -> list[dict[str, Any]]:
    assert text == b"" or text.endswith(b"\n")
    return [json.loads(line) for line in text.splitlines()]


def test_every_line_is_answered_in_its_place(answered: bytes) -> None:
    found = rows(answered)
    assert [row["id"] for row in found] == [None if number in (77, 401) else number for number in range(600)]
    assert [row["line"] for row in found if "error" in row] == [78, 201, 402]
    assert all(row["inputs"]["task"]["value"] == TASKS[row["id"] % 5] for row in found if "error" not in row)


def test_several_processes_answer_the_same(many: Path, answered: bytes) -> None:
    result = subprocess.run([*COMMAND, str(many), "--jobs", "2"], capture_output=True, check=False)
    assert (result.returncode, result.stdout) == (3, answered)


def test_several_processes_fill_a_file(many: Path, answered: bytes, tmp_path: Path) -> None:
    target = tmp_path / "out"
    subprocess.run([*COMMAND, str(many), "--jobs", "2", "-o", str(target)], capture_output=True, check=False)
    assert target.read_bytes() == answered


@pytest.fixture
def talking() -> Iterator[subprocess.Popen[bytes]]:
    """A sweep of stdin, in a process group of its own as a shell would start it."""
    process = subprocess.Popen(
        [*COMMAND, "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with process:
        yield process
        process.kill()


def asked(process: subprocess.Popen[bytes], line: bytes) -> dict[str, Any]:
    """Write one line and wait for its answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line)
    process.stdin.flush()
    found = json.loads(process.stdout.readline())
    assert isinstance(found, dict)
    return found


def test_a_pipe_is_answered_line_by_line(talking: subprocess.Popen[bytes]) -> None:
    for number in range(9):
        assert asked(talking, scenario(number))["id"] == number
    assert asked(talking, b"[]\n")["error"]["code"] == "bad-line"
    assert talking.communicate()[0] == b""


@POSIX
def test_an_interrupt_ends_it_quietly(talking: subprocess.Popen[bytes]) -> None:
    asked(talking, scenario(1))
    os.killpg(talking.pid, signal.SIGINT)
    assert talking.wait() == 130
    assert talking.stderr is not None
    assert talking.stderr.read() == b"Interrupted.\n"


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end; what hangs is killed and fails."""
    try:
        return process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise


@POSIX
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_of_a_busy_sweep_leaves_whole_lines(tmp_path: Path, jobs: str) -> None:
    fifo, out = tmp_path / "fifo", tmp_path / "out"
    os.mkfifo(fifo)
    with out.open("wb") as sink:
        process = subprocess.Popen(
            [*COMMAND, str(fifo), "--jobs", jobs], stdout=sink, stderr=subprocess.PIPE, start_new_session=True
        )
        with process:
            with fifo.open("wb", buffering=0) as lines:
                for _ in range(40):
                    lines.write(b"".join(map(scenario, range(50))))
                os.killpg(process.pid, signal.SIGINT)
                code = ended(process)
            assert process.stderr is not None
            assert (code, process.stderr.read()) == (130, b"Interrupted.\n")
    rows(out.read_bytes())
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@POSIX
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_reader_that_has_enough_ends_it_quietly(many: Path, jobs: str) -> None:
    process = subprocess.Popen(
        [*COMMAND, str(many), "--jobs", jobs], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["id"] == 0
        process.stdout.close()
        assert process.stderr.read() == b""
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@POSIX
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_full_disk_keeps_what_was_written(many: Path, tmp_path: Path, jobs: str) -> None:
    """A limit on the size of files stands in for the disk."""
    out = tmp_path / "out"

    def limit() -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    with out.open("wb") as sink:
        result = subprocess.run(
            [*COMMAND, str(many), "--jobs", jobs], stdout=sink, stderr=subprocess.PIPE, preexec_fn=limit, check=False
        )
    assert result.returncode == 2
    assert result.stderr.startswith(b"Error: cannot write standard output: ")
    found = rows(out.read_bytes())
    assert 0 < len(found) < 600
    assert [row["id"] for row in found[:77]] == list(range(77))


SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGKILL") if hasattr(signal, name)]
LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")


def state_of(pid: int) -> tuple[str, int]:
    """State and parent of a process; a zombie where there is none any more."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "Z", 0
    return fields[0], int(fields[1])


def workers_of(master: int) -> list[int]:
    pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if state_of(pid)[1] == master]


def all_gone(pids: list[int]) -> bool:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if all(state_of(pid)[0] == "Z" for pid in pids):
            return True
        time.sleep(0.01)
    return False


@LINUX
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_to_the_sweep_alone_ends_it_with_its_processes(number: signal.Signals, tmp_path: Path) -> None:
    fifo, out = tmp_path / "fifo", tmp_path / "out"
    os.mkfifo(fifo)
    command = [*COMMAND, str(fifo), "--jobs", "2"]
    with (
        out.open("wb") as sink,
        subprocess.Popen(command, stdout=sink, stderr=subprocess.PIPE, start_new_session=True) as process,
    ):
        with fifo.open("wb", buffering=0) as lines:
            for _ in range(40):
                lines.write(b"".join(map(scenario, range(50))))
            workers = workers_of(process.pid)
            process.send_signal(number)
            code = ended(process)
        killed = number == signal.SIGKILL
        assert len(workers) == 2
        assert code == (-number if killed else 128 + number)
        assert process.stderr is not None
        assert process.stderr.read() == (b"" if killed else f"Ended by {number.name}.\n".encode())
    assert all_gone(workers)
    if not killed:
        rows(out.read_bytes())


@LINUX
def test_lines_of_a_killed_process_are_answered_by_another(tmp_path: Path) -> None:
    fifo, out = tmp_path / "fifo", tmp_path / "out"
    os.mkfifo(fifo)
    many = [b"".join(map(scenario, range(start, start + 100))) for start in range(0, 2000, 100)]
    with (
        out.open("wb") as sink,
        subprocess.Popen([*COMMAND, str(fifo), "--jobs", "2"], stdout=sink, stderr=subprocess.PIPE) as process,
    ):
        with fifo.open("wb", buffering=0) as lines:
            for number, block in enumerate(many):
                lines.write(block)
                if number == 10:
                    os.kill(workers_of(process.pid)[0], signal.SIGKILL)
        assert process.stderr is not None
        assert (ended(process), process.stderr.read()) == (0, b"")
    assert [row["id"] for row in rows(out.read_bytes())] == list(range(2000))


@POSIX
def test_a_signal_finishes_the_line_that_is_being_written() -> None:
    command = [*COMMAND, "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"".join(map(scenario, range(400))))
        process.stdin.flush()
        first = process.stdout.readline()
        time.sleep(0.5)  # the pipe is full, in the middle of a line
        process.send_signal(signal.SIGTERM)
        found = rows(first + process.stdout.read())
    assert process.returncode == 128 + signal.SIGTERM
    assert 0 < len(found) < 400


@POSIX
def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """As under nohup."""
    program = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", program, *COMMAND, "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert asked(process, scenario(1))["id"] == 1
        process.send_signal(signal.SIGHUP)
        assert asked(process, scenario(2))["id"] == 2
        process.communicate()
    assert process.returncode == 0


@POSIX
def test_lines_whose_process_is_killed_again_and_again_are_named() -> None:
    """What kills every process that is at it, as a lack of memory does, ends neither the sweep nor the other lines."""
    program = (
        "import os, sys, llmfeas.cli.workers as workers\n"
        "from llmfeas.cli import main\n"
        "master, whole = os.getpid(), workers.answered\n"
        "def deadly(items, options):\n"
        "    if os.getpid() != master and any(b'\"id\": 5,' in one.raw for one in items): os.kill(os.getpid(), 9)\n"
        "    return whole(items, options)\n"
        "workers.answered = deadly\n"
        "raise SystemExit(main(['sweep', '-', '--jobs', '2']))\n"
    )
    given = b"".join(map(scenario, range(20)))
    result = subprocess.run([sys.executable, "-c", program], input=given, capture_output=True, check=False)
    found = rows(result.stdout)
    lost = [row["id"] for row in found if row.get("error", {}).get("code") == "killed"]
    assert result.returncode == 3
    assert [row["id"] for row in found] == list(range(20))
    assert lost == [3, 4, 5, 6]  # the chunk that it is in
    assert found[5]["line"] == 6

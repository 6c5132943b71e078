"""Results are written whole or not at all, and a reader that goes away is no error."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome

from llmfeas.cli import output
from llmfeas.errors import UsageError

Run = Callable[..., Outcome]
LINUX = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which only Linux has")


def llmfeas(*arguments: str, **rest: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "llmfeas", *arguments], check=False, stderr=subprocess.PIPE, **rest)  # type: ignore[call-overload]


def test_a_file_gets_the_result_and_stdout_nothing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    assert run("schema", "-o", str(path)) == Outcome(0, "", "")
    assert "estimate\n" in path.read_text(encoding="utf-8")
    assert [entry.name for entry in tmp_path.iterdir()] == ["names.txt"]


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o600)
    output.write("né", str(path))
    assert path.read_text(encoding="utf-8") == "né"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    output.write("new", str(link))
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"


def test_dash_is_stdout(run: Run) -> None:
    assert run("schema", "-o", "-").out == run("schema").out


@pytest.mark.parametrize("path", ["{}", "{}/missing/x.json", "{}/" + "n" * 300, "{}/a\0b", ""])
def test_a_place_that_cannot_be_written(run: Run, tmp_path: Path, path: str) -> None:
    result = run("schema", "-o", path.format(tmp_path))
    assert result.code == 2
    assert result.err.startswith("Error: cannot write '")
    assert "-o FILE" in result.err
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_breaks_off_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt), output.stream(str(path)) as write:
        write("half")
        raise KeyboardInterrupt
    assert path.read_text(encoding="utf-8") == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


@LINUX
def test_a_full_disk(run: Run) -> None:
    result = run("schema", "-o", "/dev/full")
    assert result.code == 2
    assert "No space left on device" in result.err


@LINUX
def test_a_full_disk_behind_stdout() -> None:
    with Path("/dev/full").open("wb") as full:
        result = llmfeas("schema", stdout=full)
    assert result.returncode == 2
    assert result.stderr.decode() == (
        "Error: cannot write standard output: No space left on device. Choose another place with -o FILE.\n"
    )


def test_a_file_behind_stdout_that_fills_up_keeps_whole_lines_only(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="file size limits are those of Unix")
    program = (
        "import resource, signal, sys\n"
        "from llmfeas.cli import output\n"
        "from llmfeas.errors import UsageError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (25, 25))\n"
        "try:\n"
        "    with output.stream(None) as write:\n"
        "        for _ in range(9): write('123456789\\n')\n"
        "except UsageError as error: print(error, file=sys.stderr)\n"
    )
    assert resource
    path = tmp_path / "out"
    with path.open("wb") as sink:
        result = subprocess.run([sys.executable, "-c", program], stdout=sink, stderr=subprocess.PIPE, check=False)
    assert path.read_bytes() == b"123456789\n" * 2
    assert b"cannot write standard output: File too large." in result.stderr
    assert result.returncode == 0


@pytest.mark.parametrize("arguments", [["schema", "estimate"], ["--help"], ["estimate", "--help"], ["--version"]])
def test_a_closed_pipe_is_no_error(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        result = llmfeas(*arguments, stdout=write)
    finally:
        os.close(write)
    assert (result.returncode, result.stderr) == (0, b"")


def test_no_stdout_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(UsageError, match="standard output is closed"):
        output.write("x")
    output.flush()


def test_what_a_killed_run_left_does_not_stop_the_next(run: Run, tmp_path: Path) -> None:
    """In containers each run has the same process id."""
    (tmp_path / f".llmfeas-{os.getpid()}.part").write_text("half", encoding="utf-8")
    assert run("schema", "-o", str(tmp_path / "names.txt")) == Outcome(0, "", "")


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_a_run_that_is_ended_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "llmfeas", "sweep", "-", "-o", str(tmp_path / "out")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stdin is not None
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        while not list(tmp_path.iterdir()):
            assert process.poll() is None
        process.terminate()
        assert process.stderr.read() == b"Ended by SIGTERM.\n"
    assert process.returncode == 143
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["loop", "loop/inside"])
def test_links_that_lead_in_a_circle(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    found = run("schema", "-o", str(tmp_path / name))
    assert found.code == 2 and "cannot write" in found.err and "levels of symbolic links" in found.err

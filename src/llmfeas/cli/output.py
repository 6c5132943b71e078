"""The one place that writes results: to stdout, or to a file, or several, that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..errors import UsageError
from ..text import printable
from .ending import held, undoing


def write(text: str, path: str | None = None) -> None:
    """Write a result to stdout, or to the file `path` (`-` is stdout).

    Raises:
        UsageError: it cannot be written; nothing half-written is left in `path`.
        BrokenPipeError: nobody reads stdout any more.
    """
    if path is None or path == "-":
        _to_stdout(text)
        return
    target = Path(path)
    try:
        if target.exists() and not stat.S_ISREG(target.stat().st_mode) and not target.is_dir():
            target.write_text(text, encoding="utf-8")
        else:
            with whole_file(path) as descriptor:
                _write_all(descriptor, text.encode("utf-8"))
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from None


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[int]:
    """A descriptor of a hidden file beside `path` that takes its place at the end, if all went well."""
    target = Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(21, "it is a folder")
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    part = target.parent / f".llmfeas-{os.urandom(8).hex()}.part"

    def removed() -> None:
        part.unlink(missing_ok=True)

    with undoing(removed):
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            try:
                yield descriptor
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if mode is not None:
                part.chmod(mode)
            part.replace(target)
        except BaseException:
            removed()
            raise


@contextlib.contextmanager
def stream(path: str | None, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A function that writes whole lines one after the other, to stdout or to the file `path`.

    Raises:
        UsageError, BrokenPipeError: as `write`.
    """
    if path is None or path == "-":
        yield (lambda text: None) if quiet else _to_stdout
        return
    target = Path(path)
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            with target.open("wb", buffering=0) as sink:
                yield lambda text: _write_all(sink.fileno(), text.encode())
        else:
            with whole_file(path) as descriptor:
                yield lambda text: _write_all(descriptor, text.encode())
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from None


def flush() -> None:
    """Push out what is still on its way to stdout.

    Raises:
        UsageError, BrokenPipeError: as `write`.
    """
    if sys.stdout is not None:
        _to_stdout("")


def discard() -> None:
    """Let stdout lead nowhere, so that the interpreter's own last flush cannot fail."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _to_stdout(text: str) -> None:
    """Write to stdout now; a file behind it keeps nothing of a text that did not fit."""
    if sys.stdout is None:
        raise UsageError("cannot-write", "standard output is closed.", "Say -o FILE to write to a file.")
    try:
        sys.stdout.flush()
        descriptor = _descriptor()
        if descriptor is None:
            sys.stdout.write(text)
        else:
            _write_whole(descriptor, text.encode(sys.stdout.encoding or "utf-8", "replace"))
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        discard()
        raise unwritable("standard output", error) from None


def _descriptor() -> int | None:
    """stdout's descriptor, None where something in memory stands in for it."""
    try:
        return sys.stdout.fileno()
    except (OSError, ValueError):
        return None


def _write_whole(descriptor: int, data: bytes) -> None:
    is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    end = os.lseek(descriptor, 0, os.SEEK_CUR) if is_file else 0
    try:
        _write_all(descriptor, data)
    except OSError:
        if is_file:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, end)
        raise


def _write_all(descriptor: int, data: bytes) -> None:
    """Write whole lines: a signal that would end the program waits for the last one of them."""
    view = memoryview(data)
    with held():
        while view:
            view = view[os.write(descriptor, view) :]


def unwritable(path: str, error: Exception) -> UsageError:
    """The error of an output that cannot be written."""
    reason = getattr(error, "strerror", None) or str(error)
    name = path if path == "standard output" else repr(printable(path, 80))
    return UsageError("cannot-write", f"cannot write {name}: {reason}.", "Choose another place with -o FILE.")


def write_folder(files: Mapping[str, str], path: str, *, force: bool = False) -> None:
    """Write files (name to text) into the folder `path`, which is made if it is missing.

    Raises:
        UsageError: a file exists already and `force` is off, or something cannot be written; nothing is changed then.
    """
    target = Path(path)
    existing = [name for name in files if os.path.lexists(target / name)]
    if existing and not force:
        message = f"{printable(path, 80)!r} has {', '.join(existing)} already."
        raise UsageError("file-exists", message, "Choose another folder with -o DIR, or say --force.")
    try:
        with held():
            _write_files(files, target)
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from None


def _write_files(files: Mapping[str, str], target: Path) -> None:
    import shutil
    import tempfile

    new = not target.is_dir()
    staged = Path(tempfile.mkdtemp(prefix=".llmfeas-", dir=target.absolute().parent if new else target))
    try:
        for name, text in files.items():
            with (staged / name).open("x", encoding="utf-8", newline="\n") as sink:
                sink.write(text)
                sink.flush()
                os.fsync(sink.fileno())
        if new:
            staged.chmod(0o777 & ~_umask())
            staged.rename(target)
        else:
            _exchange(files, staged, target)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _exchange(files: Mapping[str, str], staged: Path, target: Path) -> None:
    """Move staged files into the folder; where one cannot be moved, put back all that was there."""
    old = staged / "old"
    old.mkdir()
    moved: list[str] = []
    try:
        for name in files:
            if os.path.lexists(target / name):
                (target / name).rename(old / name)
            moved.append(name)
            (staged / name).rename(target / name)
    except OSError:
        for name in reversed(moved):
            with contextlib.suppress(OSError):
                if (old / name).exists():
                    (old / name).replace(target / name)
                elif not (staged / name).exists():
                    (target / name).unlink()
        raise

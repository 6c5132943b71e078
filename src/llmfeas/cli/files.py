"""Results in files, one or several, that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..errors import UsageError, unwritable
from ..text import printable
from .ending import held, undoing, write_all


@contextlib.contextmanager
def lines_to(path: str) -> Iterator[Callable[[str], None]]:
    """A function that writes whole lines to the file `path`; to a pipe or a device they go at once.

    Raises:
        UsageError: it cannot be written; nothing half-written is left in `path`.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            with target.open("wb", buffering=0) as sink:
                yield lambda text: write_all(sink.fileno(), text.encode())
        else:
            with whole_file(path) as descriptor:
                yield lambda text: write_all(descriptor, text.encode())
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from None


def _meant(path: str) -> Path:
    """The file behind all links.

    Raises:
        OSError: they lead in a circle.
    """
    with contextlib.suppress(RuntimeError):  # so Python says before 3.13; after that it gives a link back
        found = Path(path).resolve()
        if not found.is_symlink():
            return found
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[int]:
    """A descriptor of a hidden file beside `path` that takes its place at the end, if all went well."""
    target = _meant(path)
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

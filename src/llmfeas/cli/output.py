"""The one place that writes results: to stdout, or to a file (`files`)."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator

from ..errors import UsageError, unwritable
from .ending import write_all


def write(text: str, path: str | None = None) -> None:
    """Write a result to stdout, or to the file `path` (`-` is stdout).

    Raises:
        UsageError: it cannot be written; nothing half-written is left in `path`.
        BrokenPipeError: nobody reads stdout any more.
    """
    if path is None or path == "-":
        _to_stdout(text)
        return
    from .files import lines_to

    with lines_to(path) as append:
        append(text)


@contextlib.contextmanager
def stream(path: str | None, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A function that writes whole lines one after the other, to stdout or to the file `path`.

    Raises:
        UsageError, BrokenPipeError: as `write`.
    """
    if path is None or path == "-":
        yield (lambda text: None) if quiet else _to_stdout
        return
    from .files import lines_to

    with lines_to(path) as append:
        yield append


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
        write_all(descriptor, data)
    except OSError:
        if is_file:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, end)
        raise

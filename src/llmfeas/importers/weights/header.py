"""Bounded reading of the first bytes of a file: nothing is believed before it is checked, weights are never read."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import IO, NoReturn

from ...errors import DataError, reason_of
from ...text import printable
from ...units import MIB


def bad_file(path: Path | str, reason: str, offset: int | None = None, hint: str = "") -> DataError:
    """The error of a file that cannot be used: which file, at which byte, why, and what to do."""
    place = "" if offset is None else f", byte {offset}"
    return DataError(
        "bad-model-file",
        f"{printable(path, 200)}{place}: {reason}",
        hint or "The file is damaged or of another format: download or convert it again.",
    )


def opened(path: Path) -> IO[bytes]:
    """A regular file, open to be read; what waits for a writer or never ends (a FIFO, a device) is refused unread.

    Raises:
        DataError: no regular file, or it cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
    except (OSError, ValueError) as error:
        raise bad_file(path, f"cannot be read ({reason_of(error)})") from error
    raise bad_file(path, "no regular file", hint="Only regular files are read.")


def bounded_bytes(path: Path, limit: int, what: str) -> bytes:
    """The whole of a regular file, which is `what`.

    Raises:
        DataError: no regular file, it cannot be read, or it is longer than `limit` bytes.
    """
    with opened(path) as stream:
        try:
            content = stream.read(limit + 1)
        except OSError as error:
            raise bad_file(path, f"cannot be read ({reason_of(error)})") from error
    if len(content) > limit:
        raise bad_file(path, f"{what} above {limit // MIB} MiB is not read")
    return content


def first_parts(files: Iterable[Path]) -> list[Path]:
    """Of files those that are whole, or the first of their parts."""
    return [file for file in files if "-of-" not in file.name or "-00001-of-" in file.name]


def numbered(path: Path, stem: str, count: int) -> list[Path]:
    """The files of a model that lies in so many parts, of which `path` is one."""
    return [path.parent / f"{stem}-{part:05d}-of-{count:05d}{path.suffix}" for part in range(1, count + 1)]


def present(requested: Path, paths: list[Path], what: str, hint: str) -> list[Path]:
    """The files of a model, its `what`.

    Raises:
        DataError: some are missing; the message names three of them.
    """
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        problem = f"{len(missing)} of {len(paths)} {what} are missing: {', '.join(missing[:3])}{more}"
        raise bad_file(requested, problem, hint=hint)
    return paths


class HeaderReader:
    """Little pieces from the start of a file, at most `limit` bytes of it, with the offset for messages."""

    def __init__(self, path: Path, stream: IO[bytes], size: int, limit: int) -> None:
        self.path = path
        self.size = size
        self.limit = limit
        self.position = 0
        self.order = "<"
        self._stream = stream
        self._buffer = bytearray()

    @property
    def passed(self) -> bytes:
        """All bytes in front of the present position."""
        return bytes(self._buffer[: self.position])

    def fail(self, reason: str, offset: int | None = None) -> NoReturn:
        """Refuse the file, at the present offset unless another is given."""
        raise bad_file(self.path, reason, self.position if offset is None else offset)

    def need(self, count: int, what: str) -> int:
        """Make `count` bytes available and give the offset where they start; the position moves behind them."""
        start = self.position
        end = start + count
        if end > self.size:
            self.fail(f"the file ends inside {what} ({count} bytes wanted, {max(0, self.size - start)} left)")
        if end > self.limit:
            self.fail(f"the header is longer than {self.limit // MIB} MiB, in {what}")
        if end > len(self._buffer):
            self._fill(end, what)
        self.position = end
        return start

    def _fill(self, end: int, what: str) -> None:
        wanted = min(self.limit, max(end, len(self._buffer) + MIB))
        try:
            self._buffer += self._stream.read(wanted - len(self._buffer))
        except OSError as error:
            self.fail(f"cannot be read ({reason_of(error)})")
        if len(self._buffer) < end:
            self.fail(f"the file ends inside {what}", len(self._buffer))

    def integer(self, code: str, what: str) -> int:
        """Read one integer (a `struct` letter)."""
        value: int = self.scalar(code, what)  # type: ignore[assignment]
        return value

    def scalar(self, code: str, what: str) -> int | float:
        """Read one number (a `struct` letter)."""
        start = self.need(struct.calcsize(code), what)
        value: int | float = struct.unpack_from(self.order + code, self._buffer, start)[0]
        return value

    def bytes(self, count: int, what: str) -> bytes:
        """Read raw bytes."""
        start = self.need(count, what)
        return bytes(self._buffer[start : start + count])

    def numbers(self, code: str, count: int, what: str) -> tuple[int | float, ...]:
        """Read `count` numbers of one kind."""
        start = self.need(struct.calcsize(code) * count, what)
        return struct.unpack_from(f"{self.order}{count}{code}", self._buffer, start)

    def skip_strings(self, length_code: str, count: int, what: str) -> None:
        """Pass over `count` strings, each after its length; the tight loop of a vocabulary of 250,000 words."""
        unpack = struct.Struct(self.order + length_code).unpack_from
        width = struct.calcsize(length_code)
        for _ in range(count):
            start = self.position
            if start + width > len(self._buffer):
                self.need(width, what)
            length = unpack(self._buffer, start)[0]
            end = start + width + length
            if end <= len(self._buffer):
                self.position = end
            else:
                self.position = start + width
                self.need(length, what)

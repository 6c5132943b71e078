"""Signals that end the program: what is half written is finished first, and the exit code says which one it was."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
"""Those that a person, a shell or a scheduler sends; Windows has the first two."""
SIGNALS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))
PATIENCE_SECONDS = 1.0
"""How long a text may still take to be written after a signal; a reader that stalls is not waited for."""


class Ended(BaseException):
    """A signal asked the program to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def name(self) -> str:
        """What the signal is called, such as SIGTERM."""
        return signal.Signals(self.number).name

    @property
    def exit_code(self) -> int:
        """128 and the signal's number, as shells have it."""
        return 128 + self.number


_depth = 0
_pending: int | None = None


def heed() -> None:
    """End in good order on each of the signals that is not ignored (as nohup and background jobs have it)."""
    for number in SIGNALS:
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    global _pending
    if not _depth or _pending is not None:
        _raise(number)
    _pending = number
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _out_of_patience)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)


def _out_of_patience(number: int, frame: FrameType | None) -> None:
    if _pending is not None:
        _raise(_pending)


def _raise(number: int) -> None:
    global _pending
    _pending = None
    raise KeyboardInterrupt if number == signal.SIGINT else Ended(number)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Hold the signals back until the end of the block, but not for long."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth and _pending is not None:
            if hasattr(signal, "setitimer"):
                signal.setitimer(signal.ITIMER_REAL, 0)
            _raise(_pending)


@contextlib.contextmanager
def blocked() -> Iterator[None]:
    """Keep the signals from this thread, and from processes that it starts until they call `serve_only`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve_only() -> None:
    """Make a process that serves another one deaf to what is meant for that one; SIGTERM ends it at once."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

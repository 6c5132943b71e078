"""Signals that end the program: what is half written goes, what runs beside it ends, the exit code says which it was.

Nothing is raised: a signal comes at any moment, and in an import, a `finally` or a `__del__` an exception is swallowed
or becomes another one. The handler itself undoes what is under way and ends the process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import NoReturn

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
"""Those that a person, a shell or a scheduler sends; Windows has the first two."""
SIGNALS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))
PATIENCE_SECONDS = 1.0
"""How long a text may still take to be written after a signal; a reader that stalls is not waited for."""

_depth = 0
_pending: int | None = None
_actions: list[Callable[[], None]] = []
"""What has to be done before the process may end, the last one first."""
_words: Mapping[int, str] = {}
"""What is said of each signal; made before one comes, since its handler can rely on no module being whole."""


def code_and_message(number: int) -> tuple[str, str]:
    """What is said of a signal: the code that scripts match on, and a sentence."""
    if number == signal.SIGINT:
        return "interrupted", "Interrupted."
    return "ended", f"Ended by {signal.Signals(number).name}."


def heed(worded: Callable[[str, str], str] = lambda code, message: message) -> None:
    """End in good order on each of the signals that is not ignored (as nohup and background jobs have it).

    `worded` makes of code and message what goes to stderr.
    """
    global _words
    _words = {number: worded(*code_and_message(number)) for number in SIGNALS}
    for number in SIGNALS:
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            signal.signal(number, _end)


@contextlib.contextmanager
def undoing(action: Callable[[], None]) -> Iterator[None]:
    """Within the block a signal does this before it ends the process; the action must not need a lock."""
    _actions.append(action)
    try:
        yield
    finally:
        _actions.remove(action)


def _end(number: int, frame: FrameType | None) -> None:
    global _pending
    if not _depth or _pending is not None:
        _exit(number)
    _pending = number
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda *alarm: _exit(number))
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)


def _exit(number: int) -> NoReturn:
    """Undo, say so, and end; a further signal waits for the undoing, and ends what stalls after it."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    for action in reversed(_actions):
        with contextlib.suppress(Exception):
            action()
    for each in SIGNALS:
        signal.signal(each, signal.SIG_DFL)
    to_stderr(_words.get(number, "") + "\n")
    os._exit(128 + number)


def to_stderr(text: str) -> None:
    """Write to stderr past all buffers, of which one may just be in use."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.write(sys.stderr.fileno(), text.encode())


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
            _exit(_pending)


def write_all(descriptor: int, data: bytes) -> None:
    """Write whole lines: a signal that would end the program waits for the last one of them."""
    view = memoryview(data)
    with held():
        while view:
            view = view[os.write(descriptor, view) :]


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

"""The conversation: what goes to stderr, how far a long command is, and what the terminal behind stdout can show."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

from ..text import shown
from .ending import to_stderr, undoing

SMALLEST_WIDTH = 32


def say(text: str) -> None:
    """Write a line to stderr; where nobody can read it, nothing happens."""
    settled()
    stream = sys.stderr
    if stream is None:
        return
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(shown(text, "\n").encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
    except (OSError, ValueError):
        return


def width() -> int:
    """The columns of the terminal; COLUMNS says it for a pipe, else 80. As `shutil`, whose import takes longer."""
    columns = 0
    with contextlib.suppress(KeyError, ValueError):
        columns = int(os.environ["COLUMNS"])
    if columns <= 0:
        with contextlib.suppress(AttributeError, ValueError, OSError):
            columns = os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
    return max(SMALLEST_WIDTH, columns if columns > 0 else 80)


def has_colour(no_colour: bool = False) -> bool:
    """Whether stdout gets escape codes.

    `--no-color`, NO_COLOR, TERM=dumb rule them out; FORCE_COLOR asks for them; else a terminal gets them, a pipe not.
    """
    if no_colour or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or is_terminal(sys.stdout)


def has_unicode() -> bool:
    """Whether stdout can show more than ASCII."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    return encoding.lower().replace("-", "").replace("_", "").startswith("utf")


def is_terminal(stream: object) -> bool:
    """Whether a person sits in front of the stream."""
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        return False


PATIENCE_SECONDS = 1.0
"""Work that takes longer says that it goes on."""

SHOWN_CURSOR = "\x1b[?25h\n"
"""Gives back the cursor that a bar hides, and leaves its line."""
CLEARED_LINE = f"\r{' ' * 50}\r"

_waiting: list[Callable[[], None]] = []
"""What ends the line that says so; empty where there is none."""


@contextlib.contextmanager
def patience(wanted: bool = True) -> Iterator[None]:
    """Where stderr is a terminal, say there from the first second on that the work goes on, until there is a result."""
    if not wanted or not is_terminal(sys.stderr):
        yield
        return
    from threading import Event, Thread
    from time import monotonic

    done, begin = Event(), monotonic()

    def show() -> None:
        shown = ""
        while not done.wait(PATIENCE_SECONDS):
            shown = f"Still at work, {monotonic() - begin:.0f} s; Ctrl-C ends it."
            _rewrite(shown)
        if shown:
            _rewrite(" " * len(shown))
            _rewrite("")

    thread = Thread(target=show, daemon=True)
    thread.start()

    def end() -> None:
        done.set()
        thread.join()

    _waiting.append(end)
    with undoing(lambda: to_stderr(CLEARED_LINE)):
        try:
            yield
        finally:
            settled()


def settled() -> None:
    """End the line that asks for patience: something else is about to be written."""
    while _waiting:
        _waiting.pop()()


def _rewrite(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"\r{line}")
        sys.stderr.flush()


@contextlib.contextmanager
def bar(total: int | None, wanted: bool) -> Iterator[Callable[[int], None]]:
    """A function that takes how many pieces of work were done since; it draws only where stderr is a terminal.

    Where results go to the terminal too they are the progress, and no bar is drawn among them.
    """
    settled()
    if not wanted or not is_terminal(sys.stderr) or is_terminal(sys.stdout):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        """Scenarios a second."""

        def render(self, task: Task) -> Text:
            """Show the rate once it is known."""
            return Text(f"{task.speed:,.0f}/s" if task.speed else "")

    console = Console(stderr=True, no_color=not has_colour(), highlight=False)
    columns = (BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with undoing(lambda: to_stderr(SHOWN_CURSOR)), Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=total)
        yield lambda done: progress.update(task, advance=done)

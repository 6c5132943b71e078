"""How far a long command is: a bar on stderr, for people only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from . import terminal


@contextlib.contextmanager
def bar(total: int | None, wanted: bool) -> Iterator[Callable[[int], None]]:
    """A function that takes how many pieces of work were done since; it draws only where stderr is a terminal.

    Where results go to the terminal too they are the progress, and no bar is drawn among them.
    """
    if not wanted or not terminal.is_terminal(sys.stderr) or terminal.is_terminal(sys.stdout):
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

    console = Console(stderr=True, no_color=not terminal.has_colour(), highlight=False)
    with Progress(BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("", total=total)
        yield lambda done: progress.update(task, advance=done)

"""`llmfeas learn LOG`: what an engine printed, beside what is estimated, and kept if that is asked for."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from ...contract import Note, envelope, given
from ...errors import UsageError, unreadable
from ...text import printable
from ..parameters import Command, Grouped, Output, outputs, paths, settings
from ..wanted import said

if TYPE_CHECKING:
    from ...evidence.learn import LearnedRun

EXAMPLE = "llmfeas learn server.log --device rtx-4090"
GROUP = "What is learned"


def run(**values: Any) -> None:
    """Read a log, compare what it tells with the estimates, and keep it with `--keep`.

    Raises:
        UsageError: nothing can be learned from it.
        DataError: it cannot be read; some of its runs could not be compared, after the others were shown.
    """
    from ...catalog.store import catalog
    from ...evidence.learn import learned

    output = Output.taken(values)
    name, keep = values.pop("log"), values.pop("keep")
    known = catalog()
    called = "standard input" if name == "-" else printable(name, 60)
    with _opened(name) as source:
        found = learned(source, called, said(values), known)
    problems = [each.problem for each in found.runs if each.problem is not None]
    if len(problems) == len(found.runs):
        raise problems[0]
    inputs = given({"log": name, **said(values), **({"keep": True} if keep else {})})
    notes = [Note(error.code, f"{error.message} {error.hint}".strip()) for error in problems]
    answer = envelope("learn", known.digest, inputs, found, notes)

    def report() -> Any:
        from ...render.pages.learn import report

        return report(answer["result"], called)

    output.write(answer, report)
    if keep:
        _keep(output, found.runs)


def _keep(output: Output, runs: Sequence[LearnedRun]) -> None:
    from ...evidence.own import measured_file
    from .backtest import kept

    rows = [each.row for each in runs if each.row is not None]
    narrowed, errors = kept(output, rows, measured_file(), calibrate=True)
    for each in narrowed:
        output.note(
            f"{each.kind} on {each.device}: our figure times {each.factor:.3g}, its range was {each.width_before:.2f} "
            f"times either way, is {each.width:.2f} ({each.rows} of your measurements)."
        )
    for error in errors:
        output.note(f"{error.message}. {error.hint}")


@contextlib.contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    """The bytes of a log; `-` is stdin.

    Raises:
        UsageError: it is no file.
        DataError: it cannot be read.
    """
    if name == "-":
        yield sys.stdin.buffer
        return
    path = Path(name)
    if path.is_dir() or (path.exists() and not path.is_file()):
        raise UsageError("bad-log", f"{printable(name, 80)!r} is no file.", "Give the file of a log, or - for stdin.")
    try:
        with path.open("rb") as source:
            yield source
    except (OSError, ValueError) as error:
        raise unreadable(name, error, code="cannot-read") from None


KEEP = "Keep what was measured as your own, in the user's folder; it narrows further answers for that machine."

command = Command(
    "learn",
    params=[
        click.Argument(["log"], metavar="LOG", shell_complete=paths),
        Grouped(["keep", "--keep"], is_flag=True, group=GROUP, help=KEEP),
        *settings(),
        *outputs(),
    ],
    callback=run,
    help="Read what vLLM, SGLang, llama-bench, llama.cpp, the Trainer of transformers, Megatron-LM or nvidia-smi "
    "printed, and show what was measured beside what is estimated. What the log does not say, options do. LOG is a "
    "file; -: stdin.",
    epilog=f"For example: {EXAMPLE}",
)

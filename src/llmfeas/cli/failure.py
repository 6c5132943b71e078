"""The one error handler: what a person, or with `--json` a script, gets to see, and the exit code."""

from __future__ import annotations

import errno
import itertools
import os
import sys
from collections.abc import Sequence

from ..errors import CheckFailedError, LlmfeasError, UsageError
from . import output, terminal

_FORMAT_SPELLINGS = frozenset({"-f", "-fnd", "-f=", "-f=nd", "--format=", "--format=nd"})

INTERRUPTED = 130


class BugError(LlmfeasError):
    """Something that no input should bring about: exit code 1."""

    exit_code = 1


def report_error(error: BaseException, arguments: Sequence[str]) -> int:
    """Say on stderr what went wrong, and return the exit code; a closed pipe is no error.

    Under LLMFEAS_DEBUG=1 an unexpected error keeps its traceback.
    """
    if isinstance(error, BrokenPipeError):
        output.discard()
        return 0
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        interrupted = LlmfeasError("interrupted", "Interrupted.")
        terminal.say(_as_json(interrupted) if wants_json(arguments) else interrupted.message)
        return INTERRUPTED
    known = error if isinstance(error, LlmfeasError) else _from_click(error) or _from_system(error)
    if known is None:
        if os.environ.get("LLMFEAS_DEBUG"):
            raise error
        known = as_bug(error)
    if isinstance(known, CheckFailedError) and has_flag(arguments, ("-q", "--quiet")):
        return known.exit_code
    terminal.say(_as_json(known) if wants_json(arguments) else _as_text(known))
    return known.exit_code


def has_flag(arguments: Sequence[str], names: Sequence[str]) -> bool:
    """Whether one of the flags was given; needed where parsing itself failed."""
    return any(argument in names for argument in _before_dashes(arguments))


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether errors are for a script: `--json`, or a format of the JSON family."""
    words = _before_dashes(arguments)
    if "--json" in words:
        return True
    spelled = [f"{flag}={value}" for flag, value in itertools.pairwise(words) if flag in ("-f", "--format")]
    return any(word.removesuffix("json") in _FORMAT_SPELLINGS for word in (*words, *spelled) if word.endswith("json"))


def _before_dashes(arguments: Sequence[str]) -> list[str]:
    words = list(arguments)
    return words[: words.index("--")] if "--" in words else words


def _as_json(error: LlmfeasError) -> str:
    import json

    return json.dumps({"error": error.to_dict()})


def _as_text(error: LlmfeasError) -> str:
    message = error.message[:1].lower() + error.message[1:] if error.message[1:2].islower() else error.message
    text = f"Error: {_ended(message)}"
    hint = error.hint[:1].upper() + error.hint[1:]
    return f"{text} {_ended(hint)}" if hint else text


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def as_bug(error: BaseException) -> BugError:
    """The error that stands for one that was not foreseen."""
    from ..text import printable

    what = printable(f"{type(error).__name__}: {error}", 200)
    hint = "It is not your input's fault. Please report it; LLMFEAS_DEBUG=1 shows where it happened."
    return BugError("bug", f"this is a bug of llmfeas ({what}).", hint)


def _from_system(error: BaseException) -> LlmfeasError | None:
    """Translate what the system refuses where no command foresaw it: a full disk, a name too long, a locked folder."""
    if not isinstance(error, OSError) or not error.strerror:
        return None
    from ..text import printable

    if error.filename is None and error.errno in (errno.ENOSPC, errno.EIO, errno.EFBIG):
        output.discard()
        return output.unwritable("standard output", error)
    where = f"{printable(error.filename, 80)!r}: " if error.filename is not None else ""
    return UsageError("system-error", f"{where}{error.strerror}.", "Check the path, and what you may do there.")


def _from_click(error: BaseException) -> LlmfeasError | None:
    """Translate an error of click; None if it is not one."""
    if "click" not in sys.modules:
        return None
    from .clickerrors import translated

    return translated(error)

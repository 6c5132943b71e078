"""The exceptions that a user can meet; each carries its exit code and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from .text import printable

LONGEST_MESSAGE, LONGEST_NAME = 4000, 200
"""Characters of what is said, and of one name: what files and other people wrote may be in it."""


class ErrorDict(TypedDict):
    """What is wrong."""

    code: str
    """Stable: scripts match on it."""
    message: str
    hint: str
    """What to do."""
    candidates: list[str]
    """Names that come near."""


class LlmfeasError(Exception):
    """Something that the user can mend: what happened, where, and what to do.

    `code` is stable (scripts match on it), `message` one sentence (or some, a line each), `hint` the next step,
    `candidates` near names. Whatever outside text they hold is made printable here.
    """

    exit_code = 2

    def __init__(self, code: str, message: str | Sequence[str], hint: str = "", candidates: Sequence[str] = ()) -> None:
        self.code = code
        lines = (message,) if isinstance(message, str) else message
        self.message = "\n".join(printable(line, LONGEST_MESSAGE) for line in lines)
        self.hint = printable(hint, LONGEST_MESSAGE)
        self.candidates = tuple(printable(name, LONGEST_NAME) for name in candidates)
        super().__init__(self.message)

    def __reduce__(self) -> tuple[type[LlmfeasError], tuple[str, list[str], str, tuple[str, ...]]]:
        return type(self), (self.code, self.message.split("\n"), self.hint, self.candidates)

    def to_dict(self) -> ErrorDict:
        """The error as JSON has it."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "candidates": list(self.candidates)}


class UsageError(LlmfeasError):
    """A wrong option, an unknown name, a contradiction: exit code 2."""

    exit_code = 2


class DataError(LlmfeasError):
    """A file that cannot be used (catalog, overlay, scenario, imported model): exit code 3."""

    exit_code = 3


class CheckFailedError(LlmfeasError):
    """The answer exists but breaks an expectation (`--check`, `check`): exit code 4."""

    exit_code = 4


class BugError(LlmfeasError):
    """Something that no input should bring about: exit code 1."""

    exit_code = 1


def did_you_mean(near: Sequence[str], otherwise: str = "") -> str:
    """The hint that one of some near names may be meant; without any, what it says `otherwise`."""
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else otherwise


def reason_of(error: BaseException) -> str:
    """Why the system refused something, in its words."""
    return getattr(error, "strerror", None) or str(error)


def of_system(error: BaseException) -> UsageError | None:
    """What the system refuses where nothing foresaw it: a name too long, a locked folder; None for another error."""
    if not isinstance(error, OSError) or not error.strerror:
        return None
    where = f"{printable(error.filename, 80)!r}: " if error.filename is not None else ""
    return UsageError("system-error", f"{where}{error.strerror}.", "Check the path, and what you may do there.")


def unforeseen(error: BaseException) -> LlmfeasError:
    """The error that stands for one that no command foresaw: the system's, or a bug of ours."""
    return of_system(error) or as_bug(error)


def as_bug(error: BaseException) -> BugError:
    """The error that stands for one that should not have happened."""
    what = printable(f"{type(error).__name__}: {error}", LONGEST_NAME)
    hint = "It is not your input's fault. Please report it; LLMFEAS_DEBUG=1 shows where it happened."
    return BugError("bug", f"this is a bug of llmfeas ({what}).", hint)


def unreadable(
    path: str, error: Exception, *, code: str = "file-unreadable", hint: str = "Check the path."
) -> DataError:
    """The error of a file that cannot be read."""
    what = "there is no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {reason_of(error)}"
    return DataError(code, f"{printable(path, 200)}: {what}", hint)


def unwritable(path: str, error: Exception) -> UsageError:
    """The error of an output that cannot be written."""
    name = path if path == "standard output" else repr(printable(path, 80))
    return UsageError("cannot-write", f"cannot write {name}: {reason_of(error)}.", "Choose another place with -o FILE.")

"""The one error handler: what a person, or with `--json` a script, gets to see, and the exit code."""

from __future__ import annotations

import errno
import itertools
import os
import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

from click import Choice, Context, Group, IntRange
from click.exceptions import BadOptionUsage, BadParameter, ClickException, MissingParameter, NoSuchOption
from click.exceptions import UsageError as ClickUsageError

from ..elsewhere import is_no_matter, ours
from ..errors import CheckFailedError, LlmfeasError, UsageError, as_bug, did_you_mean, of_system, unwritable
from ..options import OPTIONS
from ..text import printable
from . import output, terminal
from .ending import code_and_message
from .words import has_flag, wants_json

if TYPE_CHECKING:
    from ..feasibility.result import Verdict

INTERRUPTED = 130
SETTINGS = frozenset(flag for row in OPTIONS for flag in (row.short, *row.flags))
"""Options of every command that asks about a model."""


def report_error(error: BaseException, arguments: Sequence[str]) -> int:
    """Say on stderr what went wrong, and return the exit code; a closed pipe is no error.

    Under LLMFEAS_DEBUG=1 an unexpected error keeps its traceback.
    """
    if isinstance(error, BrokenPipeError):
        output.discard()
        return 0
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        interrupted = LlmfeasError(*code_and_message(signal.SIGINT))
        terminal.say(_as_json(interrupted) if wants_json(arguments) else interrupted.message)
        return INTERRUPTED
    known = error if isinstance(error, LlmfeasError) else translated(error, arguments) or _from_system(error)
    if known is None:
        if os.environ.get("LLMFEAS_DEBUG"):
            raise error
        known = as_bug(error)
    if isinstance(known, CheckFailedError) and has_flag(arguments, ("-q", "--quiet")):
        return known.exit_code
    terminal.say(_as_json(known) if wants_json(arguments) else as_text(known))
    return known.exit_code


def _as_json(error: LlmfeasError) -> str:
    import json

    return json.dumps({"error": error.to_dict()})


def as_text(error: LlmfeasError) -> str:
    """What a person reads of an error, in one line."""
    text = f"Error: {_ended(error.message)}"
    hint = error.hint[:1].upper() + error.hint[1:]
    return f"{text} {_ended(hint)}" if hint else text


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def _from_system(error: BaseException) -> LlmfeasError | None:
    """Translate what the system refuses where no command foresaw it; a full disk behind stdout has no name."""
    if isinstance(error, OSError) and error.filename is None and error.errno in (errno.ENOSPC, errno.EIO, errno.EFBIG):
        output.discard()
        return unwritable("standard output", error)
    return of_system(error)


def translated(error: BaseException, arguments: Sequence[str] = ()) -> LlmfeasError | None:
    """Our error for one of click's, at a command of these `arguments`; None if it is not click's."""
    if not isinstance(error, ClickException):
        return None
    see = f"See '{error.ctx.command_path} --help'." if isinstance(error, ClickUsageError) and error.ctx else ""
    if isinstance(error, NoSuchOption):
        return _unknown_option(error, see)
    if isinstance(error, MissingParameter):
        piped = "- reads standard input. " if _may_be_piped(error) else ""
        return UsageError("missing-option", f"{_name(error)} is missing.", piped + see)
    if isinstance(error, BadOptionUsage):
        return UsageError("bad-option", _sentence(error.message), see)
    if isinstance(error, BadParameter) and error.param is not None and isinstance(error.param.type, Choice):
        return _not_a_choice(error, list(map(str, error.param.type.choices)), see)
    if isinstance(error, BadParameter) and error.param is not None and isinstance(error.param.type, IntRange):
        return UsageError("bad-value", f"{_name(error)} must be a whole number {_bounds(error.param.type)}.", see)
    if isinstance(error, BadParameter):
        return UsageError("bad-value", f"{_name(error)}: {_sentence(error.message)}", see)
    message = error.format_message()
    if message.startswith(_SURPLUS):
        ctx = error.ctx if isinstance(error, ClickUsageError) else None
        return _surplus_words(message, arguments, _flags(ctx), see, several=_takes_several(ctx))
    return UsageError("usage", _sentence(message), see)


_SURPLUS = "Got unexpected extra argument"
NAMED = ("-m", "--model", "-d", "--device")
"""Options whose value is a name, which may have spaces."""


def _surplus_words(
    message: str, arguments: Sequence[str], known: Sequence[str], see: str, *, several: bool
) -> UsageError:
    """The error of words that belong to no option: a name with spaces and without quotes, or one without its option."""
    quoted = []
    for place, word in enumerate(arguments):
        if word in NAMED:
            name = list(itertools.takewhile(lambda each: not each.startswith("-"), arguments[place + 1 :]))
            together = ",".join(name) if several else f'"{" ".join(name)}"'
            quoted.append(f"{word} {printable(together, 60)}" if len(name) > 1 else "")
    meant = " ".join(filter(None, quoted))
    words = printable(message.partition("(")[2].removesuffix(")"), 80)
    if meant and "--device" in known and not _said(NAMED[2:], arguments):
        meant += "; a device stands behind --device"
    rule = "A name with spaces needs quotes, several names commas" if several else "A name with spaces needs quotes"
    hint = f"{rule}: {meant}" if meant else _without_option(words, arguments, known) + see
    return UsageError("usage", f"no option takes these words: {words}.", hint)


def _without_option(words: str, arguments: Sequence[str], known: Sequence[str]) -> str:
    """Which option the words may belong to: -q, which elsewhere is a format, or the first name that is missing."""
    if "-q" in arguments and "--quant" in known:
        return f"-q is --quiet; a format stands behind --quant: --quant {words}. "
    missing = [pair[1] for pair in (NAMED[:2], NAMED[2:]) if pair[1] in known and not _said(pair, arguments)]
    named = words.split()
    if missing and len(named) == len(missing):
        return f"Did you mean {' '.join(f'{option} {word}' for option, word in zip(missing, named, strict=True))}? "
    name = f'"{words}"' if " " in words else words
    return f"Did you mean {missing[0]} {name}? " if missing else ""


def _said(pair: Sequence[str], arguments: Sequence[str]) -> bool:
    return any(word.partition("=")[0] in pair for word in arguments)


def _unknown_option(error: NoSuchOption, see: str) -> UsageError:
    message = f"there is no option {printable(error.option_name, 40)}."
    known = _flags(error.ctx)
    said = ours(error.option_name)
    if said is not None and set(said.flags) <= set(known):
        return UsageError("unknown-option", message, f"Here it is {said.text}. {see}", said.flags)
    if is_no_matter(error.option_name):
        return UsageError("unknown-option", message, "It changes neither memory nor time: leave it out.")
    if error.ctx and isinstance(error.ctx.command, Group) and error.option_name in ("--json", *SETTINGS):
        path = f"{error.ctx.command_path} COMMAND" if error.ctx.parent else "llmfeas estimate"
        hint = f"Write it behind a command: {path} ... {error.option_name}. {see}"
        return UsageError("unknown-option", message, hint)
    near = _near(error.option_name, known)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    return UsageError("unknown-option", message, meant + see, near)


def _not_a_choice(error: BadParameter, choices: list[str], see: str) -> UsageError:
    from difflib import get_close_matches

    wrong = error.message.split("'")[1][:40].lower() if "'" in error.message else ""
    near = get_close_matches(wrong, choices, n=2)
    hint = f"{did_you_mean(near)} {see}".strip()
    return UsageError("bad-choice", f"{_name(error)}: {_sentence(error.message)}", hint, near)


def _flags(ctx: Context | None) -> list[str]:
    return [flag for parameter in ctx.command.params for flag in parameter.opts] if ctx else []


def _takes_several(ctx: Context | None) -> bool:
    """Whether a command takes several devices."""
    return ctx is not None and any(
        "--device" in each.opts and getattr(each, "multiple", False) and each.callback is None
        for each in ctx.command.params
    )


def _near(name: str, known: Sequence[str]) -> list[str]:
    """Options spelled like one; the dashes that all begin with are no likeness."""
    from difflib import get_close_matches

    bare = {flag.lstrip("-"): flag for flag in known if flag.startswith("--") or not name.startswith("--")}
    return [bare[each] for each in get_close_matches(name[:40].lstrip("-"), bare, n=2)]


def _bounds(kind: IntRange) -> str:
    return f"of at least {kind.min}" if kind.max is None else f"from {kind.min} to {kind.max}"


def _name(error: BadParameter) -> str:
    parameter = error.param
    if parameter is None:
        return "a value"
    flags = [flag for flag in parameter.opts if flag.startswith("--")]
    return flags[0] if flags else str(parameter.name)


def _may_be_piped(error: BadParameter) -> bool:
    return error.param is not None and (error.param.metavar or "").endswith("|-")


def _sentence(text: str) -> str:
    safe = printable(text, 300)
    return safe if safe.endswith((".", "?", "!")) else safe + "."


REFUSED = ("infeasible", "unsupported")
UNKNOWN = "no-price"
"""The reason of a budget that nothing could be held against: what could not be checked has not passed."""


def fails(verdict: Verdict, *, strict: bool = False) -> bool:
    """Whether a verdict breaks a check."""
    status = verdict.status
    return status in REFUSED or (strict and status == "tight") or any(r.code == UNKNOWN for r in verdict.reasons)


def failure(verdict: Verdict) -> str:
    """What breaks the check, and nothing else."""
    from ..feasibility.verdict import why

    judged = verdict.status if verdict.status in (*REFUSED, "tight") else "not all could be checked"
    return f"the check failed, {judged}: {why(verdict)}"

"""Errors that click finds while it reads the command line, in our own words."""

from __future__ import annotations

from click import Choice, Context, IntRange
from click.exceptions import (
    BadOptionUsage,
    BadParameter,
    ClickException,
    MissingParameter,
    NoSuchOption,
)
from click.exceptions import UsageError as ClickUsageError

from ..errors import LlmfeasError, UsageError
from ..text import printable


def translated(error: BaseException) -> LlmfeasError | None:
    """Our error for one of click's; None if it is not click's."""
    if not isinstance(error, ClickException):
        return None
    see = f"See '{error.ctx.command_path} --help'." if isinstance(error, ClickUsageError) and error.ctx else ""
    if isinstance(error, NoSuchOption):
        return _unknown_option(error, see)
    if isinstance(error, MissingParameter):
        return UsageError("missing-option", f"{_name(error)} is missing.", see)
    if isinstance(error, BadOptionUsage):
        return UsageError("bad-option", _sentence(error.message), see)
    if isinstance(error, BadParameter) and error.param is not None and isinstance(error.param.type, Choice):
        return _not_a_choice(error, list(map(str, error.param.type.choices)), see)
    if isinstance(error, BadParameter) and error.param is not None and isinstance(error.param.type, IntRange):
        return UsageError("bad-value", f"{_name(error)} must be a whole number {_bounds(error.param.type)}.", see)
    if isinstance(error, BadParameter):
        return UsageError("bad-value", f"{_name(error)}: {_sentence(error.message)}", see)
    return UsageError("usage", _sentence(error.format_message()), see)


def _unknown_option(error: NoSuchOption, see: str) -> UsageError:
    near = _near(error.option_name, error.ctx)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    message = f"there is no option {printable(error.option_name, 40)}."
    return UsageError("unknown-option", message, meant + see, near)


def _not_a_choice(error: BadParameter, choices: list[str], see: str) -> UsageError:
    from difflib import get_close_matches

    wrong = error.message.split("'")[1][:40].lower() if "'" in error.message else ""
    near = get_close_matches(wrong, choices, n=2)
    meant = f"Did you mean {' or '.join(repr(each) for each in near)}? " if near else ""
    return UsageError("bad-choice", f"{_name(error)}: {_sentence(error.message)}", meant + see, near)


def _near(name: str, ctx: Context | None) -> list[str]:
    from difflib import get_close_matches

    known = [flag for parameter in ctx.command.params for flag in parameter.opts] if ctx else []
    return get_close_matches(name[:40], known, n=2)


def _bounds(kind: IntRange) -> str:
    return f"of at least {kind.min}" if kind.max is None else f"from {kind.min} to {kind.max}"


def _name(error: BadParameter) -> str:
    parameter = error.param
    if parameter is None:
        return "a value"
    flags = [flag for flag in parameter.opts if flag.startswith("--")]
    return flags[0] if flags else str(parameter.name)


def _sentence(text: str) -> str:
    safe = printable(text, 300)
    return safe if safe.endswith((".", "?", "!")) else safe + "."

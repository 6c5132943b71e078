"""The command `llmfeas`: a group whose commands are imported only when they are used."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from .. import __version__
from ..errors import UsageError, did_you_mean
from ..text import printable
from .words import COMPLETION_VARIABLE as COMPLETION_VARIABLE

PROGRAM = "llmfeas"

COMMANDS: Mapping[str, str] = {
    "estimate": "Can this model be trained, fine-tuned or served on this device?",
    "compare": "Devices side by side.",
    "plan": "What would have to change so that it works?",
    "solve": "Asked backwards: the largest, the fewest, how many tokens.",
    "launch": "The recipe as a real engine's configuration and command.",
    "sweep": "Estimate many scenarios from a file or a pipe.",
    "backtest": "Our figures beside published measurements.",
    "learn": "What a log says was measured, beside ours; kept if asked.",
    "check": "Expectations for continuous integration.",
    "claims": "What two articles say, computed anew.",
    "diff": "What changed between two stored estimates.",
    "devices": "Devices that the catalog knows.",
    "models": "Models that the catalog knows.",
    "backends": "What works on which backend.",
    "offers": "Machines to rent or borrow as a whole.",
    "mcp": "The same for coding agents, as tools.",
    "detect": "This machine as devices of the catalog.",
    "catalog": "One's own entries: where they are looked for, checked, begun.",
    "page": "The calculator as a page in the browser.",
    "schema": "JSON Schemas of what goes in and out.",
    "completion": "Completion of commands, options and names in a shell.",
}
"""Each command's name, which is also its file, with what it does."""

MEANT: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("explain", "why", "derive"), ("estimate --explain",)),
    **dict.fromkeys(("memory", "vram", "fit", "fits", "calc", "calculate", "predict", "run", "cost"), ("estimate",)),
    **dict.fromkeys(("versus", "vs", "rank"), ("compare",)),
    **dict.fromkeys(("recommend", "suggest", "advise", "fix", "remedies"), ("plan",)),
    **dict.fromkeys(("export", "config", "configure"), ("launch",)),
    **dict.fromkeys(("validate", "assert", "expect", "ci"), ("check",)),
    **dict.fromkeys(("benchmark", "benchmarks", "accuracy", "measurements"), ("backtest",)),
    **dict.fromkeys(("gpu", "gpus", "cards", "hardware", "accelerators"), ("devices",)),
    **dict.fromkeys(("engine", "engines", "frameworks", "support"), ("backends",)),
    **dict.fromkeys(("price", "prices", "cloud", "clouds", "rent"), ("offers",)),
    **dict.fromkeys(("search", "show", "list", "info"), ("models", "devices")),
    **dict.fromkeys(("web", "ui", "browser"), ("page",)),
    **dict.fromkeys(("settings", "options"), ("estimate --help",)),
    **{word: (f"--{word}",) for word in ("help", "version")},
}
"""What a word is about that is no command."""

EPILOG = "Start with: llmfeas estimate --model gpt2-xl --device rtx-4070ti"


class CommandGroup(click.Group):
    """A group that knows the commands near a wrong one, and shows its help where none is named.

    `meant`: which command a word of another name is about.
    """

    def __init__(self, name: str | None = None, *, meant: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(name, **more)
        self.meant = meant or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; none at all means help."""
        return super().parse_args(ctx, args or ["--help"])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names.

        Raises:
            UsageError: there is none of that name; near ones are candidates.
        """
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            raise unknown_command(args[0], known, f"{ctx.command_path} --help", self.about(args[0]))
        return super().resolve_command(ctx, args)

    def about(self, name: str) -> Sequence[str]:
        """What a name that is none of a command is about."""
        words = name.lower().replace("_", "-").split("-")
        return list(dict.fromkeys(self.meant[word] for word in words if word in self.meant))


class LazyGroup(CommandGroup):
    """A group that imports a command's module when the command is asked for; help needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order in which a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, whose module is imported; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"{__package__}.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def about(self, name: str) -> Sequence[str]:
        """What a name that is none of a command is about: a question of `solve`, a task, or a command."""
        from ..elsewhere import ours
        from ..planning.solve import QUESTIONS

        word = name.lower().replace("_", "-")
        task = ours(word)
        if word in QUESTIONS:
            return (f"solve {word}",)
        return (f"estimate {task.text}",) if task and task.flags == ("--task",) else MEANT.get(word, ())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def unknown_command(name: str, known: Sequence[str], help_command: str, meant: Sequence[str] = ()) -> UsageError:
    """The error of a command that does not exist, with those that are `meant`, else the names that come near."""
    from difflib import get_close_matches

    near = [*meant] or get_close_matches(name[:40], known, n=2, cutoff=0.5)
    message = f"there is no command {printable(name, 40)!r}."
    asked = "To ask about a model: llmfeas estimate -m MODEL -d DEVICE." if "estimate" in known else ""
    hint = f"{did_you_mean(near, asked)} See '{help_command}'.".lstrip()
    return UsageError("unknown-command", message, hint, near)


def subgroup(
    name: str, help: str, commands: Sequence[click.Command], meant: Mapping[str, str] | None = None
) -> click.Group:
    """A group of commands such as `llmfeas devices`; without a command it shows its help."""
    return CommandGroup(name, help=help, commands={str(command.name): command for command in commands}, meant=meant)


def run(arguments: list[str]) -> int:
    """Run the command that the arguments name, or answer the shell's completion; return the exit code.

    click's own `main` is not used: it ends the process itself on a closed pipe, with exit code 1.
    """
    group = app()
    instruction = os.environ.get(COMPLETION_VARIABLE)
    if instruction:
        return _completed(group, instruction)
    try:
        with group.make_context(PROGRAM, arguments) as context:
            group.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return 0


def _completed(group: click.Group, instruction: str) -> int:
    """Answer the shell.

    Raises:
        UsageError: what the shell's variables say makes no sense.
    """
    from .shells import answered

    try:
        if answered(group, PROGRAM, COMPLETION_VARIABLE, instruction):
            return 0
    except (KeyError, ValueError):
        pass
    text = f"{COMPLETION_VARIABLE}={printable(instruction, 40)!r}, or what goes with it, is nothing that a shell asks."
    raise UsageError("bad-completion", text, f"Unset {COMPLETION_VARIABLE}; 'llmfeas completion' sets completion up.")


def app() -> click.Group:
    """The command line's outermost group."""
    version: Any = click.version_option(
        __version__, "-V", "--version", prog_name=PROGRAM, message="%(prog)s %(version)s"
    )
    group = LazyGroup(
        PROGRAM,
        help="Can this language model be trained, fine-tuned or served on this hardware; how long will it take, what "
        "will it cost, and what would have to change?",
        epilog=EPILOG,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    return version(group)  # type: ignore[no-any-return]

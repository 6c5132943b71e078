"""`llmfeas completion`: what a shell needs to complete commands, options and names."""

from __future__ import annotations

import click

from ...errors import UsageError
from .. import output
from ..app import COMPLETION_VARIABLE, PROGRAM, app
from ..parameters import Command

SHELLS = ("bash", "zsh", "fish")


def run(shell: str) -> None:
    """Print the script that the shell is to read.

    Raises:
        UsageError: this shell is too old or not known.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError("unknown-shell", f"no completion for the shell {shell!r}.", f"There is {', '.join(SHELLS)}.")
    output.write(kind(app(), {}, PROGRAM, COMPLETION_VARIABLE).source())


command = Command(
    "completion",
    params=[click.Argument(["shell"], type=click.Choice(SHELLS))],
    callback=run,
    help="Print a script that completes commands, options, models and devices. For bash, put "
    'eval "$(llmfeas completion bash)" into ~/.bashrc.',
)

"""What a shell is answered that asks how a word goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.shell_completion import ShellComplete, get_completion_class

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem


def answered(group: click.Group, program: str, variable: str, instruction: str) -> bool:
    """Print what completes a word (`zsh_complete`), or the script that asks for it (`zsh_source`); whether it was that.

    Raises:
        KeyError: variables that go with it are missing.
        ValueError: they are no numbers.
    """
    shell, _, what = instruction.partition("_")
    kind = get_completion_class(shell)
    if kind is None or what not in ("complete", "source"):
        return False
    asked = _asked(kind)(group, {}, program, variable)
    print(asked.complete() if what == "complete" else asked.source())
    return True


def _asked(kind: type[ShellComplete]) -> type[ShellComplete]:
    """A kind of shell where `--model=lla` goes on as well: bash takes it for three words, the others for one."""

    class Joining(kind):  # type: ignore[misc,valid-type]
        def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
            found: list[CompletionItem] = super().get_completions([word for word in args if word != "="], incomplete)
            option, sign, _ = incomplete.partition("=")
            if sign and option.startswith("--"):
                for each in found:
                    each.value = option + sign + each.value if each.type == "plain" else each.value
            return found

    return Joining

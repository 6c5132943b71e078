"""Commands for a POSIX shell, one option a line; what stands in a word is quoted, what stands for an address is not."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from ...record import dataclass
from ..nodes import Nodes

PORT = 29500
"""The port on which the first machine waits for the others, as torchrun has it."""
WIDTH = 100


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the shell, which the user sets: an address, the rank of a machine."""

    name: str
    suffix: str = ""


Word = str | int | float | Variable


def nodes_note(nodes: Nodes, more: str = "") -> tuple[str, ...]:
    """Say what to do on several machines, and what `more`; nothing for one."""
    if not nodes.several:
        return ()
    return (
        f"run the command on each of the {nodes.count} machines, with MASTER_ADDR the address of the first one and "
        f"NODE_RANK from 0 to {nodes.count - 1}{more}",
    )


def meeting(nodes: Nodes, rank: str, address: str, port: str = "") -> list[list[Word]]:
    """The options that tell one machine from the others and where they meet; none for one machine."""
    if not nodes.several:
        return []
    own: list[list[Word]] = [[rank, Variable("NODE_RANK")], [address, Variable("MASTER_ADDR")]]
    return [*own, [port, PORT]] if port else own


def word(value: Word) -> str:
    """Write one word of a command."""
    if isinstance(value, Variable):
        return f'"${{{value.name}}}{value.suffix}"' if value.suffix else f'"${value.name}"'
    return shlex.quote(number(value) if isinstance(value, float) else str(value))


def number(value: float) -> str:
    """Write a number without an exponent where that is short."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.12g}"


def flags(settings: Iterable[tuple[str, Word | bool | Sequence[Word] | None]]) -> list[list[Word]]:
    """Make options: True stands alone, False and None are left out, a list gives several words."""
    made: list[list[Word]] = []
    for flag, value in settings:
        if value is None or value is False:
            continue
        if value is True:
            made.append([flag])
        elif isinstance(value, list | tuple):
            made.append([flag, *value])
        else:
            made.append([flag, value])  # type: ignore[list-item]
    return made


def command(program: Sequence[Word], *options: Sequence[Word]) -> str:
    """Write a command: on one line where it is short, else an option a line."""
    parts = [" ".join(word(each) for each in part) for part in (program, *options)]
    line = " ".join(parts)
    return line if len(line) <= WIDTH else " \\\n  ".join(parts)


IN_BACKGROUND = " &"


def started(line: str) -> str:
    """A command that runs beside those that follow."""
    return line + IN_BACKGROUND

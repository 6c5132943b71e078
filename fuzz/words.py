"""Command lines: every command with its options, in values that fit, values at their bounds, and values that do not."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import click

from . import hostile
from .holds import answered, faults

NEVER = ("detect", "this", "mcp")
"""What asks the machine beneath, or talks to another program by its own protocol, which is no matter of words."""
MODELS = ("gpt2", "gpt2-xl", "llama-3-8b", "mixtral-8x7b", "qwen3-0.6b", "gemma-3-27b", "deepseek-v3", "mamba-2.8b")
DEVICES = (
    "rtx-4090",
    "t4",
    "h100-sxm",
    "8xh100-sxm",
    "64xgb200",
    "m2-ultra",
    "tpu-v5e",
    "mi300x",
    "epyc-9654",
    "colab",
)


@functools.cache
def commands() -> dict[tuple[str, ...], click.Command]:
    """Every command by its words."""
    from llmfeas.cli.app import app

    found: dict[tuple[str, ...], click.Command] = {}
    context = click.Context(app())

    def add(words: tuple[str, ...], command: click.Command) -> None:
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                if inner is not None and name not in NEVER:
                    add((*words, name), inner)
        else:
            found[words] = command

    add((), app())
    return found


@functools.cache
def known(kind: str) -> list[str]:
    """The ids of the catalog."""
    from llmfeas.catalog.store import built_in

    return list(getattr(built_in(), kind))


def model(chance: Random) -> str:
    """A model, one of a few more often than not."""
    return chance.choice(MODELS) if chance.random() < 0.6 else chance.choice(known("models"))


def device(chance: Random) -> str:
    """A device with a count at times."""
    name = chance.choice(DEVICES) if chance.random() < 0.5 else chance.choice(known("devices"))
    return name if chance.random() < 0.8 or name[0].isdigit() else f"{chance.choice((2, 4, 8, 64, 1000))}x{name}"


def setting(row: Any, chance: Random) -> str:
    """A value that a setting may have, its bounds among them."""
    if row.name == "model":
        return model(chance)
    if row.name == "device":
        return device(chance)
    if row.choices:
        return chance.choice(row.choices)
    if row.kind == "text":
        return chance.choice(("pytorch", "vllm", "llama.cpp", "megatron", "2:6", "mtp", "gpt2", "0.19.0", "unsloth"))
    low, high = max(row.minimum, 1e-6), row.maximum
    number = chance.choice((row.minimum, row.maximum, low * (high / low) ** (chance.random() ** 2)))
    whole = row.kind in ("integer", "count", "bytes")
    shown = str(int(number)) if whole else f"{number:.6g}"
    return shown + {"bytes": "B", "duration": "s"}.get(row.kind, "")


def _value(parameter: click.Parameter, chance: Random) -> str:
    from llmfeas.options import BY_NAME

    if chance.random() < 0.15:
        return hostile.argument(chance)
    if parameter.name in BY_NAME:
        return setting(BY_NAME[parameter.name], chance)
    if isinstance(parameter.type, click.Choice):
        return str(chance.choice(parameter.type.choices))
    if isinstance(parameter.type, click.IntRange):
        return str(chance.choice((parameter.type.min, parameter.type.max or 100, 3)))
    if "model" in str(parameter.name):
        return model(chance)
    if "device" in str(parameter.name) or parameter.name == "baseline":
        return device(chance)
    return chance.choice(("gpt2", "rtx-4090", "-", "file.json", "1", "x", hostile.argument(chance)))


def words(chance: Random) -> list[str]:
    """One command line; a command is drawn as often as it has words to vary."""
    named = commands()
    name = chance.choices(list(named), [len(command.params) for command in named.values()])[0]
    command = named[name]
    line = list(name)
    often = chance.random() * 0.3
    for parameter in command.params:
        required = parameter.name in ("model", "device") or isinstance(parameter, click.Argument)
        if parameter.name in ("jobs", "serve") or chance.random() >= (0.9 if required else often):
            continue
        if isinstance(parameter, click.Argument):
            line += [_value(parameter, chance) for _ in range(1 if parameter.nargs == 1 else chance.randint(1, 3))]
            continue
        flag = chance.choice(parameter.opts)
        takes = isinstance(parameter, click.Option) and not parameter.is_flag
        line += [flag, _value(parameter, chance)] if takes else [flag]
    for _ in range(chance.choice((0, 0, 0, 0, 1, 2))):
        line.insert(chance.randrange(len(line) + 1), hostile.argument(chance))
    return line


def command_lines(chance: Random, folder: Path) -> Iterator[str]:
    """Any command with any options."""
    yield from faults(answered(words(chance)))


SETTINGS = ("estimate", "estimate", "estimate", "plan", "compare", "launch")


def question(chance: Random) -> dict[str, str]:
    """Settings of one question that fit each by itself; of its task, for the most part."""
    from llmfeas.options import OPTIONS, TASKS

    task = chance.choice(TASKS)
    asked = {"model": model(chance), "device": device(chance), "task": task}
    often = chance.random() * 0.3
    for row in OPTIONS:
        if row.name not in asked and chance.random() < often and (task in row.tasks or chance.random() < 0.05):
            asked[row.name] = setting(row, chance)
    return asked


def settings(chance: Random, folder: Path) -> Iterator[str]:
    """Questions whose settings are all within their bounds."""
    from llmfeas.options import BY_NAME

    asked = question(chance)
    command = chance.choice(SETTINGS)
    format = chance.choice(("json", "json", "table", "markdown", "csv", "ndjson"))
    line = [command]
    if command == "compare":
        line += ["--device", device(chance)]
    for name, value in asked.items():
        line += [BY_NAME[name].flag, value]
    line += ["-f", format] if command != "launch" or format in ("json", "table") else []
    yield from faults(answered(line))


def sweeps(chance: Random, folder: Path) -> Iterator[str]:
    """Lines of a sweep, good and broken ones."""
    lines = []
    for number in range(chance.randint(1, 4)):
        asked: Any = {"id": number, **question(chance)}
        if chance.random() < 0.5:
            asked = hostile.mutated(asked, chance)
        line = hostile.dumped(asked)
        lines.append(line[: chance.randrange(len(line))] if chance.random() < 0.1 else line)
    path = folder / chance.choice(("sweep.ndjson", "sweep.yaml", "sweep"))
    path.write_text("\n".join(lines), "utf-8", "surrogatepass")
    yield from faults(answered(["sweep", str(path), "-f", chance.choice(("ndjson", "csv"))]))


def laws(chance: Random, folder: Path) -> Iterator[str]:
    """A question held against one of the laws that an expert expects."""
    from llmfeas.errors import LlmfeasError
    from llmfeas.planning.answer import bare_answer

    from .laws import LAWS, broken, broken_alone, drawn

    law = chance.choice(LAWS)
    asked = drawn(chance.randrange(2**32), law.tasks)
    fault = broken(law, asked)
    if fault:
        yield fault
    try:
        yield from (f"{each} for {asked}" for each in broken_alone(bare_answer(asked)))
    except LlmfeasError:
        return


def agreements(chance: Random, folder: Path) -> Iterator[str]:
    """A promise of an answer held against the answer to its own question."""
    from .agreement import AGREEMENTS, asked, broken

    agreement = chance.choice(AGREEMENTS)
    yield from broken(agreement, asked(chance.randrange(2**32), agreement.tasks))

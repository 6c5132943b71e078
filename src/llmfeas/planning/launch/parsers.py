"""How engines' own parsers are asked to read a recipe: what several launchers share."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from itertools import dropwhile
from pathlib import Path
from typing import Any

from ...units import MIB
from .launcher import Launch
from .shell import IN_BACKGROUND

LIMIT_SECONDS = 180.0
MOST_CHARACTERS = 4 * MIB
ANYWHERE = {"use_cpu": True, "tf32": None}
"""What a Trainer's settings need to be read on a machine without the devices that they are for."""


class NotHereError(Exception):
    """The engine is not installed here."""


def words(launch: Launch) -> list[str]:
    """The last command of a launch as a shell splits it; variables stand as their names."""
    return shlex.split(launch.command.replace("\\\n", " ").splitlines()[-1].replace("$", ""))


def arguments(launch: Launch) -> list[str]:
    """The same without what is set before it, as a machine runs it on which every variable is 1."""
    line = shlex.split(re.sub(r"\$\{?\w+\}?", "1", launch.command.replace("\\\n", " ").splitlines()[-1]))
    return line[next(place for place, word in enumerate(line) if "=" not in word) :]


def commands(launch: Launch, *program: str) -> Iterator[list[str]]:
    """Yield what stands behind a program in each of its commands, as a machine runs them on which variables are 1."""
    for text in launch.command.replace("\\\n", " ").splitlines():
        line = shlex.split(re.sub(r"\$\{?\w+\}?", "1", text.removesuffix(IN_BACKGROUND)))
        behind = [*dropwhile(lambda word: "=" in word, line)]
        if tuple(behind[: len(program)]) == program:
            yield behind[len(program) :]


def module(name: str) -> Any:
    """A module of an engine.

    Raises:
        NotHereError: the engine is not installed.
    """
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    try:
        importlib.import_module(name.partition(".")[0])
    except ImportError:
        raise NotHereError(name) from None
    return importlib.import_module(name)


def yaml_of(folder: Path, name: str) -> dict[str, Any]:
    """The contents of a YAML file."""
    from ...catalog.document import parse_yaml  # plans know the launchers, where no YAML is read

    return dict(parse_yaml((folder / name).read_text(encoding="utf-8"), name).data)


def json_of(folder: Path, name: str) -> dict[str, Any]:
    """The contents of a JSON file."""
    return dict(json.loads((folder / name).read_text(encoding="utf-8")))


def read_recipe(folder: Path) -> None:
    """Let transformers and peft read their settings. What asks for a device, a process group or a file is left out."""
    transformers, peft = module("transformers"), module("peft")
    recipe = json_of(folder, "recipe.json")
    training = {**recipe["training"], **ANYWHERE, "output_dir": str(folder / "output")}
    for name in ("deepspeed", "fsdp"):
        training.pop(name, None)
    transformers.TrainingArguments(**training)
    if recipe["lora"]:
        fields = dict(recipe["lora"])
        getattr(peft, fields.pop("class", "LoraConfig"))(**fields)
    if recipe["quantization"]:
        transformers.BitsAndBytesConfig(**recipe["quantization"])


def knows_options(*ask: str) -> Callable[[Launch, Path], None]:
    """A reader that looks for each option of the command in what its program says of itself; {n} is the nth word."""

    def read(launch: Launch, folder: Path) -> None:
        line = words(launch)
        program = [part.format(*line) for part in ask]
        known = set(re.findall(r"(?<![\w-])--?[\w.-]+", told(program)))
        unknown = [option for option in _options(line) if option not in known and option.replace("_", "-") not in known]
        if unknown:
            raise ValueError(f"{shlex.join(program)} does not name {', '.join(unknown)}")

    return read


def parses(*more: str) -> Callable[[Launch, Path], None]:
    """A reader that lets the program itself read the whole command, values too; `more` has it stop there."""

    def read(launch: Launch, folder: Path) -> None:
        status, text = _run([*arguments(launch), *more])
        if status:
            said = [line.strip() for line in text.splitlines() if line.strip()]
            raise ValueError(" ".join(said[-2:]) or f"it ended with {status}")

    return read


def _options(line: Sequence[str]) -> Iterator[str]:
    """The long options of a command; a `--` between two programs is none."""
    yield from (word.partition("=")[0] for word in line if word.startswith("--") and word != "--")


def told(program: Sequence[str]) -> str:
    """What a program prints.

    Raises:
        NotHereError: there is no such program.
    """
    return _run(program)[1]


def _run(program: Sequence[str]) -> tuple[int, str]:
    import shutil  # only who verifies pays for these
    import subprocess

    if shutil.which(program[0]) is None:
        raise NotHereError(program[0])
    done = subprocess.run(
        program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS
    )
    return done.returncode, done.stdout[:MOST_CHARACTERS].decode("utf-8", "replace")

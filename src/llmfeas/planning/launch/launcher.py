"""What a launcher is: which settings its engine can express, and how it writes them down."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ...contract import Added, Published
from ...objectives import Task
from ...options import flag_of
from ...record import dataclass
from ...scenario import Scenario
from ..expressed.expressible import Expressible, Objection

VARIABLE = re.compile(r'"\$\{?([A-Z_]+)\b')
"""A variable of the shell in a command."""


TRANSFORMERS = {"5": ("5.23", ">=5.23"), "4": ("4.57", ">=4.57,<5")}
"""Releases of transformers that recipes are written for: its name, and how pip is told to take it."""


@dataclass(frozen=True, slots=True)
class File(Published):
    """A file to write; `name` has no folder."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Launch:
    """A recipe in an engine's own words: its files, the command for a shell on each machine, what to know."""

    files: tuple[File, ...]
    command: str
    notes: tuple[str, ...] = ()

    def script(self) -> File:
        """The command as a script for a POSIX shell, under its notes; it ends where a variable is not set."""
        notes = "".join(f"# {note}\n" for note in self.notes)
        names = dict.fromkeys(VARIABLE.findall(self.command))
        checks = "".join(f': "${{{name}:?is not set, see the first lines of run.sh}}"\n' for name in names)
        return File("run.sh", f'#!/bin/sh\n{notes}set -e\ncd "$(dirname "$0")"\n{checks}{self.command}\n')


@dataclass(frozen=True, slots=True)
class LaunchResult(Published):
    """The result of a launch."""

    engine: str
    files: tuple[File, ...]
    command: str
    """For a shell on each machine."""
    notes: tuple[str, ...]
    """What to know."""
    read_by: Added[str | None] = None
    """The engine that was asked whether it reads this, with its version; null where none was asked or is here."""


def needs_nothing(scenario: Scenario) -> tuple[str, ...]:
    """Need nothing."""
    return ()


@dataclass(frozen=True, slots=True)
class Reader:
    """How an engine's own parser is asked; it raises what it does not read."""

    package: str
    """The distribution whose version is told."""
    read: Callable[[Launch, Path], None]
    """Reads a launch, whose files are in the folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """One engine: what it can express, and how."""

    expressed: Expressible
    """What it can express."""
    name: str
    release: str
    """The one whose names are written, with the programs that it stands on; {transformers}: that of the scenario."""
    install: tuple[str, ...]
    """What pip installs, {pin} for that release of transformers; empty where it comes otherwise."""
    needs: Callable[[Scenario], tuple[str, ...]] = needs_nothing
    """What a recipe takes beyond that."""
    write: Callable[[Scenario], Launch]
    reader: Reader | None = None
    """None where its parser cannot be asked without its devices."""

    @property
    def id(self) -> str:
        """Its name, as `--engine` takes it."""
        return self.expressed.id

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What it writes."""
        return self.expressed.tasks

    def made_for(self, scenario: Scenario) -> str:
        """One line: the releases that a recipe is written for, and how to get what it takes."""
        packages = " ".join(f"'{name}'" if set(name) & set("<>[") else name for name in self.packages(scenario))
        release, _ = TRANSFORMERS.get(scenario.transformers, TRANSFORMERS["5"])
        return f"for {self.release.format(transformers=release)}" + (f": pip install {packages}" if packages else "")

    def packages(self, scenario: Scenario) -> tuple[str, ...]:
        """What pip installs for a recipe."""
        _, pin = TRANSFORMERS.get(scenario.transformers, TRANSFORMERS["5"])
        names = (*self.install, *self.needs(scenario)) if self.install else ()
        return tuple(dict.fromkeys(name.replace("{pin}", pin) for name in names))

    def refused(self, scenario: Scenario) -> Objection | None:
        """The first setting of a scenario that cannot be expressed."""
        return self.expressed.refused(scenario)


def spelled(scenario: Scenario, setting: str) -> str:
    """Write a setting of a scenario as on the command line; the backend as a word."""
    if setting == "backend":
        return f"a device of {scenario.device.backend}"
    if setting == "model":
        return f"the model {scenario.model.name}"
    return f"{flag_of(setting)} {getattr(scenario, setting)}"

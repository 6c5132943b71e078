"""What a launcher is: which settings its engine can express, and how it writes them down."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from ...contract import Added, Published
from ...objectives import Task
from ...options import BY_NAME, flag_of
from ...record import dataclass, field
from ...scenario import Scenario
from ...timing.products import casts_base
from . import drafts
from .names import is_gguf

SPLITS = ("num_devices", "tp", "pp", "interleave", "ep", "cp")
"""Settings that are 1 where nothing is divided."""


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


@dataclass(frozen=True, slots=True)
class Objection:
    """A setting that an engine cannot express, alone or with others: why, and which value it can express instead."""

    setting: str
    because: str = ""
    instead: object = None


ONE_COPY = Objection("num_devices", "one server holds one copy of the model: start several servers instead")
READS_ALONE = Objection("model", "it makes vectors and scores of texts, and this model writes")
PAIRS_BY_LABEL = Objection("model", "it scores pairs by the label of an encoder, and this model is a decoder")
WHOLE: Mapping[str, tuple[object, ...]] = {"offload": ("none",), "gpu_layers": (None,), "n_cpu_moe": (None,)}
"""Choices of an engine that leaves nothing to the host."""


def no_objection(scenario: Scenario) -> Objection | None:
    """Object to nothing."""
    return None


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
    """One engine: what it can express, and how.

    `choices` lists for a setting the values that it can express; a setting that is not listed is free. `splits` are
    the layouts that it knows. `objection` refuses combinations.
    """

    id: str
    name: str
    release: str
    """The one whose names are written, with the programs that it stands on; {transformers}: that of the scenario."""
    install: tuple[str, ...]
    """What pip installs, {pin} for that release of transformers; empty where it comes otherwise."""
    needs: Callable[[Scenario], tuple[str, ...]] = needs_nothing
    """What a recipe takes beyond that."""
    tasks: tuple[Task, ...]
    backends: frozenset[str]
    choices: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    splits: frozenset[str] = frozenset()
    reads_gguf: bool = False
    drafts: frozenset[str] = frozenset()
    """What can draft tokens ahead: `model`, `mtp`, `eagle`."""
    disaggregates: frozenset[str] = frozenset()
    """Backends on which it reads prompts and writes answers on devices of their own."""
    wide_bases: bool = False
    """It can hold a frozen base in fp32 under autocast."""
    objection: Callable[[Scenario], Objection | None] = no_objection
    write: Callable[[Scenario], Launch]
    reader: Reader | None = None
    """None where its parser cannot be asked without its devices."""

    def takes(self, setting: str, value: object) -> bool:
        """Whether a single setting can be expressed."""
        if setting == "task":
            return value in self.tasks
        if setting == "backend":
            return value in self.backends
        if setting in SPLITS:
            return value == 1 or setting in self.splits
        return setting not in self.choices or value in self.choices[setting]

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
        if not scenario.engine_record.runs(scenario.model.architecture):
            return Objection("model", f"{scenario.engine} has no model of this architecture")
        if is_gguf(scenario) and not self.reads_gguf:
            return Objection("model", "it does not read GGUF files")
        if scenario.offload_layers is not None:
            return Objection("offload_layers", "what is written moves all layers or none")
        if casts_base(scenario) and not self.wide_bases:
            return Objection("base_dtype", "its frozen bases are in 16 bits")
        if drafts.kind_of(scenario) not in (None, *self.drafts):
            return Objection("draft")
        if scenario.disaggregate is not None and scenario.device.backend not in self.disaggregates:
            return Objection("disaggregate")
        settings = {
            "task": scenario.task,
            "backend": scenario.device.backend,
            **{name: getattr(scenario, name) for name in (*SPLITS, *self.choices)},
        }
        for name, value in settings.items():
            meant = name == "backend" or scenario.task in BY_NAME[name].tasks
            if meant and not self.takes(name, value):
                return Objection(name, instead=self._only(name))
        return self.objection(scenario)

    def _only(self, setting: str) -> object:
        """The one value of a setting that can be expressed; None where there are several, or none."""
        if setting in SPLITS:
            return 1 if setting != "num_devices" else None
        values = self.choices.get(setting, ())
        return values[0] if len(values) == 1 else None


def spelled(scenario: Scenario, setting: str) -> str:
    """Write a setting of a scenario as on the command line; the backend as a word."""
    if setting == "backend":
        return f"a device of {scenario.device.backend}"
    if setting == "model":
        return f"the model {scenario.model.name}"
    return f"{flag_of(setting)} {getattr(scenario, setting)}"
